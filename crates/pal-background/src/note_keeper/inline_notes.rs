//! Notes written by the agent itself: it is reminded when they are due, and its edits of the file count.
//!
//! The prompt prefix does not change and no request is made; the cost is the written text, which stays in the
//! conversation until the next compaction.

use std::path::PathBuf;

use pal_context::{NotesCadence, NotesCoverage, notes_directive};
use pal_engine::Session;
use pal_model::{KnownFile, ToolUseId};

use super::NotesFile;

/// Attachment kind of a reminder.
pub const NOTES_ATTACHMENT: &str = "notes";

/// A reminder for the agent.
pub struct NotesReminder {
    /// Text for the model.
    pub text: String,
    /// The file as known to the agent, so that it may edit it.
    pub seen: Option<(PathBuf, KnownFile)>,
}

/// The agent as writer of notes.
pub(super) struct InlineNoteWriter {
    words: String,
    /// Coverage at the last reminder since a compaction.
    reminded: Option<NotesCoverage>,
    /// Whether this process has shown the file to the agent.
    was_shown: bool,
    /// Running edits and their coverage.
    under_way: Vec<(ToolUseId, NotesCoverage)>,
    /// Coverage of finished edits.
    written: Option<NotesCoverage>,
}

impl InlineNoteWriter {
    pub(super) fn new(words: String) -> InlineNoteWriter {
        InlineNoteWriter { words, reminded: None, was_shown: false, under_way: Vec::new(), written: None }
    }

    /// Returns a reminder unless one was given recently.
    pub(super) fn reminder(
        &mut self,
        kept: &NotesFile,
        cadence: NotesCadence,
        session: &Session,
    ) -> Option<Result<NotesReminder, String>> {
        let view = session.view();
        if self.reminded.is_some_and(|reminded| !cadence.has_grown(view, &reminded)) {
            return None;
        }
        self.reminded = view.newest_id().map(|last| NotesCoverage { last, tokens: view.size().tokens });
        Some(self.said(kept, session).map_err(|error| format!("notes: {error}")))
    }

    fn said(&mut self, kept: &NotesFile, session: &Session) -> std::io::Result<NotesReminder> {
        let notes = kept.prepared()?;
        let file = kept.file.canonicalize()?;
        let path = file.display().to_string();
        // All sections are checked for length; only unknown ones are shown.
        let shown = !std::mem::replace(&mut self.was_shown, true) && kept.noted.is_none();
        let estimator = session.view().estimator();
        let text = match shown {
            true => {
                let words = self.words.replace("{notes}", "\nThe notes now:\n<notes>\n{notes}\n</notes>\n");
                notes_directive(&words, &path, &notes, estimator)
            }
            false => notes_directive(&self.words.replace("{notes}", ""), &path, &notes, estimator),
        };
        let seen = pal_tools::file_seen(&file).map(|seen| (file, seen));
        Ok(NotesReminder { text: text.trim_end().to_owned(), seen })
    }

    /// Records a call that changes the file, with the messages it knows.
    pub(super) fn calling(&mut self, call: &ToolUseId, session: &Session) {
        let tokens = session.view().size().tokens;
        self.under_way
            .extend(session.newest_known().map(|last| (call.clone(), NotesCoverage { last, tokens })));
    }

    /// Handles the return of an edit, or gives up all. Returns the coverage once no edit is running.
    pub(super) fn returned(&mut self, call: Option<(&ToolUseId, bool)>) -> Option<NotesCoverage> {
        match call {
            None => self.under_way.clear(),
            Some((call, is_error)) => {
                let at = self.under_way.iter().position(|(id, _)| id == call)?;
                let (_, covers) = self.under_way.swap_remove(at);
                if !is_error {
                    self.written = Some(covers);
                }
            }
        }
        self.written.take_if(|_| self.under_way.is_empty())
    }

    /// Forgets the reminder, which is no longer visible.
    pub(super) fn compacted(&mut self) {
        self.reminded = None;
    }
}
