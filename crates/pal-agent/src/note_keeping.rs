//! Notes of the session (§7.1–7.2): a fork writes them aside while the conversation goes on, or the agent itself in passing, so
//! that a compaction can take them for a summary without asking a model (§4.3).

mod fork;
mod passing;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pal_context::{Noted, Notes, NotesCadence, mended_notes};
use pal_engine::{Engine, Session};
use pal_model::{EntryId, Timestamp, ToolUseId};
use pal_process::Cancel;
use pal_settings::NotesBy;
use serde::{Deserialize, Serialize};

use crate::allowance::Allowance;
use crate::handle::Handle;
use crate::options::Options;
use fork::Forking;
pub(crate) use passing::NOTES;
use passing::{Passing, Reminder};

/// How long a compaction waits for notes that are being written.
const WAIT: Duration = Duration::from_secs(15);

/// How often whoever waits for them looks whether somebody wants an end to that.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Keeps the notes of a session.
pub(crate) struct NoteKeeping {
    kept: KeptNotes,
    cadence: NotesCadence,
    /// How many tokens stood there before anything was said.
    begun: Option<u64>,
    writer: Writer,
}

/// Who writes them.
enum Writer {
    Fork(Box<Forking>),
    Main(Passing),
}

/// The files: the notes, and how far they are written.
struct KeptNotes {
    file: PathBuf,
    state: PathBuf,
    template: String,
    noted: Option<Noted>,
}

/// How far notes are written, as it is kept beside them.
#[derive(Serialize, Deserialize)]
struct Reach {
    last: String,
    tokens: u64,
}

impl NoteKeeping {
    /// Goes on with the notes of a session, if there are any; none if nobody keeps any. The home may have a template and words
    /// for whoever writes them of the user's own.
    pub(crate) fn open(
        session: &Path,
        options: &Options,
        allowance: Arc<Allowance>,
        handle: Handle,
    ) -> Option<NoteKeeping> {
        let (by, cadence) = options.notes?;
        let folder = session.join("notes");
        let own = |name: &str, usual: &str| {
            let text = std::fs::read_to_string(options.home.join("notes").join(name)).ok();
            text.filter(|text| !text.trim().is_empty()).unwrap_or_else(|| usual.to_owned())
        };
        let state = folder.join("state.json");
        let kept = KeptNotes {
            file: folder.join("notes.md"),
            noted: reach(&state),
            state,
            template: own("template.md", pal_context::TEMPLATE),
        };
        let writer = match by {
            NotesBy::Fork => {
                let directive = own("directive.md", pal_context::DIRECTIVE);
                Writer::Fork(Box::new(Forking::new(directive, options, allowance, handle)))
            }
            NotesBy::Main => Writer::Main(Passing::new(own("passing.md", pal_context::PASSING))),
        };
        Some(NoteKeeping { kept, cadence: cadence.within(&options.limits), begun: None, writer })
    }

    /// The file, where the agent writes it itself.
    pub(crate) fn own_file(&self) -> Option<PathBuf> {
        match self.writer {
            Writer::Fork(_) => None,
            // Where it really is, as calls are judged by; its folder is made with the first notes.
            Writer::Main(_) => self.kept.real(),
        }
    }

    /// Takes in what was written meanwhile, and has notes written by a fork if they are due. What fails is told.
    pub(crate) fn look(&mut self, session: &Session, engine: &Engine, now: Timestamp) -> Option<String> {
        let is_due = self.is_due(session);
        match &mut self.writer {
            Writer::Fork(forking) => forking.look(&mut self.kept, is_due, session, engine, now),
            Writer::Main(_) => None,
        }
    }

    /// What the agent is told before a request, if it is to write notes itself and they are due.
    pub(crate) fn reminder(&mut self, session: &Session) -> Option<Result<Reminder, String>> {
        let (cadence, is_due) = (self.cadence, self.is_due(session));
        match &mut self.writer {
            Writer::Main(passing) if is_due => passing.reminder(&self.kept, cadence, session),
            _ => None,
        }
    }

    fn is_due(&mut self, session: &Session) -> bool {
        let noted = self.kept.noted;
        let begun = *self.begun.get_or_insert_with(|| match noted {
            // Of a session that goes on nobody knows what it began with.
            None if session.view().branch().iter().any(is_answer) => 0,
            _ => session.view().size().tokens,
        });
        self.cadence.is_due(session.view(), noted.as_ref(), begun)
    }

    /// The agent makes a call that would change this file.
    pub(crate) fn calling(&mut self, call: &ToolUseId, file: &Path, session: &Session) {
        if let Writer::Main(passing) = &mut self.writer
            && self.kept.real().as_deref() == Some(file)
        {
            passing.calling(call, session);
        }
    }

    /// A call returned; none stands for all that are still under way, because nobody waits for them any more. Says whether the
    /// notes, if it was the last about them, had to be mended.
    pub(crate) fn returned(&mut self, call: Option<(&ToolUseId, bool)>) -> Option<Result<bool, String>> {
        let Writer::Main(passing) = &mut self.writer else { return None };
        let covers = passing.returned(call)?;
        let kept = self.kept.keep(covers);
        Some(kept.map_err(|error| format!("the notes of the session were not kept: {error}")))
    }

    /// The notes for a compaction, after those that are being written are, if that does not take long.
    pub(crate) fn for_compaction(&mut self, cancel: &Cancel) -> Option<Notes> {
        if let Writer::Fork(forking) = &mut self.writer {
            let until = Instant::now() + WAIT;
            while forking.is_running() && Instant::now() < until && !cancel.is_cancelled() {
                let _ = forking.take_in(&mut self.kept, LOOK_EVERY);
            }
        }
        let noted = self.kept.noted?;
        let text = std::fs::read_to_string(&self.kept.file).ok()?;
        Some(Notes { text, path: self.kept.file.display().to_string(), last_noted: noted.last })
    }

    /// The conversation was compacted: it grows from here.
    pub(crate) fn compacted(&mut self, tokens: u64) {
        if let Some(noted) = self.kept.noted {
            // What is not kept now is kept with the next notes.
            let _ = self.kept.note(Noted { tokens, ..noted });
        }
        if let Writer::Main(passing) = &mut self.writer {
            passing.compacted();
        }
    }

    /// Gives up what is being written.
    pub(crate) fn end(&mut self) {
        if let Writer::Fork(forking) = &mut self.writer {
            forking.end();
        }
    }
}

impl KeptNotes {
    /// The notes as they are; the template if there are none, which is put there.
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

    /// Where the notes really are, once they are there.
    fn real(&self) -> Option<PathBuf> {
        self.file.canonicalize().ok()
    }

    /// Mends what was written, and notes how far it reaches. Whether there was something to mend.
    fn keep(&mut self, covers: Noted) -> io::Result<bool> {
        let written = std::fs::read_to_string(&self.file)?;
        let mended = mended_notes(&written, &self.template);
        if mended != written {
            pal_store::replace_private_file(&self.file, mended.as_bytes())?;
        }
        self.note(covers)?;
        Ok(mended != written)
    }

    fn note(&mut self, noted: Noted) -> io::Result<()> {
        let reach = Reach { last: noted.last.to_string(), tokens: noted.tokens };
        pal_store::replace_private_file(&self.state, &serde_json::to_vec(&reach)?)?;
        self.noted = Some(noted);
        Ok(())
    }
}

fn is_answer(entry: &pal_model::Entry) -> bool {
    matches!(entry.body, pal_model::Body::Assistant(_))
}

fn reach(state: &Path) -> Option<Noted> {
    let reach: Reach = serde_json::from_slice(&std::fs::read(state).ok()?).ok()?;
    let last: EntryId = reach.last.parse().ok()?;
    Some(Noted { last, tokens: reach.tokens })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use pal_model::{IdSource, Timestamp};

    use super::*;
    use crate::aside::Done;

    fn noted(seed: u64) -> Noted {
        Noted { last: IdSource::seeded(seed).next_id(Timestamp::default()), tokens: 20_000 }
    }

    /// Notes that were written up to a first entry and are being written up to a second.
    fn under_way(folder: &Path) -> (NoteKeeping, Sender<Result<Done, String>>) {
        let (sender, done): (_, Receiver<Result<Done, String>>) = channel();
        let mut kept = KeptNotes {
            file: folder.join("notes.md"),
            state: folder.join("state.json"),
            template: String::from("# State\n_Now._\n"),
            noted: None,
        };
        kept.prepared().unwrap();
        kept.note(noted(1)).unwrap();
        let writer = Writer::Fork(Box::new(Forking::under_way(folder, done, noted(2))));
        (NoteKeeping { kept, cadence: NotesCadence::default(), begun: None, writer }, sender)
    }

    #[test]
    fn a_compaction_waits_for_notes_that_are_being_written() {
        let folder = tempfile::tempdir().unwrap();
        let (mut keeping, sender) = under_way(folder.path());
        let file = folder.path().join("notes.md");
        std::thread::scope(|scope| {
            scope.spawn(move || {
                std::thread::sleep(LOOK_EVERY * 2);
                std::fs::write(&file, "# State\n_Now._\nHalf done.\n").unwrap();
                sender.send(Ok(Done { changes: 1, ..Done::default() })).unwrap();
            });
            let notes = keeping.for_compaction(&Cancel::new()).unwrap();
            assert_eq!(notes.last_noted, noted(2).last);
            assert!(notes.text.contains("Half done."), "{}", notes.text);
        });
        assert_eq!(
            reach(&folder.path().join("state.json")),
            Some(noted(2)),
            "a resumed session knows it, too"
        );
    }

    #[test]
    fn who_wants_everything_to_stop_does_not_wait_and_failed_notes_leave_the_earlier_ones() {
        let folder = tempfile::tempdir().unwrap();
        let (mut keeping, sender) = under_way(folder.path());
        let cancel = Cancel::new();
        cancel.cancel();
        assert_eq!(keeping.for_compaction(&cancel).unwrap().last_noted, noted(1).last);
        sender.send(Err(String::from("the provider is gone"))).unwrap();
        assert_eq!(keeping.for_compaction(&Cancel::new()).unwrap().last_noted, noted(1).last);
    }
}
