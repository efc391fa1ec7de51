//! The payloads of entries that are not decisions: what was said, what was sent, what came back.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

use crate::{CacheBreak, Content, EntryId, ResponseId, Text, Usage};

/// Who speaks in a message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The user's side: people, programs, tool results, reminders.
    User,
    /// The model.
    Assistant,
    /// The operator, inside the conversation.
    System,
}

impl Role {
    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::System => "system",
        }
    }
}

/// How a session began: where, by which program, under which title.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Session {
    /// The program that wrote the session, ours or another agent.
    pub program: String,
    /// Its version, where known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The working directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The title, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The id that the other program gave to an imported session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreign_id: Option<String>,
}

/// Who is behind an entry on the user's side.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// A person typed it, or a program gave it as the prompt. These are the *user messages*.
    Person,
    /// Tools answered.
    Tool,
    /// The agent itself: environment messages, observations, command output.
    Agent,
    /// A result that stands in for one that never came, sent once and therefore kept.
    Synthetic,
}

impl Origin {
    /// The name in the log.
    pub fn name(self) -> &'static str {
        match self {
            Origin::Person => "person",
            Origin::Tool => "tool",
            Origin::Agent => "agent",
            Origin::Synthetic => "synthetic",
        }
    }

    /// The origin with this name; an unknown one counts as a person's, so that nothing a person may have said
    /// is taken for less.
    pub fn from_name(name: &str) -> Origin {
        match name {
            "tool" => Origin::Tool,
            "agent" => Origin::Agent,
            "synthetic" => Origin::Synthetic,
            _ => Origin::Person,
        }
    }
}

/// Something said on the user's side.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct User {
    /// Who is behind it.
    pub origin: Origin,
    /// What was said.
    pub content: Content,
    /// What the session has to remember of it, where tools answered.
    pub aftermath: Aftermath,
}

/// What a session has to remember of what tools did, besides what they said.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Aftermath {
    /// Files that the model now knows, by their real paths.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, FileSeen>,
    /// The working directory from now on, where it is another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// The permission mode from now on, where it is another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<SmolStr>,
    /// A skill that is in use from now on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
}

impl Aftermath {
    /// Whether there is nothing to remember.
    pub fn is_empty(&self) -> bool {
        *self == Aftermath::default()
    }

    /// Takes in what came later.
    pub fn extend(&mut self, later: Aftermath) {
        self.files.extend(later.files);
        self.directory = later.directory.or(self.directory.take());
        self.mode = later.mode.or(self.mode.take());
        self.skill = later.skill.or(self.skill.take());
    }
}

/// What the model knows of a file.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FileSeen {
    /// A fingerprint of what the file held.
    pub print: String,
    /// The call that showed or wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<SmolStr>,
    /// The first line that was shown and how many, where it was not the whole file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<(u64, u64)>,
}

/// Something the model said: one block or one whole response.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Assistant {
    /// The response it belongs to. Entries of one response are one message.
    pub response: Option<ResponseId>,
    /// The model that said it.
    pub model: Option<SmolStr>,
    /// What was said, raw.
    pub content: Content,
}

/// Something the system adds for the model: a reminder, a memory, a notice.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attachment {
    /// What sort it is, such as `memory` or `date_change`.
    pub what: SmolStr,
    /// The content, as the model shall read it.
    pub content: Content,
    /// The file that it hands over, where it is one.
    pub file: Option<String>,
}

/// What stands before the messages, as rendered once per session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Prefix {
    /// The system blocks: a JSON array, empty if there is no system prompt.
    pub system: Text,
    /// The tools: a JSON array.
    pub tools: Text,
    /// The reminder before the first message (instruction files, memory index, date), if there is one.
    pub context: Content,
    /// Tokens of a prefix that an imported transcript does not hold: what the first call reported beyond the
    /// visible text.
    pub unseen_tokens: u64,
    /// What the parts of it are called and come from.
    pub notes: PrefixNotes,
}

/// What the parts of a prefix are called and come from: for whoever explains a change.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PrefixNotes {
    /// The system blocks, in order. Empty if nothing is known of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub system: Vec<SystemNote>,
    /// The files that went into the context, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<SourceNote>,
}

impl PrefixNotes {
    /// Whether nothing is noted.
    pub fn is_empty(&self) -> bool {
        self.system.is_empty() && self.sources.is_empty()
    }
}

/// What a system block is made of.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SystemNote {
    /// Its sections, in order.
    pub sections: Vec<SectionNote>,
    /// Whether it is the same for every user, machine, date and session.
    #[serde(rename = "static")]
    pub is_static: bool,
    /// Whether a cache mark may stand on it.
    pub markable: bool,
}

/// A section of a system block.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SectionNote {
    /// Its name.
    pub name: SmolStr,
    /// Bytes of its text; two line ends stand between sections.
    pub bytes: u64,
    /// Why it may change within a session; none if it may not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volatile: Option<String>,
}

/// A file that went into the context.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SourceNote {
    /// Its path.
    pub path: String,
    /// A fingerprint of what it said.
    pub print: String,
}

/// Who asks: the main thread, an agent, or one of the background queries.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Source(SmolStr);

impl Source {
    /// The main thread.
    pub fn main() -> Source {
        Source(SmolStr::new_static("main"))
    }

    /// Requests that only keep the cache warm.
    pub fn ping() -> Source {
        Source(SmolStr::new_static("ping"))
    }

    /// The source with this name: `main`, `sdk`, `agent:<name>`, `compact`, `notes`, `extract`, `dream`,
    /// `progress`, `ping` or `title`.
    pub fn named(name: &str) -> Source {
        Source(SmolStr::new(name))
    }

    /// Its name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether requests of this source carry the conversation itself, so that what they sent is what the next
    /// request continues. Forks repeat it and add a directive of their own.
    pub fn is_conversation(&self) -> bool {
        matches!(self.0.as_str(), "main" | "sdk") || self.0.starts_with("agent:")
    }
}

/// A request that left: everything up to `last` counts as sent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RequestSent {
    /// Who asked.
    pub source: Source,
    /// The newest entry that it covers; none if it covers no entry at all.
    pub last: Option<EntryId>,
    /// The model that was asked.
    #[serde(default)]
    pub model: SmolStr,
    /// The fingerprint of the rendered body, where we rendered it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// Blocks of the messages that carry a cache mark, counted over all messages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<u64>,
    /// For how long what is marked is kept: `5m` or `1h`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifetime: Option<SmolStr>,
    /// The beta headers that it was sent with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub betas: Vec<SmolStr>,
    /// What the conversation's requests carry besides their content, by name, as raw JSON.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub members: BTreeMap<SmolStr, String>,
    /// What the layers did before it left.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<LayerReport>,
}

impl RequestSent {
    /// A request of a source for a model, of which nothing else is known.
    pub fn plain(source: Source, last: Option<EntryId>, model: SmolStr) -> RequestSent {
        RequestSent {
            source,
            last,
            model,
            fingerprint: None,
            marks: Vec::new(),
            lifetime: None,
            betas: Vec::new(),
            members: BTreeMap::new(),
            layers: Vec::new(),
        }
    }
}

/// What one layer of the pipeline did before a request.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LayerReport {
    /// The layer.
    pub layer: SmolStr,
    /// Whether it did anything.
    #[serde(default)]
    pub acted: bool,
    /// Tokens that it freed.
    #[serde(default)]
    pub tokens_freed: u64,
    /// Why it acted or did not, in one line.
    pub reason: String,
}

/// A response that came back.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ResponseGot {
    /// Which one.
    pub response: ResponseId,
    /// Who asked.
    #[serde(default = "Source::main")]
    pub source: Source,
    /// The model that answered.
    #[serde(default)]
    pub model: SmolStr,
    /// What it took.
    #[serde(default)]
    pub usage: Usage,
    /// Why it stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<SmolStr>,
    /// What it cost, in US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Reads from the cache that fell, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_break: Option<CacheBreak>,
}
