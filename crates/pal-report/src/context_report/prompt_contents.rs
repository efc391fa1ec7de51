//! Parts of a request before its messages, with sizes: tools, system blocks with their sections, the reminder.

use pal_model::{ContentBlock, PromptPrefix, member, member_string, object_fields};
use pal_prompt::InstructionScope;
use pal_view::{Estimator, Request, View};

use super::PlannedSession;

/// Parts of a request before its messages.
pub(super) struct PromptContents {
    pub(super) tools: Vec<ListedTool>,
    pub(super) blocks: Vec<SystemPromptBlock>,
    pub(super) context: ContextReminder,
}

/// Size of a text.
#[derive(Clone, Copy, Default)]
pub(super) struct TextSize {
    pub(super) tokens: f64,
    pub(super) bytes: usize,
}

/// A tool of the request.
pub(super) struct ListedTool {
    pub(super) name: String,
    /// Size of its schema; no tokens if the provider loads it on demand.
    pub(super) extent: TextSize,
    pub(super) is_mcp: bool,
    pub(super) is_deferred: bool,
}

/// A block of the system prompt.
pub(super) struct SystemPromptBlock {
    pub(super) extent: TextSize,
    pub(super) is_static: bool,
    pub(super) can_hold_breakpoint: bool,
    /// Empty if its sections are unknown.
    pub(super) sections: Vec<PromptSection>,
}

/// A section of a block.
pub(super) struct PromptSection {
    pub(super) name: String,
    pub(super) text: String,
    pub(super) extent: TextSize,
    /// Reason why it may change within the session.
    pub(super) volatile: Option<String>,
}

/// The reminder before the first message.
#[derive(Default)]
pub(super) struct ContextReminder {
    pub(super) extent: TextSize,
    pub(super) text: String,
    pub(super) files: Vec<ReminderFile>,
    /// Tokens that belong to neither file nor memory: the date and the wrapper text.
    pub(super) other_tokens: f64,
}

/// A file in the reminder. For a stored session, only the path is known.
pub(super) struct ReminderFile {
    pub(super) path: String,
    pub(super) extent: Option<TextSize>,
    pub(super) scope: Option<InstructionScope>,
    pub(super) included_by: Option<String>,
    pub(super) reason: String,
    pub(super) is_memory: bool,
}

impl PromptContents {
    /// Lists the parts of a request; the files in the reminder as far as the prefix names them.
    pub(super) fn of(view: &View, request: &Request, prefix: Option<&PromptPrefix>) -> PromptContents {
        let estimator = view.estimator();
        let finds = view.lens().card.can.tool_search;
        let tools = request.tools().iter().map(|raw| tool(raw, estimator, finds)).collect();
        let context = prefix.map_or(ContextReminder::default(), |prefix| reminder(prefix, estimator));
        PromptContents { tools, blocks: system_parts(request, estimator), context }
    }

    /// Adds the instruction files and memories of a session that has not started.
    pub(super) fn with_files(mut self, here: &PlannedSession, estimator: Estimator) -> PromptContents {
        let extent = |text: &str| TextSize { tokens: tokens(estimator, text), bytes: text.len() };
        let files = &mut self.context.files;
        files.clear();
        let instructions = &here.gathered.instructions.files;
        for instruction in instructions.iter().filter(|file| !file.text.trim().is_empty()) {
            files.push(ReminderFile {
                path: instruction.path.clone(),
                extent: Some(extent(&instruction.text)),
                scope: Some(instruction.scope),
                included_by: instruction.included_by.clone(),
                reason: instruction.reason.clone(),
                is_memory: false,
            });
        }
        files.extend(here.memory.iter().map(|memory| ReminderFile {
            path: memory.path.clone(),
            extent: Some(extent(&memory.text)),
            scope: None,
            included_by: None,
            reason: String::from("memories of earlier sessions"),
            is_memory: true,
        }));
        let named: f64 = files.iter().filter_map(|file| file.extent).map(|extent| extent.tokens).sum();
        self.context.other_tokens = (self.context.extent.tokens - named).max(0.0);
        self
    }

    /// Returns the tokens of the static system blocks, and of all system blocks.
    pub(super) fn system_tokens(&self) -> (f64, f64) {
        let sum = |only_static: bool| {
            let blocks = self.blocks.iter().filter(move |block| block.is_static || !only_static);
            blocks.map(|block| block.extent.tokens).sum()
        };
        (sum(true), sum(false))
    }

    /// Sums the tokens of the first `tools` tools.
    pub(super) fn tokens_of_tools(&self, tools: usize) -> f64 {
        self.tools.iter().take(tools).map(|tool| tool.extent.tokens).sum()
    }

    /// Finds a section by name.
    pub(super) fn section(&self, name: &str) -> Option<&PromptSection> {
        self.blocks.iter().flat_map(|block| &block.sections).find(|section| section.name == name)
    }
}

fn tokens(estimator: Estimator, text: &str) -> f64 {
    estimator.text(text) * estimator.scale()
}

/// Parses a tool; `finds` tells that the provider loads deferred tools on demand.
fn tool(raw: &str, estimator: Estimator, finds: bool) -> ListedTool {
    let known = object_fields(raw).unwrap_or_default();
    let name = member_string(&known, "name").unwrap_or_default().into_owned();
    let is_deferred = member(&known, "defer_loading") == Some("true");
    // As in the view: a deferred tool counts where a result refers to it, not where it is listed.
    let tokens = if finds && is_deferred { 0.0 } else { estimator.json(raw) * estimator.scale() };
    ListedTool {
        is_mcp: name.starts_with("mcp__"),
        is_deferred,
        extent: TextSize { tokens, bytes: raw.len() },
        name,
    }
}

/// Returns the text of a raw block.
pub(super) fn text_of(raw: &str) -> String {
    let known = object_fields(raw).unwrap_or_default();
    member_string(&known, "text").unwrap_or_default().into_owned()
}

fn system_parts(request: &Request, estimator: Estimator) -> Vec<SystemPromptBlock> {
    let blocks = request.system_blocks().iter().zip(request.system_notes());
    let part = |(raw, note): (&pal_model::SharedText, &pal_model::SystemBlockNote)| {
        let text = text_of(raw);
        let mut sections = Vec::new();
        let mut from = 0;
        for noted in &note.sections {
            let end = from + noted.bytes as usize;
            let text = text.get(from..end).unwrap_or_default().to_owned();
            sections.push(PromptSection {
                name: noted.name.to_string(),
                extent: TextSize { tokens: tokens(estimator, &text), bytes: text.len() },
                text,
                volatile: noted.volatile.clone(),
            });
            // Sections are separated by two line ends.
            from = end + 2;
        }
        SystemPromptBlock {
            extent: TextSize { tokens: tokens(estimator, &text), bytes: text.len() },
            is_static: note.is_static,
            can_hold_breakpoint: note.markable,
            sections,
        }
    };
    blocks.map(part).collect()
}

fn reminder(prefix: &PromptPrefix, estimator: Estimator) -> ContextReminder {
    let texts: Vec<String> =
        prefix.context.blocks().iter().map(|block: &ContentBlock| text_of(block.raw())).collect();
    let text = texts.join("\n\n");
    let files = prefix.notes.sources.iter().map(|source| ReminderFile {
        path: source.path.clone(),
        extent: None,
        scope: None,
        included_by: None,
        reason: String::new(),
        is_memory: false,
    });
    let extent = TextSize { tokens: tokens(estimator, &text), bytes: text.len() };
    ContextReminder { files: files.collect(), other_tokens: extent.tokens, extent, text }
}
