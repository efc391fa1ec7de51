//! What was learnt is drawn from a conversation that has come to rest (§7.3–7.4): a fork looks at what was said since the
//! last time and writes memories.
//!
//! Runs do not overlap: who asks for one while another is under way gets one more behind it, with what was said by then. The
//! conversation never waits; what fails is logged, and after a few failures nobody tries again in this session.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pal_engine::{Aside, Engine, Session};
use pal_memory::{Author, Memory, Place};
use pal_model::{Body, Card, Entry, EntryId, Origin, Source, Timestamp};
use pal_process::Cancel;
use pal_session::ProgressLimits;
use pal_tools::{Abilities, Workspace};
use serde::{Deserialize, Serialize};

use super::reach::Bounds;
use super::tools::Book;
use crate::allowance::Allowance;
use crate::aside::{Deadline, Done, Worker};
use crate::clock::Clock;
use crate::handle::Handle;
use crate::line::Line;
use crate::options::{Learning, Options};

/// What the fork is told.
const DIRECTIVE: &str = include_str!("texts/extract.md");

/// Most requests of one fork: it reads, it writes, and it mends what did not fit.
const TURNS_MOST: usize = 5;

/// How long one may take, and what it may cost in US dollars.
const TIME_MOST: Duration = Duration::from_secs(180);
const COST_MOST: f64 = 1.0;

/// After so many failures in a row nobody tries again in this session.
const FAILURES_MOST: u32 = 3;

/// A fork costs what is in sight: what is new has to be at least one so-many-th of it.
const SHARE: u64 = 16;

/// Bytes of a token, as a measure of what is new.
const TOKEN_BYTES: u64 = 4;

/// How far memories were drawn from the session, beside its log.
const STATE: &str = "memory.json";

/// Draws memories from a session.
pub(crate) struct Extraction {
    run: Arc<Runner>,
    learning: Learning,
}

/// What a run needs.
struct Runner {
    shared: Mutex<Shared>,
    changed: Condvar,
    place: Place,
    state: PathBuf,
    session: String,
    /// The folders that may be looked at.
    roots: Vec<PathBuf>,
    home: PathBuf,
    user_home: Option<PathBuf>,
    rules: pal_permissions::Rules,
    today: fn() -> String,
    clock: Clock,
    line: Arc<Line>,
    card: Card,
    handle: Handle,
    allowance: Arc<Allowance>,
    progress: ProgressLimits,
}

#[derive(Default)]
struct Shared {
    /// What the next run is about.
    pending: Option<Span>,
    is_running: bool,
    covered: Covered,
    /// The newest entry that a run is about, or will be.
    claimed: Option<EntryId>,
    failures: u32,
    cancel: Cancel,
    has_ended: bool,
    /// What was written, for whoever watches.
    written: Vec<String>,
}

/// What was said since the last time.
struct Span {
    aside: Aside,
    last: EntryId,
    /// Messages of the conversation in it.
    entries: Vec<EntryId>,
}

/// How far memories were drawn.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Covered {
    /// The newest entry that was looked at.
    last: Option<String>,
    /// The point of the memory's history then.
    point: u64,
}

/// What came of a run.
enum Outcome {
    /// The agent itself had written memories.
    Skipped,
    /// It ran; the files that it wrote.
    Ran(Vec<String>),
}

impl Extraction {
    /// Goes on where it was left.
    pub(crate) fn open(
        options: &Options,
        learning: Learning,
        project: &Path,
        session: (&Path, &str),
        workspace: &Workspace,
        (handle, allowance): (Handle, Arc<Allowance>),
    ) -> Extraction {
        let state = session.0.join(STATE);
        let covered: Covered = std::fs::read(&state)
            .ok()
            .and_then(|text| serde_json::from_slice(&text).ok())
            .unwrap_or_default();
        let claimed = covered.last.as_ref().and_then(|last| last.parse().ok());
        let run = Runner {
            shared: Mutex::new(Shared { covered, claimed, ..Shared::default() }),
            changed: Condvar::new(),
            place: Place::of_project(&options.home, project),
            state,
            session: session.1.to_owned(),
            roots: workspace.roots.clone(),
            home: options.home.clone(),
            user_home: workspace.home.clone(),
            rules: options.rules.clone(),
            today: options.today,
            clock: options.clock,
            line: Arc::clone(&options.line),
            card: options.lens.card.clone(),
            handle,
            allowance,
            progress: options.run.progress,
        };
        Extraction { run: Arc::new(run), learning }
    }

    /// The conversation has come to rest: a run begins, or is noted for when the one that is under way has ended.
    pub(crate) fn rested(&self, session: &Session, engine: &Engine, now: Timestamp) {
        let mut shared = self.run.shared();
        if shared.has_ended || shared.failures >= FAILURES_MOST {
            return;
        }
        let branch = session.view().branch();
        let new = since(branch, shared.claimed);
        let is_said =
            |entry: &&Entry| matches!(&entry.body, Body::User(user) if user.origin == Origin::Person);
        let bytes: u64 =
            new.iter().filter(|entry| is_message(entry)).map(|entry| entry.line.len() as u64).sum();
        let wanted = match self.learning.tokens_least {
            0 => 0,
            least => least.max(session.view().size().tokens / SHARE),
        };
        if !new.iter().any(|entry| is_said(&entry)) || bytes / TOKEN_BYTES < wanted {
            return;
        }
        if let Err(why) = self.run.allowance.may_begin(&source(), now) {
            tracing::info!(why, "no memories are drawn from the session for now");
            return;
        }
        let aside = session.aside(engine, now);
        let Some(last) = aside.newest() else { return };
        let covered = shared.covered.last.as_ref().and_then(|last| last.parse().ok());
        let entries = since(branch, covered).iter().filter(|entry| is_message(entry)).map(|entry| entry.id);
        shared.pending = Some(Span { aside, last, entries: entries.collect() });
        shared.claimed = Some(last);
        if !shared.is_running {
            let run = Arc::clone(&self.run);
            let started = std::thread::Builder::new().name("pal-memory".into()).spawn(move || run.run_all());
            match started {
                Ok(_) => shared.is_running = true,
                Err(error) => tracing::warn!(%error, "no memories are drawn from the session"),
            }
        }
    }

    /// What was written since this was asked last.
    pub(crate) fn take_written(&self) -> Vec<String> {
        std::mem::take(&mut self.run.shared().written)
    }

    /// Waits for the run that is under way, at most until then; whether it has ended.
    pub(crate) fn wait(&self, until: Instant) -> bool {
        let shared = self.run.shared();
        let left = until.saturating_duration_since(Instant::now());
        let waited = self.run.changed.wait_timeout_while(shared, left, |shared| shared.is_running);
        !waited.unwrap_or_else(PoisonError::into_inner).0.is_running
    }

    /// Gives up what is under way.
    pub(crate) fn end(&self) {
        let mut shared = self.run.shared();
        shared.has_ended = true;
        shared.pending = None;
        shared.cancel.cancel();
    }
}

impl Runner {
    fn shared(&self) -> MutexGuard<'_, Shared> {
        // What is in it is set at once or not at all.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One run after the other, as long as somebody asked for one.
    fn run_all(&self) {
        loop {
            let (span, cancel, covered) = {
                let mut shared = self.shared();
                let Some(span) = shared.pending.take() else {
                    shared.is_running = false;
                    self.changed.notify_all();
                    return;
                };
                shared.cancel = Cancel::new();
                (span, shared.cancel.clone(), shared.covered.clone())
            };
            let last = span.last;
            // A run that panics is a run that failed: whoever waits for it must not wait for ever.
            let ran =
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.run(span, &covered, &cancel)));
            self.ended(last, ran.unwrap_or_else(|_| Err(String::from("it broke down"))));
        }
    }

    fn ended(&self, last: EntryId, ran: Result<(u64, Outcome), String>) {
        let mut shared = self.shared();
        match ran {
            Ok((point, outcome)) => {
                shared.failures = 0;
                shared.covered = Covered { last: Some(last.to_string()), point };
                let kept = serde_json::to_vec(&shared.covered).unwrap_or_default();
                // Without it the next run looks at more than it has to.
                if let Err(error) = pal_store::replace_private_file(&self.state, &kept) {
                    tracing::warn!(%error, "how far memories were drawn is not kept");
                }
                match outcome {
                    Outcome::Skipped => tracing::debug!("the agent wrote memories itself"),
                    Outcome::Ran(files) => shared.written.extend(files),
                }
            }
            Err(why) => {
                shared.failures += 1;
                shared.claimed = shared.covered.last.as_ref().and_then(|last| last.parse().ok());
                tracing::warn!(why, "no memories were drawn from the session");
            }
        }
    }

    fn run(&self, span: Span, covered: &Covered, cancel: &Cancel) -> Result<(u64, Outcome), String> {
        let words = |error: pal_memory::MemoryError| error.to_string();
        let mut memory = self.place.open(self.clock.now()).map_err(words)?;
        if self.agent_wrote(&memory, covered)? {
            return Ok((memory.point(), Outcome::Skipped));
        }
        let point = memory.point();
        let index = memory.index_for_context().map_err(words)?.text;
        let directory = memory.path().canonicalize().map_err(|error| error.to_string())?;
        let directive = self.directive(&directory, &index, span.entries.len());
        let entry = span.entries.last().map(ToString::to_string);
        let by = Author::Session { session: self.session.clone(), entry };
        let book = Book::new(memory, by, self.clock);
        let bounds = Bounds::new(directory.clone(), self.home.clone(), &self.rules, false);
        let worker = Worker {
            aside: span.aside,
            line: Arc::clone(&self.line),
            card: self.card.clone(),
            source: source(),
            handle: self.handle.clone(),
            tools: book.tools(),
            workspace: self.workspace(&directory),
            reach: bounds.reach(),
            turns_most: TURNS_MOST,
            progress: self.progress,
            ends_when_written: true,
            cost_most: Some(COST_MOST),
            told: Box::new(|_| {}),
            cancel: cancel.clone(),
            allowance: Arc::clone(&self.allowance),
            clock: self.clock,
        };
        let mut done = Done::default();
        let deadline = Deadline::after(TIME_MOST, cancel).map_err(|error| error.to_string())?;
        let worked = worker.work_on(&directive, &mut done);
        drop(deadline);
        self.allowance.ended(&source(), &book.touched(), self.clock.now());
        for refused in &done.refused {
            tracing::warn!(refused, "out of reach for the fork that draws memories");
        }
        tracing::info!(requests = done.requests, tokens = done.tokens, cost = done.cost, files = ?book.touched(), "memories drawn");
        let last_point = book.points().last().copied().unwrap_or(point);
        // What was written before it was stopped is whole, and stays.
        match worked {
            Err(why) if book.touched().is_empty() => Err(why),
            _ => Ok((last_point, Outcome::Ran(book.touched()))),
        }
    }

    /// Whether the agent of this session changed memories itself since the last run.
    fn agent_wrote(&self, memory: &Memory, covered: &Covered) -> Result<bool, String> {
        let changes = memory.log().map_err(|error| error.to_string())?;
        let is_ours = |by: &Author| matches!(by, Author::Session { session, .. } if *session == self.session);
        Ok(changes.iter().any(|change| change.id > covered.point && is_ours(&change.by)))
    }

    fn directive(&self, directory: &Path, index: &str, messages: usize) -> String {
        let index = if index.trim().is_empty() { "(none yet)" } else { index.trim_end() };
        DIRECTIVE
            .replace("{messages}", &messages.to_string())
            .replace("{directory}", &directory.display().to_string())
            .replace("{today}", &(self.today)())
            .replace("{turns}", &TURNS_MOST.to_string())
            .replace("{index}", &pal_model::defuse(index))
    }

    fn workspace(&self, directory: &Path) -> Workspace {
        let mut roots = self.roots.clone();
        roots.push(directory.to_owned());
        // What is kept beside a session may be looked at, and this one has nothing.
        let none = directory.join(".none");
        let mut workspace =
            Workspace::new(roots, none, self.user_home.clone(), Abilities::default(), Default::default());
        workspace.hidden = Some(crate::gate::hidden(&self.rules, &self.home, &workspace));
        workspace
    }
}

/// As what a run is booked.
fn source() -> Source {
    Source::named("memory")
}

/// The entries behind one; all if it is not there.
fn since(branch: &[Entry], last: Option<EntryId>) -> &[Entry] {
    let at = last.and_then(|last| branch.iter().rposition(|entry| entry.id == last));
    at.map_or(branch, |at| &branch[at + 1..])
}

fn is_message(entry: &Entry) -> bool {
    matches!(entry.body, Body::User(_) | Body::Assistant(_))
}
