//! Results of session notes in a replay.

use pal_model::Boundary;
use pal_view::Estimator;
use serde::Serialize;

use crate::replay::recorded_session::texts;
use crate::replay::replay_totals::ReplayTotals;

/// Results of notes in a replay.
#[derive(Clone, Debug, Default, Serialize)]
pub struct NotesReport {
    /// Writer.
    pub by: &'static str,
    /// Number of times they were written.
    pub updates: u64,
    /// Usage of forks. The agent itself makes no requests for notes.
    pub forks: ReplayTotals,
    /// Tokens that were written for them, in edits or whole.
    pub written_tokens: u64,
    /// Tokens of the reminders that the agent got.
    pub reminder_tokens: u64,
    /// Tokens of the notes at their longest.
    pub longest: u64,
    /// Forks that were not done when a compaction had waited for them.
    pub late: u64,
    /// Audit of the notes where a compaction used them, before any repair.
    pub kept: NotesAudit,
    /// Audit of a whole summary of the same ranges.
    pub full: NotesAudit,
}

/// Audit of summaries (§4.13) before any repair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NotesAudit {
    /// Number of summaries.
    pub summaries: u64,
    /// Tokens of all of them, repairs included.
    pub tokens: u64,
    /// User messages, and those contained verbatim.
    pub user_messages: u64,
    /// Those contained in it.
    pub user_messages_verbatim: u64,
    /// Paths that were edited.
    pub paths: u64,
    /// Those that are named.
    pub paths_kept: u64,
    /// Open tasks.
    pub todos: u64,
    /// Those that are named.
    pub todos_kept: u64,
    /// Stretches that ended with an error.
    pub errors: u64,
    /// Those whose error is named.
    pub errors_kept: u64,
    /// Paths that were never mentioned.
    pub invented: u64,
}

impl NotesAudit {
    /// Adds what others had.
    pub fn absorb(&mut self, other: &NotesAudit) {
        self.summaries += other.summaries;
        self.tokens += other.tokens;
        self.user_messages += other.user_messages;
        self.user_messages_verbatim += other.user_messages_verbatim;
        self.paths += other.paths;
        self.paths_kept += other.paths_kept;
        self.todos += other.todos;
        self.todos_kept += other.todos_kept;
        self.errors += other.errors;
        self.errors_kept += other.errors_kept;
        self.invented += other.invented;
    }

    pub(crate) fn of(boundary: &Boundary, estimator: Estimator) -> NotesAudit {
        let audit = boundary.audit.clone().unwrap_or_default();
        let summary = texts(&boundary.summary).join("\n");
        NotesAudit {
            summaries: 1,
            tokens: estimator.total(estimator.text(&summary)),
            user_messages: audit.user_messages,
            user_messages_verbatim: audit.user_messages_verbatim,
            paths: audit.paths,
            paths_kept: audit.paths_kept,
            todos: audit.todos,
            todos_kept: audit.todos_kept,
            errors: u64::from(audit.error_kept.is_some()),
            errors_kept: u64::from(audit.error_kept == Some(true)),
            invented: audit.invented.len() as u64,
        }
    }
}
