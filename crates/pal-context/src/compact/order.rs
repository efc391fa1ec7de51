//! What is to be compacted, and what the machine is given to work with.

use pal_model::{EntryId, FileSeen, Source};

use crate::Standing;

/// What is to be compacted, and why.
#[derive(Clone, Debug)]
pub struct Order {
    /// What set it off.
    pub trigger: Trigger,
    /// How much of the conversation.
    pub reach: Reach,
    /// Who asked for the request before which it happens.
    pub source: Source,
    /// The user's instructions for the summary.
    pub instructions: Option<String>,
    /// What hooks add to them.
    pub hook_instructions: Option<String>,
    /// The session's notes, if there are any.
    pub notes: Option<Notes>,
    /// The ways that may be tried, none for all.
    pub only: Option<Vec<How>>,
    /// Whether a person is there to answer questions.
    pub is_attended: bool,
    /// What may be put back into sight besides files.
    pub world: World,
    /// What the conversation's requests carry besides their content.
    pub standing: Standing,
}

/// What sets a compaction off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trigger {
    /// The threshold.
    Auto,
    /// The user.
    Manual,
    /// A provider that found the request too long.
    Reactive,
}

impl Trigger {
    /// The name in the log.
    pub fn name(self) -> &'static str {
        match self {
            Trigger::Auto => "auto",
            Trigger::Manual => "manual",
            Trigger::Reactive => "reactive",
        }
    }
}

/// How much of the conversation is compacted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// All of it.
    Whole,
    /// From this entry on; what stands before it stays.
    From(EntryId),
    /// Up to this entry; it and what follows stays.
    UpTo(EntryId),
}

/// How a summary comes about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    /// From the session's notes; no model is asked.
    Notes,
    /// By a fork that shares the conversation's cache.
    Fork,
    /// By the provider's own compaction.
    Provider,
    /// By a request of its own.
    Plain,
    /// By such a request without the oldest rounds.
    Truncated,
    /// Word for word from the log; no model is asked.
    Extractive,
}

impl How {
    /// The name in the log.
    pub fn name(self) -> &'static str {
        match self {
            How::Notes => "notes",
            How::Fork => "fork",
            How::Provider => "provider",
            How::Plain => "plain",
            How::Truncated => "truncated",
            How::Extractive => "extractive",
        }
    }

    /// Whether a model is asked.
    pub fn asks_a_model(self) -> bool {
        !matches!(self, How::Notes | How::Extractive)
    }
}

/// Notes of the session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Notes {
    /// The notes, Markdown in sections.
    pub text: String,
    /// Where they are, as the model is told.
    pub path: String,
    /// The newest entry that they cover.
    pub last_noted: EntryId,
}

/// What may be put back into sight besides files. Files are chosen by the machine and read by the driver.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct World {
    /// Skills in use, newest first.
    pub skills: Vec<Restorable>,
    /// The plan, and that plan mode is on.
    pub plan: Option<String>,
    /// What background agents are doing.
    pub agents: Option<String>,
    /// Texts about what is there now, for a driver whose announcements the log does not know. What the log knows counts as
    /// not announced any more behind a boundary, and is announced anew by an attachment.
    pub announcements: Vec<String>,
    /// What hooks said.
    pub hooks: Vec<String>,
    /// Files that are not restored: transcript, plan, instruction and memory files.
    pub not_restored: Vec<String>,
}

/// A named text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Restorable {
    /// Its name.
    pub name: String,
    /// The text.
    pub text: String,
}

/// A file that the machine would like to put back into sight.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileWanted {
    /// Its path, as the model named it.
    pub path: String,
    /// Most bytes that are of use.
    pub bytes_max: usize,
}

/// A file as it is now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileRead {
    /// Its path, as it was asked for.
    pub path: String,
    /// Its text, or its beginning; none if it cannot be read.
    pub text: Option<String>,
    /// Its real path and what the model knows of it then, where whoever read it keeps account of that.
    pub seen: Option<(String, FileSeen)>,
}
