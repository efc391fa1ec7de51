//! Request for a compaction and its inputs.

use pal_model::{EntryId, KnownFile, RequestSource};

use crate::RequestParams;

/// Request for a compaction.
#[derive(Clone, Debug)]
pub struct CompactionRequest {
    /// Trigger of the compaction.
    pub trigger: CompactionTrigger,
    /// One-line reason, if it was decided by price.
    pub reason: Option<String>,
    /// Range of the conversation to compact.
    pub range: CompactionRange,
    /// Source of the request before which it happens.
    pub source: RequestSource,
    /// Instructions for the summary, by the user or, if the trigger is the model, by the model.
    pub instructions: Option<String>,
    /// Additional instructions of hooks.
    pub hook_instructions: Option<String>,
    /// Session notes, if there are any.
    pub notes: Option<SessionNotes>,
    /// Allowed summary methods; `None` for all.
    pub methods: Option<Vec<SummaryMethod>>,
    /// True if a person can answer questions.
    pub is_attended: bool,
    /// Content to restore besides files.
    pub sources: RestoreSources,
    /// Parameters that the conversation's requests repeat.
    pub params: RequestParams,
}

/// Trigger of a compaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CompactionTrigger {
    /// The automatic threshold.
    Auto,
    /// The user.
    Manual,
    /// The model, which asked for it in the middle of its work.
    Model,
    /// The provider rejected a request as too long.
    Reactive,
    /// A pause that is about to outlive the cache.
    Idle,
}

impl CompactionTrigger {
    /// Name in the log.
    pub fn name(self) -> &'static str {
        match self {
            CompactionTrigger::Auto => "auto",
            CompactionTrigger::Manual => "manual",
            CompactionTrigger::Model => "model",
            CompactionTrigger::Reactive => "reactive",
            CompactionTrigger::Idle => "idle",
        }
    }
}

/// Range of a compaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CompactionRange {
    /// The whole conversation.
    Whole,
    /// From this entry on; earlier messages stay.
    From(EntryId),
    /// Up to this entry; it and later messages stay.
    UpTo(EntryId),
}

/// Method of making a summary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SummaryMethod {
    /// From the session notes, without a model.
    Notes,
    /// By a fork that shares the conversation's cache.
    Fork,
    /// By the provider's own compaction.
    Provider,
    /// By a separate request.
    Plain,
    /// By a separate request without the oldest rounds.
    Truncated,
    /// Extracted verbatim from the log, without a model.
    Extractive,
}

impl SummaryMethod {
    /// Name in the log.
    pub fn name(self) -> &'static str {
        match self {
            SummaryMethod::Notes => "notes",
            SummaryMethod::Fork => "fork",
            SummaryMethod::Provider => "provider",
            SummaryMethod::Plain => "plain",
            SummaryMethod::Truncated => "truncated",
            SummaryMethod::Extractive => "extractive",
        }
    }

    /// Returns true if the method asks a model.
    pub fn uses_model(self) -> bool {
        !matches!(self, SummaryMethod::Notes | SummaryMethod::Extractive)
    }
}

/// The notes of a session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionNotes {
    /// The notes, Markdown in sections.
    pub text: String,
    /// Path of the notes file, as told to the model.
    pub path: String,
    /// Newest entry that they cover.
    pub last_covered: EntryId,
}

/// Content to restore besides files. The machine chooses files, the caller reads them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RestoreSources {
    /// Skills in use, newest first.
    pub skills: Vec<NamedText>,
    /// Instructions of plan mode, if it is on.
    pub plan_mode: Option<String>,
    /// The plan that was approved last.
    pub plan: Option<String>,
    /// Subagents and commands that run in the background.
    pub background: Option<String>,
    /// Announcement texts, for a caller whose announcements are not in the log. Those in the log count as not
    /// made any more behind a boundary, and an attachment makes them again.
    pub announcements: Vec<String>,
    /// Texts of hooks.
    pub hooks: Vec<String>,
    /// Files to skip: transcript, plan, instruction and memory files.
    pub not_restored: Vec<String>,
}

/// A named text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedText {
    /// Name, for the heading.
    pub name: String,
    /// The text.
    pub text: String,
}

/// A file to read for restoring.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileRequest {
    /// Path as spelled by the model.
    pub path: String,
    /// Maximum useful bytes.
    pub bytes_max: usize,
    /// First line of the part that the model read last, counted from 1.
    pub first_line: u64,
}

/// Current content of a requested file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RestoredFile {
    /// Path as requested.
    pub path: String,
    /// Text or its beginning; `None` if it cannot be read.
    pub text: Option<String>,
    /// Line of the file at which the text begins, counted from 1.
    pub first_line: u64,
    /// Real path and known state of the file, if the caller tracks files.
    pub seen: Option<(String, KnownFile)>,
}
