//! Notes that a fork of the conversation writes aside, on a thread of its own, with nothing in reach but their file.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use pal_context::{Noted, notes_directive};
use pal_engine::{Engine, Session};
use pal_model::{Card, Source, Timestamp};
use pal_permissions::Need;
use pal_process::Cancel;
use pal_session::ProgressLimits;
use pal_tools::{Abilities, Workspace};

use super::KeptNotes;
use crate::allowance::Allowance;
use crate::aside::{Done, Reach, Worker};
use crate::clock::Clock;
use crate::handle::Handle;
use crate::line::Line;
use crate::options::Options;

/// After so many failures in a row nobody tries again in this session.
const FAILURES_MOST: u32 = 3;

/// Most requests of one fork: one that edits, and a few that mend an edit that did not fit.
const TURNS_MOST: usize = 4;

/// A fork as the writer of notes.
pub(super) struct Forking {
    directive: String,
    running: Option<UnderWay>,
    failures: u32,
    /// Whether it was told that background work may not begin.
    told_limit: bool,
    line: Arc<Line>,
    card: Card,
    handle: Handle,
    allowance: Arc<Allowance>,
    clock: Clock,
    progress: ProgressLimits,
}

/// Notes that are being written.
struct UnderWay {
    done: Receiver<Result<Done, String>>,
    covers: Noted,
    cancel: Cancel,
}

impl Forking {
    pub(super) fn new(
        directive: String,
        options: &Options,
        allowance: Arc<Allowance>,
        handle: Handle,
    ) -> Forking {
        Forking {
            directive,
            running: None,
            failures: 0,
            told_limit: false,
            line: Arc::clone(&options.line),
            card: options.lens.card.clone(),
            handle,
            allowance,
            clock: options.clock,
            progress: options.run.progress,
        }
    }

    pub(super) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Takes in what was written meanwhile, and begins if notes are due. What fails is told.
    pub(super) fn look(
        &mut self,
        kept: &mut KeptNotes,
        is_due: bool,
        session: &Session,
        engine: &Engine,
        now: Timestamp,
    ) -> Option<String> {
        let failed = self.take_in(kept, Duration::ZERO);
        if !is_due || self.is_running() || self.failures >= FAILURES_MOST {
            return failed;
        }
        match self.allowance.may_begin(&source(), now) {
            Ok(()) => failed.or(self.begin(kept, session, engine, now).err()),
            // Once is enough: it is asked again at every turn.
            Err(why) => failed.or((!std::mem::replace(&mut self.told_limit, true)).then_some(why)),
        }
    }

    fn begin(
        &mut self,
        kept: &KeptNotes,
        session: &Session,
        engine: &Engine,
        now: Timestamp,
    ) -> Result<(), String> {
        let aside = session.aside(engine, now);
        let Some(last) = aside.newest() else { return Ok(()) };
        let covers = Noted { last, tokens: session.view().size().tokens };
        let failure = |error: std::io::Error| format!("notes: {error}");
        let notes = kept.prepared().map_err(failure)?;
        // What a fork names is followed to where it really is.
        let file = kept.file.canonicalize().map_err(failure)?;
        let seen = pal_tools::file_seen(&file).map(|seen| (file.clone(), seen)).into_iter().collect();
        let path = file.display().to_string();
        let directive = notes_directive(&self.directive, &path, &notes, aside.view().estimator());
        let folder = file.parent().unwrap_or(&file).to_owned();
        let workspace = Workspace::new(vec![folder.clone()], folder, None, Abilities::default(), seen);
        let cancel = Cancel::new();
        let worker = Worker {
            aside,
            line: Arc::clone(&self.line),
            card: self.card.clone(),
            source: source(),
            handle: self.handle.clone(),
            tools: pal_tools::tools(),
            workspace,
            reach: only_this(file),
            turns_most: TURNS_MOST,
            progress: self.progress,
            ends_when_written: true,
            cost_most: None,
            told: Box::new(|_| {}),
            cancel: cancel.clone(),
            allowance: Arc::clone(&self.allowance),
            clock: self.clock,
        };
        let (sender, done) = channel();
        let (allowance, clock) = (Arc::clone(&self.allowance), self.clock);
        let work = move || {
            let done = worker.work(&directive);
            let has_written = done.as_ref().is_ok_and(|done| done.changes > 0);
            let wrote = if has_written { std::slice::from_ref(&path) } else { &[] };
            allowance.ended(&source(), wrote, clock.now());
            // Nobody may be waiting any more.
            let _ = sender.send(done);
        };
        std::thread::Builder::new()
            .name("pal-notes".into())
            .spawn(work)
            .map_err(|error| error.to_string())?;
        self.running = Some(UnderWay { done, covers, cancel });
        Ok(())
    }

    /// Takes in what was written, waiting for it at most so long. What went wrong, if it did.
    pub(super) fn take_in(&mut self, kept: &mut KeptNotes, wait: Duration) -> Option<String> {
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
                    if self.failures < FAILURES_MOST { "" } else { "; no more are written in this session" };
                Some(format!("the notes of the session were not updated: {why}{next}"))
            }
        }
    }

    /// Gives up what is being written.
    pub(super) fn end(&mut self) {
        if let Some(running) = self.running.take() {
            running.cancel.cancel();
        }
    }
}

/// As what the fork is booked.
fn source() -> Source {
    Source::named("notes")
}

/// Nothing but this file may be looked at and changed.
fn only_this(file: PathBuf) -> Reach {
    Box::new(move |need, _| match need {
        Need::Read(target) | Need::Write(target) if target.real == file => Ok(()),
        _ => Err(format!("only {} can be edited here.", file.display())),
    })
}

#[cfg(test)]
impl Forking {
    /// A fork that is at work; nobody is asked.
    pub(super) fn under_way(
        home: &std::path::Path,
        done: Receiver<Result<Done, String>>,
        covers: Noted,
    ) -> Forking {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let endpoint =
            pal_provider::Endpoint::new(pal_wire::Dialect::Messages, "http://127.0.0.1:9", None).unwrap();
        let line = Arc::new(Line::new(runtime, endpoint, pal_provider::Policy::patient()).unwrap());
        Forking {
            directive: String::new(),
            running: Some(UnderWay { done, covers, cancel: Cancel::new() }),
            failures: 0,
            told_limit: false,
            card: pal_model::Cards::shipped().find("claude-opus-5-5").card,
            handle: Handle::new(channel().0),
            allowance: Arc::new(Allowance::new(home, 0, "", Arc::clone(&line))),
            line,
            clock: Clock::default(),
            progress: ProgressLimits::STANDARD,
        }
    }
}
