//! Everything a session needs from outside, one small trait per role.

use pal_context::{CompactionRequest, FileRequest, RestoreSources, RestoredFile, SessionNotes};
use pal_model::{Boundary, PromptPrefix, Timestamp};
use pal_view::View;

use crate::PendingAnnouncement;
use crate::model_client::ModelClient;

/// Reads files of the project.
pub trait FileReader {
    /// Reads a file as it is now.
    fn read_file(&mut self, wanted: &FileRequest) -> RestoredFile;
}

/// Notifies the user.
pub trait Notifier {
    /// Shows one line to the user.
    fn notice(&mut self, line: &str);

    /// Withdraws the visible part of the current answer; another attempt replaces it.
    fn discard_answer(&mut self) {}
}

/// Tells the time.
pub trait TimeSource {
    /// Returns the time; `earlier` is when the work at hand began, which is all that a replay knows.
    fn now(&mut self, earlier: Timestamp) -> Timestamp {
        earlier
    }
}

/// Takes part in compactions: hooks, notes and the project around the session.
pub trait CompactionObserver {
    /// Returns the inputs of a compaction that is about to start.
    fn before_compaction(&mut self, _order: &CompactionRequest, _view: &View) -> CompactionInputs {
        CompactionInputs::default()
    }

    /// Returns a smaller prompt prefix after a refusal because of length, if the current one is not meant for a window of
    /// `window` tokens.
    fn smaller_prefix(&mut self, _view: &View, _window: u64) -> Option<PromptPrefix> {
        None
    }

    /// Returns what to append to the log after a compaction.
    fn after_compaction(&mut self, _boundary: &Boundary, _view: &View) -> CompactionFollowUp {
        CompactionFollowUp::default()
    }
}

/// All roles that preparing, sending and compacting a conversation need.
pub trait SessionHost: ModelClient + FileReader + Notifier + TimeSource + CompactionObserver {}

impl<T: ModelClient + FileReader + Notifier + TimeSource + CompactionObserver> SessionHost for T {}

/// Inputs of a compaction.
#[derive(Clone, Debug, Default)]
pub struct CompactionInputs {
    /// Name of the hook that blocks the compaction.
    pub blocked_by: Option<String>,
    /// Instructions that hooks add to the summary prompt.
    pub instructions: Option<String>,
    /// Context to restore after the compaction, besides files.
    pub sources: RestoreSources,
    /// Session notes, if they are kept.
    pub notes: Option<SessionNotes>,
}

/// Entries to append after a compaction.
#[derive(Clone, Debug, Default)]
pub struct CompactionFollowUp {
    /// New prompt prefix, if it differs from the current one.
    pub prefix: Option<PromptPrefix>,
    /// Attachments for the model: kind and text.
    pub notes: Vec<(&'static str, String)>,
    /// Announcement of all tools, skills and agents: a compaction drops the earlier ones.
    pub announcement: Option<PendingAnnouncement>,
}
