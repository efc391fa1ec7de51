//! Notes written by a fork on its own thread, with access to the notes file only.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use pal_context::{NotesCoverage, notes_directive};
use pal_engine::{Session, SessionConfig};
use pal_model::{RequestSource, Timestamp};
use pal_permissions::ToolAccess;
use pal_process::CancelToken;
use pal_run::ProgressLimits;
use pal_tools::{MediaSupport, Workspace};

use super::NotesFile;
use crate::background_budget::BackgroundBudget;
use crate::background_config::BackgroundConfig;
use crate::fork_runner::{ForkLimits, ForkModel, ForkReport, ForkRunner};
use crate::fork_tools::AccessCheck;
use crate::timed_exchange::ExchangeListener;

/// Time that a cancelled fork gets to report what it used.
const END_WAIT: Duration = Duration::from_millis(500);

/// Failures in a row that end note keeping for the session.
const FAILURES_MAX: u32 = 3;

/// Maximum requests of one fork: an edit and a few repairs.
const TURNS_MAX: u64 = 4;

/// Writes notes with a fork.
pub(super) struct ForkNoteWriter {
    directive: String,
    running: Option<PendingNotes>,
    failures: u32,
    /// Whether the user knows that the budget is exhausted.
    told_limit: bool,
    model: ForkModel,
    progress: ProgressLimits,
}

/// Notes being written.
struct PendingNotes {
    done: Receiver<Result<ForkReport, String>>,
    covers: NotesCoverage,
    cancel: CancelToken,
}

impl ForkNoteWriter {
    pub(super) fn new(
        directive: String,
        config: &BackgroundConfig,
        allowance: Arc<BackgroundBudget>,
        listener: Arc<dyn ExchangeListener>,
    ) -> ForkNoteWriter {
        ForkNoteWriter {
            directive,
            running: None,
            failures: 0,
            told_limit: false,
            model: config.fork_model(source(), listener, allowance),
            progress: config.model.progress,
        }
    }

    pub(super) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Collects finished notes, and starts a fork if new ones are due. Returns a failure for the user.
    pub(super) fn look(
        &mut self,
        kept: &mut NotesFile,
        is_due: bool,
        session: &Session,
        engine: &SessionConfig,
        now: Timestamp,
    ) -> Option<String> {
        let failed = self.take_in(kept, Duration::ZERO);
        if !is_due || self.is_running() || self.failures >= FAILURES_MAX {
            return failed;
        }
        match self.model.budget.may_begin(&source(), now) {
            Ok(()) => failed.or(self.begin(kept, session, engine, now).err()),
            // Reported once: the budget is checked at every turn.
            Err(why) => failed.or((!std::mem::replace(&mut self.told_limit, true)).then_some(why)),
        }
    }

    fn begin(
        &mut self,
        kept: &NotesFile,
        session: &Session,
        engine: &SessionConfig,
        now: Timestamp,
    ) -> Result<(), String> {
        let aside = session.fork(engine, now);
        let Some(last) = aside.newest() else { return Ok(()) };
        let covers = NotesCoverage { last, tokens: session.view().size().tokens };
        let failure = |error: std::io::Error| format!("notes: {error}");
        let notes = kept.prepared().map_err(failure)?;
        // Paths are compared after following links.
        let file = kept.file.canonicalize().map_err(failure)?;
        let seen = pal_tools::file_seen(&file).map(|seen| (file.clone(), seen)).into_iter().collect();
        let path = file.display().to_string();
        let directive = notes_directive(&self.directive, &path, &notes, aside.view().estimator());
        let folder = file.parent().unwrap_or(&file).to_owned();
        let workspace = Workspace::new(vec![folder.clone()], folder, None, MediaSupport::default(), seen);
        let cancel = CancelToken::new();
        let worker = ForkRunner {
            fork: aside,
            model: self.model.clone(),
            limits: ForkLimits {
                turns_max: TURNS_MAX,
                progress: self.progress,
                ends_when_written: true,
                cost_max: None,
            },
            tools: pal_tools::builtin_tools(),
            workspace,
            access: only_this(file),
            on_turn: Box::new(|_| {}),
            cancel: cancel.clone(),
        };
        let (sender, done) = channel();
        let (allowance, clock) = (Arc::clone(&self.model.budget), self.model.clock);
        let work = move || {
            let done = worker.run(&directive);
            let has_written = done.as_ref().is_ok_and(|done| done.changes > 0);
            let wrote = if has_written { std::slice::from_ref(&path) } else { &[] };
            allowance.ended(&source(), wrote, clock.now());
            // The receiver may be gone.
            let _ = sender.send(done);
        };
        std::thread::Builder::new()
            .name("pal-notes".into())
            .spawn(work)
            .map_err(|error| error.to_string())?;
        self.running = Some(PendingNotes { done, covers, cancel });
        Ok(())
    }

    /// Collects finished notes, waiting up to `wait`. Returns a failure for the user.
    pub(super) fn take_in(&mut self, kept: &mut NotesFile, wait: Duration) -> Option<String> {
        let running = self.running.take()?;
        let done = match running.done.recv_timeout(wait) {
            Err(RecvTimeoutError::Timeout) => {
                self.running = Some(running);
                return None;
            }
            Err(RecvTimeoutError::Disconnected) => Err(String::from("the fork broke down")),
            Ok(done) => done,
        };
        let result = done.and_then(|done| {
            for refused in &done.refused {
                tracing::warn!(refused, "out of reach for the fork that writes notes");
            }
            if done.changes == 0 {
                return Err(String::from("nothing was written"));
            }
            kept.keep(running.covers).map(|_| ()).map_err(|error| error.to_string())
        });
        match result {
            Ok(()) => {
                self.failures = 0;
                None
            }
            Err(why) => {
                self.failures += 1;
                let next =
                    if self.failures < FAILURES_MAX { "" } else { "; no more are written in this session" };
                Some(format!("the notes of the session were not updated: {why}{next}"))
            }
        }
    }

    /// Cancels notes being written.
    pub(super) fn end(&mut self) {
        if let Some(running) = self.running.take() {
            running.cancel.cancel();
            // Its result is not needed, but its usage is.
            let _ = running.done.recv_timeout(END_WAIT);
        }
    }
}

/// Source of its requests.
fn source() -> RequestSource {
    RequestSource::from_name("notes")
}

/// Allows access to this file only.
fn only_this(file: PathBuf) -> AccessCheck {
    Box::new(move |need, _| match need {
        ToolAccess::Read(target) | ToolAccess::Write(target) if target.real == file => Ok(()),
        _ => Err(format!("only {} can be edited here.", file.display())),
    })
}

#[cfg(test)]
impl ForkNoteWriter {
    /// A running fork without a provider.
    pub(super) fn under_way(
        home: &std::path::Path,
        done: Receiver<Result<ForkReport, String>>,
        covers: NotesCoverage,
    ) -> ForkNoteWriter {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let endpoint =
            pal_provider::ProviderEndpoint::new(pal_wire::Dialect::Messages, "http://127.0.0.1:9", None)
                .unwrap();
        let line = Arc::new(
            pal_provider::ProviderConnection::new(runtime, endpoint, pal_provider::ClientPolicy::patient())
                .unwrap(),
        );
        ForkNoteWriter {
            directive: String::new(),
            running: Some(PendingNotes { done, covers, cancel: CancelToken::new() }),
            failures: 0,
            told_limit: false,
            model: ForkModel {
                card: pal_model::ModelCatalog::built_in().find("claude-opus-5-5").card,
                source: source(),
                listener: Arc::new(()),
                budget: Arc::new(BackgroundBudget::new(home, 0, "", Arc::clone(&line))),
                connection: line,
                clock: crate::clock::Clock::default(),
            },
            progress: ProgressLimits::STANDARD,
        }
    }
}
