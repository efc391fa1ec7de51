//! A session as a list of what a reader wants to see, in the order in which it happened.

use std::collections::HashMap;
use std::path::Path;

use pal_context::{Ledger, LedgerRow};
use pal_model::{
    Assistant, Attachment, Block, BlockType, Body, Boundary, Cards, Content, Decision, DecisionKind, Entry,
    EntryId, Origin, Timestamp, ToolUseId, User,
};
use serde_json::Value;

use crate::books::name;
use crate::session::Session;
use crate::table::{harmless_lines, thousands};

/// A session as it is written down.
pub(super) struct Transcript<'a> {
    /// How people call it.
    pub(super) name: String,
    /// Where it worked.
    pub(super) cwd: Option<String>,
    /// The program that wrote it.
    pub(super) program: Option<String>,
    /// All entries.
    pub(super) entries: &'a [Entry],
    /// Lines of entries that are written in place of theirs, because these hold secrets.
    pub(super) masked_lines: HashMap<EntryId, String>,
    /// Number of secrets that were masked; none if secrets are kept.
    pub(super) masked: Option<usize>,
    pub(super) items: Vec<Item>,
    pub(super) ledger: Ledger,
    /// What could not be read.
    pub(super) problems: Vec<String>,
}

/// Something that a reader sees.
pub(super) enum Item {
    /// Somebody said something.
    Said { who: Who, at: Timestamp, parts: Vec<Part> },
    /// A tool was called; its result is with it, wherever that came.
    Call(Call),
    /// Something happened to the conversation.
    Note { at: Timestamp, text: String },
    /// A long text that matters to few: a summary, a reminder.
    Folded { title: String, parts: Vec<Part> },
    /// A request was answered: which row of the ledger.
    Paid(usize),
}

/// Who said something.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Who {
    /// A person, or a program that gave the prompt.
    Person,
    /// The model.
    Model,
    /// Another agent, or the program in its own name.
    Other(&'static str),
}

/// A part of what was said.
pub(super) enum Part {
    /// Words.
    Text(String),
    /// Reasoning that is shown.
    Thinking(String),
    /// A picture: its type and its data in base64.
    Picture { media_type: String, data: String },
    /// Anything else, in a few words.
    Other(String),
}

/// A call of a tool.
pub(super) struct Call {
    pub(super) name: String,
    /// What it was called with, spelled for people.
    pub(super) input: String,
    /// What it is about, in a few words.
    pub(super) gist: String,
    /// What it returned; none if nothing came.
    pub(super) result: Option<Vec<Part>>,
    pub(super) is_error: bool,
}

impl<'a> Transcript<'a> {
    pub(super) fn of(session: &'a Session, path: &Path, cards: &Cards) -> Transcript<'a> {
        let entries = &session.branch;
        let ledger = Ledger::of(entries, cards);
        let mut writing = Writing { items: Vec::new(), calls: HashMap::new(), responses: 0, newest: None };
        entries.iter().for_each(|entry| writing.entry(entry, &ledger));
        let began = entries.iter().find_map(|entry| match &entry.body {
            Body::Session(session) => Some(session),
            _ => None,
        });
        Transcript {
            name: name(session, path),
            cwd: began.and_then(|began| began.cwd.clone()),
            program: began.map(|began| began.program.clone()).filter(|program| !program.is_empty()),
            items: writing.items,
            entries,
            ledger,
            problems: session.problems.clone(),
            masked_lines: HashMap::new(),
            masked: None,
        }
    }

    /// When it began and when something last happened.
    pub(super) fn times(&self) -> Option<(Timestamp, Timestamp)> {
        Some((self.entries.first()?.at, self.entries.last()?.at))
    }

    /// The models that answered.
    pub(super) fn models(&self) -> Vec<&str> {
        self.ledger
            .by_model
            .iter()
            .map(|(model, _)| model.as_str())
            .filter(|model| !model.is_empty())
            .collect()
    }

    pub(super) fn row(&self, at: usize) -> Option<&LedgerRow> {
        self.ledger.rows.get(at)
    }
}

/// The pass over the entries.
struct Writing {
    items: Vec<Item>,
    /// Where the calls stand whose results may still come.
    calls: HashMap<ToolUseId, usize>,
    responses: usize,
    newest: Option<EntryId>,
}

impl Writing {
    fn entry(&mut self, entry: &Entry, ledger: &Ledger) {
        if self.newest.is_some() && entry.parent.is_some() && entry.parent != self.newest {
            self.note(entry, "The conversation went on from an earlier message.".to_owned());
        }
        self.newest = Some(entry.id);
        match &entry.body {
            Body::User(user) => self.user(entry, user),
            Body::Assistant(assistant) => self.assistant(entry, assistant),
            Body::Attachment(attachment) => self.attachment(attachment),
            Body::Boundary(boundary) => self.boundary(entry, boundary),
            Body::Decision(decision) => self.decision(entry, decision),
            Body::Response(_) => {
                if let Some(row) = ledger.rows.get(self.responses) {
                    self.fall(entry, row);
                    self.items.push(Item::Paid(self.responses));
                }
                self.responses += 1;
            }
            Body::Session(_) | Body::Prefix(_) | Body::Request(_) => {}
            Body::Virtual | Body::Internal | Body::Repair(_) | Body::Unknown => {}
        }
    }

    fn user(&mut self, entry: &Entry, user: &User) {
        let who = match user.origin {
            Origin::Person => Who::Person,
            Origin::Tool => Who::Other("Tool"),
            Origin::Agent => Who::Other("Agent"),
            Origin::Synthetic => Who::Other("Stand-in"),
        };
        let mut parts = Vec::new();
        for block in user.content.blocks() {
            match block.kind() {
                BlockType::ToolResult => self.result(block),
                _ => parts.extend(part(block)),
            }
        }
        if !parts.is_empty() {
            self.items.push(Item::Said { who, at: entry.at, parts });
        }
    }

    fn assistant(&mut self, entry: &Entry, assistant: &Assistant) {
        let mut parts = Vec::new();
        for block in assistant.content.blocks() {
            if matches!(block.kind(), BlockType::ToolUse | BlockType::ServerToolUse | BlockType::McpToolUse) {
                self.said(entry, std::mem::take(&mut parts));
                self.call(block);
            } else {
                parts.extend(part(block));
            }
        }
        self.said(entry, parts);
    }

    /// What the model says without a pause stands under one heading.
    fn said(&mut self, entry: &Entry, parts: Vec<Part>) {
        if parts.is_empty() {
            return;
        }
        match self.items.last_mut() {
            Some(Item::Said { who: Who::Model, parts: said, .. }) => said.extend(parts),
            _ => self.items.push(Item::Said { who: Who::Model, at: entry.at, parts }),
        }
    }

    fn call(&mut self, block: &Block) {
        let input = block.field("input").unwrap_or("{}");
        let value: Value = serde_json::from_str(input).unwrap_or_else(|_| Value::from(input));
        let spelled = serde_json::to_string_pretty(&value).unwrap_or_else(|_| input.to_owned());
        let gist = match &value {
            Value::Object(members) => members.values().find_map(Value::as_str).unwrap_or_default().to_owned(),
            _ => String::new(),
        };
        if let Some(id) = block.tool_use_id() {
            self.calls.insert(id.clone(), self.items.len());
        }
        let name = block.string("name").unwrap_or_default().into_owned();
        self.items.push(Item::Call(Call { name, input: spelled, gist, result: None, is_error: false }));
    }

    fn result(&mut self, block: &Block) {
        let parts: Vec<Part> = block.content().blocks().iter().filter_map(part).collect();
        let is_error = block.field("is_error") == Some("true");
        let known = block.tool_use_id().and_then(|id| self.calls.get(id)).copied();
        match known.and_then(|at| self.items.get_mut(at)) {
            Some(Item::Call(call)) => {
                call.result.get_or_insert_default().extend(parts);
                call.is_error |= is_error;
            }
            _ => {
                let title = "A result without its call".to_owned();
                self.items.push(Item::Folded { title, parts });
            }
        }
    }

    fn attachment(&mut self, attachment: &Attachment) {
        let title = format!("For the model: {}", attachment.what.replace('_', " "));
        let parts: Vec<Part> = parts(&attachment.content);
        if !parts.is_empty() {
            self.items.push(Item::Folded { title, parts });
        }
    }

    fn boundary(&mut self, entry: &Entry, boundary: &Boundary) {
        let tokens = match (boundary.tokens_before, boundary.tokens_after) {
            (Some(before), Some(after)) => format!(": {} → {} tokens", thousands(before), thousands(after)),
            (Some(before), None) => format!(" at {} tokens", thousands(before)),
            _ => String::new(),
        };
        self.note(entry, format!("The conversation was compacted ({}){tokens}.", boundary.trigger));
        let summary = parts(&boundary.summary);
        if !summary.is_empty() {
            self.items.push(Item::Folded { title: "Summary".to_owned(), parts: summary });
        }
    }

    fn decision(&mut self, entry: &Entry, decision: &Decision) {
        let text = match &decision.kind {
            DecisionKind::Model { model } => format!("From here on {model} is asked."),
            DecisionKind::Pin { text } => format!("Pinned: {text}"),
            DecisionKind::Failure { what, message } => format!("Failed: {what}: {message}"),
            DecisionKind::Undo { .. } => "A decision was taken back.".to_owned(),
            DecisionKind::Spill { path, .. } => format!("A long text went to disk: {path}"),
            DecisionKind::Clear { tool_use_ids, .. } | DecisionKind::CacheEdit { tool_use_ids } => {
                format!("Old results left the model's sight: {}.", tool_use_ids.len())
            }
            DecisionKind::Snip { entries } => format!("Entries left the model's sight: {}.", entries.len()),
            DecisionKind::Fold { .. } => "A stretch was folded for the model.".to_owned(),
            DecisionKind::Strip { .. } => "Media were taken out of the model's sight.".to_owned(),
            DecisionKind::ProviderClear { cleared_tokens } => {
                format!("The provider cleared {} tokens of old results.", thousands(*cleared_tokens))
            }
            DecisionKind::Keep { .. }
            | DecisionKind::Latch { .. }
            | DecisionKind::Announce { .. }
            | DecisionKind::Title { .. }
            | DecisionKind::Factors { .. } => return,
        };
        self.note(entry, text);
    }

    fn fall(&mut self, entry: &Entry, row: &LedgerRow) {
        if let Some(fall) = &row.fall {
            let tokens = thousands(fall.what.tokens);
            self.note(
                entry,
                format!("{tokens} tokens were no longer read from the cache: {}.", fall.what.cause),
            );
        }
    }

    fn note(&mut self, entry: &Entry, text: String) {
        self.items.push(Item::Note { at: entry.at, text });
    }
}

fn parts(content: &Content) -> Vec<Part> {
    content.blocks().iter().filter_map(part).collect()
}

/// A block for a reader; none if it says nothing to anybody.
fn part(block: &Block) -> Option<Part> {
    let text = |name: &str| block.string(name).map(|text| text.into_owned());
    match block.kind() {
        BlockType::Text => text("text").filter(|text| !text.is_empty()).map(Part::Text),
        BlockType::Thinking => text("thinking").filter(|text| !text.is_empty()).map(Part::Thinking),
        BlockType::RedactedThinking | BlockType::Reasoning => None,
        BlockType::Image => Some(picture(block).unwrap_or_else(|| Part::Other("[picture]".to_owned()))),
        BlockType::Document => {
            let title = text("title").map_or(String::new(), |title| format!(": {title}"));
            Some(Part::Other(format!("[document{title}]")))
        }
        BlockType::ToolReference => text("tool_name").map(|name| Part::Other(format!("[tool {name}]"))),
        kind => {
            // What is not known is shown as it is, so that nothing is missing.
            let name = kind.name().map(str::to_owned).or_else(|| text("type")).unwrap_or_default();
            Some(Part::Other(format!("[{name}] {}", block.raw())))
        }
    }
}

fn picture(block: &Block) -> Option<Part> {
    let source: Value = serde_json::from_str(block.field("source")?).ok()?;
    let string = |name: &str| source[name].as_str().map(str::to_owned);
    Some(Part::Picture { media_type: string("media_type")?, data: string("data")? })
}

/// The text with plain line ends and without anything that drives a terminal.
pub(super) fn clean(text: &str) -> String {
    harmless_lines(&text.replace("\r\n", "\n"))
}

/// A time for people.
pub(super) fn time(at: Timestamp) -> String {
    at.to_string().chars().take(16).collect::<String>().replace('T', " ")
}
