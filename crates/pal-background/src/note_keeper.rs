//! Session notes (§7.1–7.2), written by a fork in the background or by the agent itself, so that a compaction
//! can use them as its summary without a model (§4.3).

mod fork_notes;
mod inline_notes;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pal_context::{NotesCadence, NotesCoverage, SessionNotes, restore_template_sections};
use pal_engine::{Session, SessionConfig};
use pal_model::{EntryId, Timestamp, ToolUseId};
use pal_process::CancelToken;
use pal_settings::NoteWriter;
use serde::{Deserialize, Serialize};

use crate::background_budget::BackgroundBudget;
use crate::background_config::BackgroundConfig;
use crate::timed_exchange::ExchangeListener;
use fork_notes::ForkNoteWriter;
use inline_notes::InlineNoteWriter;
pub use inline_notes::{NOTES_ATTACHMENT, NotesReminder};

/// Maximum wait of a compaction for notes being written.
const WAIT: Duration = Duration::from_secs(15);

/// Interval for checking cancellation during that wait.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Keeps the notes of a session.
pub struct NoteKeeper {
    kept: NotesFile,
    cadence: NotesCadence,
    /// Tokens of the context before the first message.
    begun: Option<u64>,
    writer: NotesBackend,
}

/// Writer of the notes.
enum NotesBackend {
    Fork(Box<ForkNoteWriter>),
    Main(InlineNoteWriter),
}

/// Files of the notes and of their progress.
struct NotesFile {
    file: PathBuf,
    state: PathBuf,
    template: String,
    noted: Option<NotesCoverage>,
}

/// Last entry that the notes cover, as saved next to them.
#[derive(Serialize, Deserialize)]
struct NotesProgress {
    last: String,
    tokens: u64,
}

impl NoteKeeper {
    /// Opens the notes of a session in this directory. The home may override the template and the directives.
    pub fn open(
        session: &Path,
        (by, cadence): (NoteWriter, NotesCadence),
        config: &BackgroundConfig,
        allowance: Arc<BackgroundBudget>,
        listener: Arc<dyn ExchangeListener>,
    ) -> NoteKeeper {
        let folder = session.join("notes");
        let own = |name: &str, usual: &str| {
            let text = std::fs::read_to_string(config.home.join("notes").join(name)).ok();
            text.filter(|text| !text.trim().is_empty()).unwrap_or_else(|| usual.to_owned())
        };
        let state = folder.join("state.json");
        let kept = NotesFile {
            file: folder.join("notes.md"),
            noted: reach(&state),
            state,
            template: own("template.md", pal_context::NOTES_TEMPLATE),
        };
        let writer = match by {
            NoteWriter::Fork => {
                let directive = own("directive.md", pal_context::NOTES_DIRECTIVE);
                NotesBackend::Fork(Box::new(ForkNoteWriter::new(directive, config, allowance, listener)))
            }
            NoteWriter::Main => NotesBackend::Main(InlineNoteWriter::new(own(
                "passing.md",
                pal_context::INLINE_NOTES_DIRECTIVE,
            ))),
        };
        NoteKeeper { kept, cadence: cadence.within(&config.model.limits), begun: None, writer }
    }

    /// Path of the notes if the agent writes them itself.
    pub fn own_file(&self) -> Option<PathBuf> {
        match self.writer {
            NotesBackend::Fork(_) => None,
            // Calls are judged by real paths; the directory exists from the first notes on.
            NotesBackend::Main(_) => self.kept.real(),
        }
    }

    /// Collects finished notes, and starts a fork if new ones are due. Returns a failure for the user.
    pub fn look(&mut self, session: &Session, engine: &SessionConfig, now: Timestamp) -> Option<String> {
        let is_due = self.is_due(session);
        match &mut self.writer {
            NotesBackend::Fork(forking) => forking.look(&mut self.kept, is_due, session, engine, now),
            NotesBackend::Main(_) => None,
        }
    }

    /// Reminder before a request, if the agent writes the notes itself and they are due.
    pub fn reminder(&mut self, session: &Session) -> Option<Result<NotesReminder, String>> {
        let (cadence, is_due) = (self.cadence, self.is_due(session));
        match &mut self.writer {
            NotesBackend::Main(passing) if is_due => passing.reminder(&self.kept, cadence, session),
            _ => None,
        }
    }

    fn is_due(&mut self, session: &Session) -> bool {
        let noted = self.kept.noted;
        let begun = *self.begun.get_or_insert_with(|| match noted {
            // The initial size of a resumed session is unknown.
            None if session.view().branch().iter().any(is_answer) => 0,
            _ => session.view().size().tokens,
        });
        self.cadence.is_due(session.view(), noted.as_ref(), begun)
    }

    /// Notes that a call of the agent changes this file.
    pub fn calling(&mut self, call: &ToolUseId, file: &Path, session: &Session) {
        if let NotesBackend::Main(passing) = &mut self.writer
            && self.kept.real().as_deref() == Some(file)
        {
            passing.calling(call, session);
        }
    }

    /// Handles the return of a call, or of all calls if `call` is none. Returns whether the notes had to be
    /// repaired after the last edit.
    pub fn returned(&mut self, call: Option<(&ToolUseId, bool)>) -> Option<Result<bool, String>> {
        let NotesBackend::Main(passing) = &mut self.writer else { return None };
        let covers = passing.returned(call)?;
        let kept = self.kept.keep(covers);
        Some(kept.map_err(|error| format!("the notes of the session were not kept: {error}")))
    }

    /// Notes for a compaction, after a short wait for those being written.
    pub fn for_compaction(&mut self, cancel: &CancelToken) -> Option<SessionNotes> {
        if let NotesBackend::Fork(forking) = &mut self.writer {
            let until = Instant::now() + WAIT;
            while forking.is_running() && Instant::now() < until && !cancel.is_cancelled() {
                let _ = forking.take_in(&mut self.kept, POLL_INTERVAL);
            }
        }
        let noted = self.kept.noted?;
        let text = std::fs::read_to_string(&self.kept.file).ok()?;
        Some(SessionNotes { text, path: self.kept.file.display().to_string(), last_covered: noted.last })
    }

    /// Restarts the growth count after a compaction.
    pub fn compacted(&mut self, tokens: u64) {
        if let Some(noted) = self.kept.noted {
            // A failure is corrected with the next notes.
            let _ = self.kept.note(NotesCoverage { tokens, ..noted });
        }
        if let NotesBackend::Main(passing) = &mut self.writer {
            passing.compacted();
        }
    }

    /// Cancels notes being written.
    pub fn end(&mut self) {
        if let NotesBackend::Fork(forking) = &mut self.writer {
            forking.end();
        }
    }
}

impl NotesFile {
    /// Current notes; creates them from the template if missing.
    fn prepared(&self) -> io::Result<String> {
        let folder = self.file.parent().unwrap_or(&self.file);
        pal_store::create_private_directory(folder).map_err(|error| io::Error::other(error.to_string()))?;
        match std::fs::read_to_string(&self.file) {
            Ok(notes) => Ok(notes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                pal_store::replace_private_file(&self.file, self.template.as_bytes())?;
                Ok(self.template.clone())
            }
            Err(error) => Err(error),
        }
    }

    /// Real path of the notes, if they exist.
    fn real(&self) -> Option<PathBuf> {
        self.file.canonicalize().ok()
    }

    /// Repairs the notes and records their coverage. Returns whether a repair was needed.
    fn keep(&mut self, covers: NotesCoverage) -> io::Result<bool> {
        let written = std::fs::read_to_string(&self.file)?;
        let mended = restore_template_sections(&written, &self.template);
        if mended != written {
            pal_store::replace_private_file(&self.file, mended.as_bytes())?;
        }
        self.note(covers)?;
        Ok(mended != written)
    }

    fn note(&mut self, noted: NotesCoverage) -> io::Result<()> {
        let reach = NotesProgress { last: noted.last.to_string(), tokens: noted.tokens };
        pal_store::replace_private_file(&self.state, &serde_json::to_vec(&reach)?)?;
        self.noted = Some(noted);
        Ok(())
    }
}

fn is_answer(entry: &pal_model::LogEntry) -> bool {
    matches!(entry.body, pal_model::EntryBody::Assistant(_))
}

fn reach(state: &Path) -> Option<NotesCoverage> {
    let reach: NotesProgress = serde_json::from_slice(&std::fs::read(state).ok()?).ok()?;
    let last: EntryId = reach.last.parse().ok()?;
    Some(NotesCoverage { last, tokens: reach.tokens })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use pal_model::{IdSource, Timestamp};

    use super::*;
    use crate::fork_runner::ForkReport;

    fn noted(seed: u64) -> NotesCoverage {
        NotesCoverage { last: IdSource::seeded(seed).next_id(Timestamp::default()), tokens: 20_000 }
    }

    /// Notes written up to one entry while a fork covers a second.
    fn under_way(folder: &Path) -> (NoteKeeper, Sender<Result<ForkReport, String>>) {
        let (sender, done): (_, Receiver<Result<ForkReport, String>>) = channel();
        let mut kept = NotesFile {
            file: folder.join("notes.md"),
            state: folder.join("state.json"),
            template: String::from("# State\n_Now._\n"),
            noted: None,
        };
        kept.prepared().unwrap();
        kept.note(noted(1)).unwrap();
        let writer = NotesBackend::Fork(Box::new(ForkNoteWriter::under_way(folder, done, noted(2))));
        (NoteKeeper { kept, cadence: NotesCadence::default(), begun: None, writer }, sender)
    }

    #[test]
    fn a_compaction_waits_for_notes_that_are_being_written() {
        let folder = tempfile::tempdir().unwrap();
        let (mut keeping, sender) = under_way(folder.path());
        let file = folder.path().join("notes.md");
        std::thread::scope(|scope| {
            scope.spawn(move || {
                std::thread::sleep(POLL_INTERVAL * 2);
                std::fs::write(&file, "# State\n_Now._\nHalf done.\n").unwrap();
                sender.send(Ok(ForkReport { changes: 1, ..ForkReport::default() })).unwrap();
            });
            let notes = keeping.for_compaction(&CancelToken::new()).unwrap();
            assert_eq!(notes.last_covered, noted(2).last);
            assert!(notes.text.contains("Half done."), "{}", notes.text);
        });
        assert_eq!(
            reach(&folder.path().join("state.json")),
            Some(noted(2)),
            "a resumed session knows it, too"
        );
    }

    #[test]
    fn cancellation_ends_the_wait_and_failed_notes_keep_the_earlier_ones() {
        let folder = tempfile::tempdir().unwrap();
        let (mut keeping, sender) = under_way(folder.path());
        let cancel = CancelToken::new();
        cancel.cancel();
        assert_eq!(keeping.for_compaction(&cancel).unwrap().last_covered, noted(1).last);
        sender.send(Err(String::from("the provider is gone"))).unwrap();
        assert_eq!(keeping.for_compaction(&CancelToken::new()).unwrap().last_covered, noted(1).last);
    }
}
