//! Notes that the agent writes itself in passing: it is reminded when they are due, and whatever it then edits of the file counts.
//!
//! Nothing before the messages changes by it, and no request is made for it: what it costs is what is written, and that it
//! stands in the conversation until the next compaction.

use std::path::PathBuf;

use pal_context::{Noted, NotesCadence, notes_directive};
use pal_engine::Session;
use pal_model::{FileSeen, ToolUseId};

use super::KeptNotes;

/// The sort of attachment that a reminder is.
pub(crate) const NOTES: &str = "notes";

/// What the agent is told.
pub(crate) struct Reminder {
    pub(crate) text: String,
    /// The file and that the agent knows it, so that it can be edited.
    pub(crate) seen: Option<(PathBuf, FileSeen)>,
}

/// The agent as the writer of notes.
pub(super) struct Passing {
    words: String,
    /// What there was when it was reminded last, since the last compaction.
    reminded: Option<Noted>,
    /// Whether it was shown the file since the program started.
    was_shown: bool,
    /// Edits of the file that are under way, and what they know of.
    under_way: Vec<(ToolUseId, Noted)>,
    /// What those know of that came about meanwhile.
    written: Option<Noted>,
}

impl Passing {
    pub(super) fn new(words: String) -> Passing {
        Passing { words, reminded: None, was_shown: false, under_way: Vec::new(), written: None }
    }

    /// What the agent is told; none if it was told before and little was said since.
    pub(super) fn reminder(
        &mut self,
        kept: &KeptNotes,
        cadence: NotesCadence,
        session: &Session,
    ) -> Option<Result<Reminder, String>> {
        let view = session.view();
        if self.reminded.is_some_and(|reminded| !cadence.has_grown(view, &reminded)) {
            return None;
        }
        self.reminded = view.newest().map(|last| Noted { last, tokens: view.size().tokens });
        Some(self.said(kept, session).map_err(|error| format!("notes: {error}")))
    }

    fn said(&mut self, kept: &KeptNotes, session: &Session) -> std::io::Result<Reminder> {
        let notes = kept.prepared()?;
        let file = kept.file.canonicalize()?;
        let path = file.display().to_string();
        // Which sections are too long follows from all of them; shown are only those that it cannot know yet.
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
        Ok(Reminder { text: text.trim_end().to_owned(), seen })
    }

    /// The agent makes a call that changes the file: it knows what was said before the answer that makes it.
    pub(super) fn calling(&mut self, call: &ToolUseId, session: &Session) {
        let tokens = session.view().size().tokens;
        self.under_way.extend(session.newest_known().map(|last| (call.clone(), Noted { last, tokens })));
    }

    /// A call returned, or all that did not are given up. What the notes cover once none of these is under way: while one is,
    /// nobody else may touch the file.
    pub(super) fn returned(&mut self, call: Option<(&ToolUseId, bool)>) -> Option<Noted> {
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

    /// The conversation was compacted, and the reminder is out of sight.
    pub(super) fn compacted(&mut self) {
        self.reminded = None;
    }
}
