//! What stands before the messages, piece by piece, with sizes: tools, system blocks with their sections, the reminder.

use pal_model::{Block, Prefix, fields, member, member_string};
use pal_prompt::InstructionScope;
use pal_view::{Estimator, Request, View};

use super::here::Here;

/// What stands before the messages.
pub(super) struct Contents {
    pub(super) tools: Vec<Tool>,
    pub(super) blocks: Vec<SystemPart>,
    pub(super) context: Reminder,
}

/// A text of a certain size.
#[derive(Clone, Copy, Default)]
pub(super) struct Extent {
    pub(super) tokens: f64,
    pub(super) bytes: usize,
}

/// A tool that is listed.
pub(super) struct Tool {
    pub(super) name: String,
    /// What it takes where it is listed: no tokens if the provider looks it up when it is wanted.
    pub(super) extent: Extent,
    pub(super) is_of_server: bool,
    pub(super) is_deferred: bool,
}

/// A block of the system prompt.
pub(super) struct SystemPart {
    pub(super) extent: Extent,
    pub(super) is_static: bool,
    pub(super) is_markable: bool,
    /// None if nothing is known of it.
    pub(super) sections: Vec<Section>,
}

/// A section of a block.
pub(super) struct Section {
    pub(super) name: String,
    pub(super) text: String,
    pub(super) extent: Extent,
    /// Why it may change within the session, if it may.
    pub(super) volatile: Option<String>,
}

/// The reminder before the first message.
#[derive(Default)]
pub(super) struct Reminder {
    pub(super) extent: Extent,
    pub(super) text: String,
    pub(super) files: Vec<File>,
    /// What of it is neither file nor memory: the date and the words around.
    pub(super) others: f64,
}

/// A file in the reminder. Of files of a stored session only the path is known.
pub(super) struct File {
    pub(super) path: String,
    pub(super) extent: Option<Extent>,
    pub(super) scope: Option<InstructionScope>,
    pub(super) included_by: Option<String>,
    pub(super) reason: String,
    pub(super) is_memory: bool,
}

impl Contents {
    /// The contents of a request; the files in the reminder as far as the prefix names them.
    pub(super) fn of(view: &View, request: &Request, prefix: Option<&Prefix>) -> Contents {
        let estimator = view.estimator();
        let finds = view.lens().card.can.tool_search;
        let tools = request.tools().iter().map(|raw| tool(raw, estimator, finds)).collect();
        let context = prefix.map_or(Reminder::default(), |prefix| reminder(prefix, estimator));
        Contents { tools, blocks: system_parts(request, estimator), context }
    }

    /// The same with what is known of the files of a session that would start.
    pub(super) fn with_files(mut self, here: &Here, estimator: Estimator) -> Contents {
        let extent = |text: &str| Extent { tokens: tokens(estimator, text), bytes: text.len() };
        let files = &mut self.context.files;
        files.clear();
        let instructions = &here.gathered.instructions.files;
        for instruction in instructions.iter().filter(|file| !file.text.trim().is_empty()) {
            files.push(File {
                path: instruction.path.clone(),
                extent: Some(extent(&instruction.text)),
                scope: Some(instruction.scope),
                included_by: instruction.included_by.clone(),
                reason: instruction.reason.clone(),
                is_memory: false,
            });
        }
        files.extend(here.memory.iter().map(|memory| File {
            path: memory.path.clone(),
            extent: Some(extent(&memory.text)),
            scope: None,
            included_by: None,
            reason: String::from("what is remembered of earlier sessions"),
            is_memory: true,
        }));
        let named: f64 = files.iter().filter_map(|file| file.extent).map(|extent| extent.tokens).sum();
        self.context.others = (self.context.extent.tokens - named).max(0.0);
        self
    }

    /// Tokens of what is the same for everybody, and of all system blocks.
    pub(super) fn system_tokens(&self) -> (f64, f64) {
        let sum = |only_static: bool| {
            let blocks = self.blocks.iter().filter(move |block| block.is_static || !only_static);
            blocks.map(|block| block.extent.tokens).sum()
        };
        (sum(true), sum(false))
    }

    /// Tokens of the tools up to the one with this number.
    pub(super) fn tokens_of_tools(&self, tools: usize) -> f64 {
        self.tools.iter().take(tools).map(|tool| tool.extent.tokens).sum()
    }

    /// The section with a name.
    pub(super) fn section(&self, name: &str) -> Option<&Section> {
        self.blocks.iter().flat_map(|block| &block.sections).find(|section| section.name == name)
    }
}

fn tokens(estimator: Estimator, text: &str) -> f64 {
    estimator.text(text) * estimator.scale()
}

/// A tool; `finds` says whether the provider looks deferred tools up by itself.
fn tool(raw: &str, estimator: Estimator, finds: bool) -> Tool {
    let known = fields(raw).unwrap_or_default();
    let name = member_string(&known, "name").unwrap_or_default().into_owned();
    let is_deferred = member(&known, "defer_loading") == Some("true");
    // As the view counts: a deferred tool takes room where a result refers to it, not where it is listed.
    let tokens = if finds && is_deferred { 0.0 } else { estimator.json(raw) * estimator.scale() };
    Tool {
        is_of_server: name.starts_with("mcp__"),
        is_deferred,
        extent: Extent { tokens, bytes: raw.len() },
        name,
    }
}

/// The text of a block.
pub(super) fn text_of(raw: &str) -> String {
    let known = fields(raw).unwrap_or_default();
    member_string(&known, "text").unwrap_or_default().into_owned()
}

fn system_parts(request: &Request, estimator: Estimator) -> Vec<SystemPart> {
    let blocks = request.system().iter().zip(request.system_notes());
    let part = |(raw, note): (&pal_model::Text, &pal_model::SystemNote)| {
        let text = text_of(raw);
        let mut sections = Vec::new();
        let mut from = 0;
        for noted in &note.sections {
            let end = from + noted.bytes as usize;
            let text = text.get(from..end).unwrap_or_default().to_owned();
            sections.push(Section {
                name: noted.name.to_string(),
                extent: Extent { tokens: tokens(estimator, &text), bytes: text.len() },
                text,
                volatile: noted.volatile.clone(),
            });
            // Two line ends stand between sections.
            from = end + 2;
        }
        SystemPart {
            extent: Extent { tokens: tokens(estimator, &text), bytes: text.len() },
            is_static: note.is_static,
            is_markable: note.markable,
            sections,
        }
    };
    blocks.map(part).collect()
}

fn reminder(prefix: &Prefix, estimator: Estimator) -> Reminder {
    let texts: Vec<String> =
        prefix.context.blocks().iter().map(|block: &Block| text_of(block.raw())).collect();
    let text = texts.join("\n\n");
    let files = prefix.notes.sources.iter().map(|source| File {
        path: source.path.clone(),
        extent: None,
        scope: None,
        included_by: None,
        reason: String::new(),
        is_memory: false,
    });
    let extent = Extent { tokens: tokens(estimator, &text), bytes: text.len() };
    Reminder { files: files.collect(), others: extent.tokens, extent, text }
}
