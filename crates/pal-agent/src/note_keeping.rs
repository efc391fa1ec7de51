//! Notes of the session (§7.1–7.2): a fork writes them aside while the conversation goes on, so that a compaction can take
//! them for a summary without asking a model (§4.3).

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use pal_context::{Noted, Notes, NotesCadence, mended_notes, notes_directive};
use pal_engine::{Engine, Session};
use pal_model::{Card, EntryId, Source, Timestamp};
use pal_permissions::Need;
use pal_process::Cancel;
use pal_tools::{Abilities, Workspace};
use serde::{Deserialize, Serialize};

use crate::aside::{Done, Worker};
use crate::handle::Handle;
use crate::line::Line;

/// How long a compaction waits for notes that are being written.
const WAIT: Duration = Duration::from_secs(15);

/// How often whoever waits for them looks whether somebody wants an end to that.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// After so many failures in a row nobody tries again in this session.
const FAILURES_MOST: u32 = 3;

/// Most requests of one fork: one that edits, and a few that mend an edit that did not fit.
const TURNS_MOST: usize = 4;

/// Keeps the notes of a session.
pub(crate) struct NoteKeeping {
    /// The notes.
    file: PathBuf,
    /// How far they are written.
    state: PathBuf,
    template: String,
    directive: String,
    cadence: NotesCadence,
    noted: Option<Noted>,
    /// How many tokens stood there before anything was said.
    begun: Option<u64>,
    running: Option<UnderWay>,
    failures: u32,
    line: Arc<Line>,
    card: Card,
    handle: Handle,
}

/// Notes that are being written.
struct UnderWay {
    done: Receiver<Result<Done, String>>,
    covers: Noted,
    cancel: Cancel,
}

/// How far notes are written, as it is kept beside them.
#[derive(Serialize, Deserialize)]
struct Kept {
    last: String,
    tokens: u64,
}

impl NoteKeeping {
    /// Goes on with the notes of a session, if there are any. `home` may have a template and a directive of the user's own.
    pub(crate) fn open(
        session: &Path,
        home: &Path,
        line: Arc<Line>,
        card: Card,
        handle: Handle,
    ) -> NoteKeeping {
        let folder = session.join("notes");
        let own = |name: &str, usual: &str| {
            let text = std::fs::read_to_string(home.join("notes").join(name)).ok();
            text.filter(|text| !text.trim().is_empty()).unwrap_or_else(|| usual.to_owned())
        };
        let state = folder.join("state.json");
        NoteKeeping {
            file: folder.join("notes.md"),
            noted: kept(&state),
            state,
            template: own("template.md", pal_context::TEMPLATE),
            directive: own("directive.md", pal_context::DIRECTIVE),
            cadence: NotesCadence::default(),
            begun: None,
            running: None,
            failures: 0,
            line,
            card,
            handle,
        }
    }

    /// Takes in what was written meanwhile, and has notes written if they are due. What fails is told.
    pub(crate) fn look(&mut self, session: &Session, engine: &Engine, now: Timestamp) -> Option<String> {
        let failed = self.take_in(Duration::ZERO);
        let begun = *self.begun.get_or_insert_with(|| match self.noted {
            // Of a session that goes on nobody knows what it began with.
            None if session.view().branch().iter().any(is_answer) => 0,
            _ => session.view().size().tokens,
        });
        let may_begin = self.running.is_none() && self.failures < FAILURES_MOST;
        if may_begin && self.cadence.is_due(session.view(), self.noted.as_ref(), begun) {
            return failed.or(self.begin(session, engine, now).err());
        }
        failed
    }

    fn begin(&mut self, session: &Session, engine: &Engine, now: Timestamp) -> Result<(), String> {
        let aside = session.aside(engine, now);
        let Some(last) = aside.newest() else { return Ok(()) };
        let covers = Noted { last, tokens: session.view().size().tokens };
        let (notes, seen) = self.prepared().map_err(|error| format!("notes: {error}"))?;
        // What a fork names is followed to where it really is.
        let file = self.file.canonicalize().map_err(|error| format!("notes: {error}"))?;
        let path = file.display().to_string();
        let directive = notes_directive(&self.directive, &path, &notes, aside.view().estimator());
        let folder = file.parent().unwrap_or(&file).to_owned();
        let workspace = Workspace::new(vec![folder.clone()], folder, None, Abilities::default(), seen);
        let cancel = Cancel::new();
        let worker = Worker {
            aside,
            line: Arc::clone(&self.line),
            card: self.card.clone(),
            source: Source::named("notes"),
            handle: self.handle.clone(),
            tools: pal_tools::tools(),
            workspace,
            reach: only_this(file),
            turns_most: TURNS_MOST,
            ends_when_written: true,
            cancel: cancel.clone(),
        };
        let (sender, done) = channel();
        let work = move || {
            // Nobody may be waiting any more.
            let _ = sender.send(worker.work(&directive));
        };
        std::thread::Builder::new()
            .name("pal-notes".into())
            .spawn(work)
            .map_err(|error| error.to_string())?;
        self.running = Some(UnderWay { done, covers, cancel });
        Ok(())
    }

    /// The notes as they are, and that the fork has seen them; the template if there are none.
    fn prepared(&self) -> io::Result<(String, BTreeMap<PathBuf, pal_model::FileSeen>)> {
        let folder = self.file.parent().unwrap_or(&self.file);
        pal_store::create_private_directory(folder).map_err(|error| io::Error::other(error.to_string()))?;
        let notes = match std::fs::read_to_string(&self.file) {
            Ok(notes) => notes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                pal_store::replace_private_file(&self.file, self.template.as_bytes())?;
                self.template.clone()
            }
            Err(error) => return Err(error),
        };
        let file = self.file.canonicalize()?;
        let seen = pal_tools::file_seen(&file).map(|seen| (file, seen));
        Ok((notes, seen.into_iter().collect()))
    }

    /// Takes in what was written, waiting for it at most so long. What went wrong, if it did.
    fn take_in(&mut self, wait: Duration) -> Option<String> {
        let running = self.running.take()?;
        let done = match running.done.recv_timeout(wait) {
            Err(RecvTimeoutError::Timeout) => {
                self.running = Some(running);
                return None;
            }
            Err(RecvTimeoutError::Disconnected) => Err(String::from("the fork broke down")),
            Ok(done) => done,
        };
        let kept = done.and_then(|done| {
            for refused in &done.refused {
                tracing::warn!(refused, "out of reach for the fork that writes notes");
            }
            if done.changes == 0 {
                return Err(String::from("nothing was written"));
            }
            self.keep(running.covers).map_err(|error| error.to_string())
        });
        match kept {
            Ok(()) => {
                self.failures = 0;
                None
            }
            Err(why) => {
                self.failures += 1;
                let next =
                    if self.failures < FAILURES_MOST { "" } else { "; no more are written in this session" };
                Some(format!("the notes of the session were not updated: {why}{next}"))
            }
        }
    }

    /// Mends what the fork wrote, and notes how far it reaches.
    fn keep(&mut self, covers: Noted) -> io::Result<()> {
        let written = std::fs::read_to_string(&self.file)?;
        let mended = mended_notes(&written, &self.template);
        if mended != written {
            pal_store::replace_private_file(&self.file, mended.as_bytes())?;
        }
        self.note(covers)
    }

    fn note(&mut self, noted: Noted) -> io::Result<()> {
        let kept = Kept { last: noted.last.to_string(), tokens: noted.tokens };
        pal_store::replace_private_file(&self.state, &serde_json::to_vec(&kept)?)?;
        self.noted = Some(noted);
        Ok(())
    }

    /// The notes for a compaction, after those that are being written are, if that does not take long.
    pub(crate) fn for_compaction(&mut self, cancel: &Cancel) -> Option<Notes> {
        let until = Instant::now() + WAIT;
        while self.running.is_some() && Instant::now() < until && !cancel.is_cancelled() {
            let _ = self.take_in(LOOK_EVERY);
        }
        let noted = self.noted?;
        let text = std::fs::read_to_string(&self.file).ok()?;
        Some(Notes { text, path: self.file.display().to_string(), last_noted: noted.last })
    }

    /// The conversation was compacted: it grows from here.
    pub(crate) fn compacted(&mut self, tokens: u64) {
        if let Some(noted) = self.noted {
            // What is not kept now is kept with the next notes.
            let _ = self.note(Noted { tokens, ..noted });
        }
    }

    /// Gives up what is being written.
    pub(crate) fn end(&mut self) {
        if let Some(running) = self.running.take() {
            running.cancel.cancel();
        }
    }
}

fn is_answer(entry: &pal_model::Entry) -> bool {
    matches!(entry.body, pal_model::Body::Assistant(_))
}

fn kept(state: &Path) -> Option<Noted> {
    let kept: Kept = serde_json::from_slice(&std::fs::read(state).ok()?).ok()?;
    let last: EntryId = kept.last.parse().ok()?;
    Some(Noted { last, tokens: kept.tokens })
}

/// Nothing but this file may be looked at and changed.
fn only_this(file: PathBuf) -> crate::aside::Reach {
    Box::new(move |need| match need {
        Need::Read(target) | Need::Write(target) if target.real == file => Ok(()),
        _ => Err(format!("only {} can be edited here.", file.display())),
    })
}
