//! Payloads of log entries: messages, the prompt prefix, request and response records.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

use crate::{CacheBreak, Content, EntryId, ResponseId, SharedText, Usage};

/// Role of a message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// User side: people, programs, tool results, reminders.
    User,
    /// Model output.
    Assistant,
    /// Operator instructions inside the conversation.
    System,
}

impl Role {
    /// Returns the name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::System => "system",
        }
    }
}

/// First entry of a session: program, working directory, title.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionStart {
    /// Program that wrote the session: `pal` or another agent.
    pub program: String,
    /// Version of the program, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Working directory at the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Title at the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Session id in the other program, for an imported session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreign_id: Option<String>,
}

/// Author of a user-side message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageOrigin {
    /// Typed by a person, or given by a program as the prompt. These are the *user messages*.
    Person,
    /// Tool results.
    Tool,
    /// Written by the agent itself: environment messages, observations, command output.
    Agent,
    /// Placeholder for a tool result that never arrived; kept because it was sent once.
    Synthetic,
}

impl MessageOrigin {
    /// Returns the name in the log.
    pub fn name(self) -> &'static str {
        match self {
            MessageOrigin::Person => "person",
            MessageOrigin::Tool => "tool",
            MessageOrigin::Agent => "agent",
            MessageOrigin::Synthetic => "synthetic",
        }
    }

    /// Parses a name in the log. Unknown names count as `Person`, so a person's message is never downgraded.
    pub fn from_name(name: &str) -> MessageOrigin {
        match name {
            "tool" => MessageOrigin::Tool,
            "agent" => MessageOrigin::Agent,
            "synthetic" => MessageOrigin::Synthetic,
            _ => MessageOrigin::Person,
        }
    }
}

/// A user-side message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UserMessage {
    /// Author of the message.
    pub origin: MessageOrigin,
    /// Blocks of the message.
    pub content: Content,
    /// Session state changed by the tools whose results this message holds.
    pub tool_effects: ToolEffects,
}

/// Session state changed by tool calls, recorded beside their results.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolEffects {
    /// Files that the model has seen, by canonical path.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, KnownFile>,
    /// New working directory, if it changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// New permission mode, if it changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<SmolStr>,
    /// Skill activated by the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
}

impl ToolEffects {
    /// Returns true if nothing changed.
    pub fn is_empty(&self) -> bool {
        *self == ToolEffects::default()
    }

    /// Merges later effects; they override earlier ones.
    pub fn extend(&mut self, later: ToolEffects) {
        self.files.extend(later.files);
        self.directory = later.directory.or(self.directory.take());
        self.mode = later.mode.or(self.mode.take());
        self.skill = later.skill.or(self.skill.take());
    }
}

/// Version and line range of a file as the model last saw it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct KnownFile {
    /// Fingerprint of the file's content.
    #[serde(rename = "print")]
    pub fingerprint: String,
    /// Tool call that showed or wrote the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<SmolStr>,
    /// First line shown and number of lines; none if the whole file was shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<(u64, u64)>,
}

/// Model output: one block or a complete response.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AssistantMessage {
    /// Response it belongs to. Entries with equal ids form one message.
    pub response: Option<ResponseId>,
    /// Model that wrote it.
    pub model: Option<SmolStr>,
    /// Blocks of the message.
    pub content: Content,
}

/// Content that the program adds for the model: a reminder, a memory, a notice.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attachment {
    /// Category, such as `memory` or `date_change`.
    pub what: SmolStr,
    /// Blocks as sent to the model.
    pub content: Content,
    /// Path of the attached file, if any.
    pub file: Option<String>,
}

/// Content before the messages, rendered once per session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PromptPrefix {
    /// System blocks as a JSON array; empty without a system prompt.
    pub system: SharedText,
    /// Tool definitions as a JSON array.
    pub tools: SharedText,
    /// Reminder before the first message: instruction files, memory index, date.
    pub context: Content,
    /// Prefix tokens missing from an imported transcript: prompt tokens of the first call beyond the visible text.
    pub unseen_tokens: u64,
    /// Names and origins of the parts.
    pub notes: PrefixNotes,
}

/// Names and origins of the parts of a prefix, used to explain cache breaks.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PrefixNotes {
    /// System blocks in order; empty if unknown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub system: Vec<SystemBlockNote>,
    /// Files included in the context, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<SourceNote>,
    /// True if filler of the same size is sent in place of the unseen part, as a replay needs it for sizes.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fills_unseen: bool,
    /// Name of the profile that the prefix was assembled with; none for the full one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<SmolStr>,
}

impl PrefixNotes {
    /// Returns true if there are no notes.
    pub fn is_empty(&self) -> bool {
        self.system.is_empty() && self.sources.is_empty() && !self.fills_unseen && self.profile.is_none()
    }
}

/// Composition of a system block.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SystemBlockNote {
    /// Sections in order.
    pub sections: Vec<SectionNote>,
    /// True if the block is identical for every user, machine, date and session.
    #[serde(rename = "static")]
    pub is_static: bool,
    /// True if the block may carry a cache breakpoint.
    pub markable: bool,
}

/// A section of a system block.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SectionNote {
    /// Section name, as in cache-break reports.
    pub name: SmolStr,
    /// Length of the text in bytes, without the two line feeds between sections.
    pub bytes: u64,
    /// Reason why the section may change within a session; none if it is fixed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volatile: Option<String>,
}

/// A file included in the context.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SourceNote {
    /// Path of the file.
    pub path: String,
    /// Fingerprint of the file's content.
    #[serde(rename = "print")]
    pub fingerprint: String,
}

/// Source of a request: the main thread, a subagent, or a background query.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RequestSource(SmolStr);

impl RequestSource {
    /// Source of the main thread's requests.
    pub fn main() -> RequestSource {
        RequestSource(SmolStr::new_static("main"))
    }

    /// Source of requests that only keep the cache warm.
    pub fn keepalive() -> RequestSource {
        RequestSource(SmolStr::new_static("ping"))
    }

    /// Creates a source by name: `main`, `sdk`, `agent:<name>`, `compact`, `notes`, `extract`, `dream`,
    /// `progress`, `ping` or `title`.
    pub fn from_name(name: &str) -> RequestSource {
        RequestSource(SmolStr::new(name))
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns true if requests of this source belong to the conversation itself, so that the next request continues
    /// them. Forks repeat the conversation and append a directive.
    pub fn is_conversation(&self) -> bool {
        matches!(self.0.as_str(), "main" | "sdk") || self.0.starts_with("agent:")
    }
}

/// Record of a sent request: all entries up to `last` count as sent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RequestRecord {
    /// Originator of the request.
    pub source: RequestSource,
    /// Newest entry that the request covers; none if it covers no entry.
    pub last: Option<EntryId>,
    /// Requested model.
    #[serde(default)]
    pub model: SmolStr,
    /// Fingerprint of the body, if this program rendered it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// Indexes of the blocks with a cache breakpoint, counted over all messages.
    #[serde(default, rename = "marks", skip_serializing_if = "Vec::is_empty")]
    pub breakpoints: Vec<u64>,
    /// TTL of the cache breakpoints: `5m` or `1h`.
    #[serde(default, rename = "lifetime", skip_serializing_if = "Option::is_none")]
    pub cache_ttl: Option<SmolStr>,
    /// Beta headers of the request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub betas: Vec<SmolStr>,
    /// Other members of the body by name, as raw JSON.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub members: BTreeMap<SmolStr, String>,
    /// Reports of the layers that ran before the request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<LayerReport>,
}

impl RequestRecord {
    /// Creates a record with empty optional fields.
    pub fn new(source: RequestSource, last: Option<EntryId>, model: SmolStr) -> RequestRecord {
        RequestRecord {
            source,
            last,
            model,
            fingerprint: None,
            breakpoints: Vec::new(),
            cache_ttl: None,
            betas: Vec::new(),
            members: BTreeMap::new(),
            layers: Vec::new(),
        }
    }
}

/// Report of one layer of the before-request pipeline.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LayerReport {
    /// Name of the layer.
    pub layer: SmolStr,
    /// True if the layer changed the view.
    #[serde(default)]
    pub acted: bool,
    /// Tokens freed by the layer.
    #[serde(default)]
    pub tokens_freed: u64,
    /// One line that explains why the layer acted or did not act.
    pub reason: String,
}

/// Record of a received response.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ResponseRecord {
    /// Provider's id of the response.
    pub response: ResponseId,
    /// Originator of the request.
    #[serde(default = "RequestSource::main")]
    pub source: RequestSource,
    /// Model that responded.
    #[serde(default)]
    pub model: SmolStr,
    /// Token counts.
    #[serde(default)]
    pub usage: Usage,
    /// Stop reason as the provider names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<SmolStr>,
    /// Price in US dollars, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Cache break detected in this response, with its cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_break: Option<CacheBreak>,
}
