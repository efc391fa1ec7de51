//! A session written down for people or programs: as Markdown, as one page of HTML, or as JSON.

mod html_calls;
mod html_export;
mod html_markdown;
mod html_text;
mod json_export;
mod markdown_export;
mod secret_masking;

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::Path;

use pal_context::{CostLedger, LedgerRow};
use pal_model::text::group_digits;
use pal_model::{
    AssistantMessage, Attachment, BlockType, Boundary, Content, ContentBlock, Decision, DecisionKind,
    EntryBody, EntryId, LogEntry, MessageOrigin, ModelCatalog, Timestamp, ToolUseId, UserMessage,
};
use serde_json::Value;

use crate::session_name::session_name;
use crate::text_layout::sanitize_lines;

/// A session as a list of items for a reader, in the order in which they happened.
pub struct SessionTranscript<'a> {
    /// Name for people.
    name: String,
    /// Directory that it worked in.
    cwd: Option<String>,
    /// The program that wrote it.
    program: Option<String>,
    /// All entries.
    entries: &'a [LogEntry],
    /// Masked lines of the entries that hold secrets.
    masked_lines: HashMap<EntryId, String>,
    /// Number of masked secrets; none if secrets are not masked.
    masked: Option<usize>,
    items: Vec<TranscriptItem>,
    ledger: CostLedger,
    /// Damage of the log.
    problems: Vec<String>,
}

/// An item of a transcript.
enum TranscriptItem {
    /// A message.
    Message { who: MessageAuthor, at: Timestamp, parts: Vec<MessagePart> },
    /// A tool call with its result.
    Call(TranscriptCall),
    /// An event of the conversation.
    Note { at: Timestamp, text: String },
    /// A long text that is collapsed: a summary, a reminder.
    Collapsed { title: String, parts: Vec<MessagePart> },
    /// A response, by its row in the ledger.
    Usage(usize),
}

/// Author of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
enum MessageAuthor {
    /// A person, or a program that gave the prompt.
    Person,
    /// The model.
    Model,
    /// Another agent, or the program in its own name.
    Other(&'static str),
}

/// A part of a message.
enum MessagePart {
    /// Plain text.
    Text(String),
    /// Visible reasoning.
    Thinking(String),
    /// A picture: media type and base64 data.
    Picture { media_type: String, data: String },
    /// Any other block, described in a few words.
    Other(String),
}

/// A tool call.
struct TranscriptCall {
    name: String,
    /// Input as indented JSON.
    input: String,
    /// Short description of the input.
    description: String,
    /// Result; none if there is none.
    result: Option<Vec<MessagePart>>,
    is_error: bool,
}

impl<'a> SessionTranscript<'a> {
    /// Builds the transcript of all `entries` of a log, abandoned branches included. `problems` describe damage of the log.
    pub fn new(
        entries: &'a [LogEntry],
        problems: &[String],
        path: &Path,
        cards: &ModelCatalog,
    ) -> SessionTranscript<'a> {
        let ledger = CostLedger::from_entries(entries, cards);
        let mut writing =
            TranscriptBuilder { items: Vec::new(), calls: HashMap::new(), responses: 0, newest: None };
        entries.iter().for_each(|entry| writing.entry(entry, &ledger));
        let mut starts = entries.iter().filter_map(|entry| match &entry.body {
            EntryBody::Session(session) => Some(session),
            _ => None,
        });
        let began = starts.next();
        let newest = starts.next_back().or(began);
        SessionTranscript {
            name: session_name(entries, path),
            cwd: newest.and_then(|start| start.cwd.clone()),
            program: began.map(|began| began.program.clone()).filter(|program| !program.is_empty()),
            items: writing.items,
            entries,
            ledger,
            problems: problems.to_vec(),
            masked_lines: HashMap::new(),
            masked: None,
        }
    }

    /// Masks the secrets in everything that an export shows, and returns their number. A secret in a call and in its heading
    /// counts once.
    pub fn mask_secrets(&mut self) -> usize {
        secret_masking::mask(self)
    }

    /// Writes the session as Markdown.
    pub fn write_markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        markdown_export::write(self, out)
    }

    /// Writes the session as one self-contained page of HTML.
    pub fn write_html(&self, out: &mut dyn Write) -> io::Result<()> {
        html_export::write(self, out)
    }

    /// Writes the session as one JSON object: a summary, and the entries as they stand in the log.
    pub fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        json_export::write(self, out)
    }

    /// Returns the times of the first and the last entry.
    fn times(&self) -> Option<(Timestamp, Timestamp)> {
        Some((self.entries.first()?.at, self.entries.last()?.at))
    }

    /// Returns the models that answered.
    fn models(&self) -> Vec<&str> {
        self.ledger
            .by_model
            .iter()
            .map(|(model, _)| model.as_str())
            .filter(|model| !model.is_empty())
            .collect()
    }

    fn row(&self, at: usize) -> Option<&LedgerRow> {
        self.ledger.rows.get(at)
    }
}

/// State of the pass over the entries.
struct TranscriptBuilder {
    items: Vec<TranscriptItem>,
    /// Items of calls whose results may still come.
    calls: HashMap<ToolUseId, usize>,
    responses: usize,
    newest: Option<EntryId>,
}

impl TranscriptBuilder {
    fn entry(&mut self, entry: &LogEntry, ledger: &CostLedger) {
        if self.newest.is_some() && entry.parent.is_some() && entry.parent != self.newest {
            self.note(entry, "The conversation continued from an earlier message.".to_owned());
        }
        self.newest = Some(entry.id);
        match &entry.body {
            EntryBody::User(user) => self.user(entry, user),
            EntryBody::Assistant(assistant) => self.assistant(entry, assistant),
            EntryBody::Attachment(attachment) => self.attachment(attachment),
            EntryBody::Boundary(boundary) => self.boundary(entry, boundary),
            EntryBody::Decision(decision) => self.decision(entry, decision),
            EntryBody::Response(_) => {
                if let Some(row) = ledger.rows.get(self.responses) {
                    self.note_cache_drop(entry, row);
                    self.items.push(TranscriptItem::Usage(self.responses));
                }
                self.responses += 1;
            }
            EntryBody::Session(_) | EntryBody::Prefix(_) | EntryBody::Request(_) => {}
            EntryBody::Virtual | EntryBody::Internal | EntryBody::Repair(_) | EntryBody::Unknown => {}
        }
    }

    fn user(&mut self, entry: &LogEntry, user: &UserMessage) {
        let who = match user.origin {
            MessageOrigin::Person => MessageAuthor::Person,
            MessageOrigin::Tool => MessageAuthor::Other("Tool"),
            MessageOrigin::Agent => MessageAuthor::Other("Agent"),
            MessageOrigin::Synthetic => MessageAuthor::Other("Stand-in"),
        };
        let mut parts = Vec::new();
        for block in user.content.blocks() {
            match block.kind() {
                BlockType::ToolResult => self.result(block),
                _ => parts.extend(part(block)),
            }
        }
        if !parts.is_empty() {
            self.items.push(TranscriptItem::Message { who, at: entry.at, parts });
        }
    }

    fn assistant(&mut self, entry: &LogEntry, assistant: &AssistantMessage) {
        let mut parts = Vec::new();
        for block in assistant.content.blocks() {
            if matches!(block.kind(), BlockType::ToolUse | BlockType::ServerToolUse | BlockType::McpToolUse) {
                self.add_model_text(entry, std::mem::take(&mut parts));
                self.call(block);
            } else {
                parts.extend(part(block));
            }
        }
        self.add_model_text(entry, parts);
    }

    /// Adds text of the model; consecutive texts share one heading.
    fn add_model_text(&mut self, entry: &LogEntry, parts: Vec<MessagePart>) {
        if parts.is_empty() {
            return;
        }
        match self.items.last_mut() {
            Some(TranscriptItem::Message { who: MessageAuthor::Model, parts: said, .. }) => {
                said.extend(parts)
            }
            _ => self.items.push(TranscriptItem::Message { who: MessageAuthor::Model, at: entry.at, parts }),
        }
    }

    fn call(&mut self, block: &ContentBlock) {
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
        self.items.push(TranscriptItem::Call(TranscriptCall {
            name,
            input: spelled,
            description: gist,
            result: None,
            is_error: false,
        }));
    }

    fn result(&mut self, block: &ContentBlock) {
        let parts: Vec<MessagePart> = block.content().blocks().iter().filter_map(part).collect();
        let is_error = block.field("is_error") == Some("true");
        let known = block.tool_use_id().and_then(|id| self.calls.get(id)).copied();
        match known.and_then(|at| self.items.get_mut(at)) {
            Some(TranscriptItem::Call(call)) => {
                call.result.get_or_insert_default().extend(parts);
                call.is_error |= is_error;
            }
            _ => {
                let title = "Tool result without a call".to_owned();
                self.items.push(TranscriptItem::Collapsed { title, parts });
            }
        }
    }

    fn attachment(&mut self, attachment: &Attachment) {
        let title = format!("For the model: {}", attachment.what.replace('_', " "));
        let parts: Vec<MessagePart> = parts(&attachment.content);
        if !parts.is_empty() {
            self.items.push(TranscriptItem::Collapsed { title, parts });
        }
    }

    fn boundary(&mut self, entry: &LogEntry, boundary: &Boundary) {
        let tokens = match (boundary.tokens_before, boundary.tokens_after) {
            (Some(before), Some(after)) => {
                format!(": {} → {} tokens", group_digits(before), group_digits(after))
            }
            (Some(before), None) => format!(" at {} tokens", group_digits(before)),
            _ => String::new(),
        };
        self.note(entry, format!("The conversation was compacted ({}){tokens}.", boundary.trigger));
        let summary = parts(&boundary.summary);
        if !summary.is_empty() {
            self.items.push(TranscriptItem::Collapsed { title: "Summary".to_owned(), parts: summary });
        }
    }

    fn decision(&mut self, entry: &LogEntry, decision: &Decision) {
        let text = match &decision.kind {
            DecisionKind::Model { model } => format!("Model changed to {model}."),
            DecisionKind::Pin { text } => format!("Pinned: {text}"),
            DecisionKind::Failure { what, message } => format!("Failed: {what}: {message}"),
            DecisionKind::Undo { .. } => "A decision was undone.".to_owned(),
            DecisionKind::Spill { path, .. } => format!("A long text was spilled to disk: {path}"),
            DecisionKind::Clear { tool_use_ids, .. } | DecisionKind::CacheEdit { tool_use_ids } => {
                format!("Old tool results cleared: {}.", tool_use_ids.len())
            }
            DecisionKind::Snip { entries } => format!("Entries snipped: {}.", entries.len()),
            DecisionKind::Fold { .. } => "A range of messages was folded.".to_owned(),
            DecisionKind::Strip { .. } => "Media were stripped.".to_owned(),
            DecisionKind::ProviderClear { cleared_tokens } => {
                format!("The provider cleared {} tokens of old tool results.", group_digits(*cleared_tokens))
            }
            DecisionKind::Keep { .. }
            | DecisionKind::Latch { .. }
            | DecisionKind::Announce { .. }
            | DecisionKind::Title { .. }
            | DecisionKind::Factors { .. } => return,
        };
        self.note(entry, text);
    }

    fn note_cache_drop(&mut self, entry: &LogEntry, row: &LedgerRow) {
        if let Some(fall) = &row.drop {
            let tokens = group_digits(fall.cache_break.tokens);
            self.note(
                entry,
                format!("{tokens} fewer tokens read from the cache: {}.", fall.cache_break.reason()),
            );
        }
    }

    fn note(&mut self, entry: &LogEntry, text: String) {
        self.items.push(TranscriptItem::Note { at: entry.at, text });
    }
}

fn parts(content: &Content) -> Vec<MessagePart> {
    content.blocks().iter().filter_map(part).collect()
}

/// Converts a block; none if it has nothing to show.
fn part(block: &ContentBlock) -> Option<MessagePart> {
    let text = |name: &str| block.string(name).map(|text| text.into_owned());
    match block.kind() {
        BlockType::Text => text("text").filter(|text| !text.is_empty()).map(MessagePart::Text),
        BlockType::Thinking => text("thinking").filter(|text| !text.is_empty()).map(MessagePart::Thinking),
        BlockType::RedactedThinking | BlockType::Reasoning => None,
        BlockType::Image => {
            Some(picture(block).unwrap_or_else(|| MessagePart::Other("[picture]".to_owned())))
        }
        BlockType::Document => {
            let title = text("title").map_or(String::new(), |title| format!(": {title}"));
            Some(MessagePart::Other(format!("[document{title}]")))
        }
        BlockType::ToolReference => {
            text("tool_name").map(|name| MessagePart::Other(format!("[tool {name}]")))
        }
        kind => {
            // Unknown blocks are shown raw, so that nothing is missing.
            let name = kind.name().map(str::to_owned).or_else(|| text("type")).unwrap_or_default();
            Some(MessagePart::Other(format!("[{name}] {}", block.raw())))
        }
    }
}

fn picture(block: &ContentBlock) -> Option<MessagePart> {
    let source: Value = serde_json::from_str(block.field("source")?).ok()?;
    let string = |name: &str| source[name].as_str().map(str::to_owned);
    Some(MessagePart::Picture { media_type: string("media_type")?, data: string("data")? })
}

/// Normalizes line ends and replaces control characters.
fn clean(text: &str) -> String {
    sanitize_lines(&text.replace("\r\n", "\n"))
}

/// Formats a time to the minute.
fn time(at: Timestamp) -> String {
    at.to_string().chars().take(16).collect::<String>().replace('T', " ")
}
