//! Memory extraction (§7.3–7.4): when the conversation comes to rest, a fork reads the new messages and writes
//! memories.
//!
//! Runs do not overlap: a request during a run starts one more after it. The conversation never waits; failures
//! are logged and, after a few, end extraction for the session.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pal_engine::{ConversationFork, Session, SessionConfig};
use pal_memory::{Author, MemoryLocation, MemoryStore};
use pal_model::{BlockType, EntryBody, EntryId, LogEntry, MessageOrigin, RequestSource, Timestamp};
use pal_process::CancelToken;
use pal_run::ProgressLimits;
use pal_tools::{MediaSupport, Workspace, hidden_files};
use serde::{Deserialize, Serialize};

use super::access_bounds::AccessBounds;
use super::memory_editor::MemoryEditor;
use super::standing_rule::states_rule;
use crate::background_budget::BackgroundBudget;
use crate::background_config::{BackgroundConfig, ExtractionOptions};
use crate::fork_runner::{ForkLimits, ForkModel, ForkReport, ForkRunner, RunDeadline};
use crate::timed_exchange::ExchangeListener;

/// Directive of the fork. Text for the model.
const DIRECTIVE: &str = include_str!("texts/extract.md");

/// Maximum requests: read, write, and repair.
const TURNS_MAX: u64 = 5;

/// Maximum duration, and price in US dollars.
const TIME_MAX: Duration = Duration::from_secs(180);
const COST_MAX: f64 = 1.0;

/// Failures in a row that end extraction for the session.
const FAILURES_MAX: u32 = 3;

/// Minimum share of new content in the context, as 1/N: a fork pays for the whole context.
const SHARE: u64 = 16;

/// Bytes per token, to estimate new content.
const TOKEN_BYTES: u64 = 4;

/// Maximum bytes of a message that is read for a rule: longer ones quote other text.
const RULE_BYTES_MAX: usize = 2_000;

/// File with the progress of extraction.
const STATE: &str = "memory.json";

/// Extracts memories from a session.
pub struct Extraction {
    run: Arc<ExtractionRunner>,
    learning: ExtractionOptions,
}

/// Everything a run needs.
struct ExtractionRunner {
    shared: Mutex<ExtractionState>,
    changed: Condvar,
    place: MemoryLocation,
    state: PathBuf,
    session: String,
    /// Directories that may be read.
    roots: Vec<PathBuf>,
    home: PathBuf,
    user_home: Option<PathBuf>,
    rules: pal_permissions::RuleSet,
    today: fn() -> String,
    model: ForkModel,
    progress: ProgressLimits,
}

#[derive(Default)]
struct ExtractionState {
    /// Span of the next run.
    pending: Option<ExtractionSpan>,
    is_running: bool,
    covered: ExtractionProgress,
    /// Newest entry that a run covers or will cover.
    claimed: Option<EntryId>,
    failures: u32,
    cancel: CancelToken,
    has_ended: bool,
    /// Files written, for the user.
    written: Vec<String>,
}

/// Messages since the last run.
struct ExtractionSpan {
    aside: ConversationFork,
    last: EntryId,
    /// Their entries.
    entries: Vec<EntryId>,
}

/// Progress of extraction.
#[derive(Clone, Default, Serialize, Deserialize)]
struct ExtractionProgress {
    /// Newest entry covered.
    last: Option<String>,
    /// History point of the memory at that time.
    point: u64,
}

/// Outcome of a run.
enum ExtractionOutcome {
    /// Skipped: the agent wrote memories itself.
    Skipped,
    /// It ran and wrote these files.
    Ran(Vec<String>),
}

impl Extraction {
    /// Resumes from the saved progress.
    pub fn open(
        config: &BackgroundConfig,
        learning: ExtractionOptions,
        project: &Path,
        session: (&Path, &str),
        workspace: &Workspace,
        (listener, allowance): (Arc<dyn ExchangeListener>, Arc<BackgroundBudget>),
    ) -> Extraction {
        let state = session.0.join(STATE);
        let covered: ExtractionProgress = std::fs::read(&state)
            .ok()
            .and_then(|text| serde_json::from_slice(&text).ok())
            .unwrap_or_default();
        let claimed = covered.last.as_ref().and_then(|last| last.parse().ok());
        let run = ExtractionRunner {
            shared: Mutex::new(ExtractionState { covered, claimed, ..ExtractionState::default() }),
            changed: Condvar::new(),
            place: MemoryLocation::of_project(&config.home, project),
            state,
            session: session.1.to_owned(),
            roots: workspace.roots.clone(),
            home: config.home.clone(),
            user_home: workspace.home.clone(),
            rules: config.rules.clone(),
            today: config.today,
            model: config.fork_model(source(), listener, allowance),
            progress: config.model.progress,
        };
        Extraction { run: Arc::new(run), learning }
    }

    /// Starts a run, or schedules one after the current run.
    pub fn rested(&self, session: &Session, engine: &SessionConfig, now: Timestamp) {
        let mut shared = self.run.shared();
        if shared.has_ended || shared.failures >= FAILURES_MAX {
            return;
        }
        let branch = session.view().branch();
        let new = since(branch, shared.claimed);
        let is_said = |entry: &&LogEntry| matches!(&entry.body, EntryBody::User(user) if user.origin == MessageOrigin::Person);
        let bytes: u64 =
            new.iter().filter(|entry| is_message(entry)).map(|entry| entry.line.len() as u64).sum();
        let states_rule = new.iter().filter(is_said).any(|entry| {
            message_texts(entry).iter().any(|text| text.len() <= RULE_BYTES_MAX && states_rule(text))
        });
        let wanted = match self.learning.tokens_least {
            _ if states_rule => 0,
            0 => 0,
            least => least.max(session.view().size().tokens / SHARE),
        };
        if !new.iter().any(|entry| is_said(&entry)) || bytes / TOKEN_BYTES < wanted {
            return;
        }
        if let Err(why) = self.run.model.budget.may_begin(&source(), now) {
            tracing::info!(why, "no memories are drawn from the session for now");
            return;
        }
        let aside = session.fork(engine, now);
        let Some(last) = aside.newest() else { return };
        let covered = shared.covered.last.as_ref().and_then(|last| last.parse().ok());
        let entries = since(branch, covered).iter().filter(|entry| is_message(entry)).map(|entry| entry.id);
        shared.pending = Some(ExtractionSpan { aside, last, entries: entries.collect() });
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

    /// Takes the files written since the last call.
    pub fn take_written(&self) -> Vec<String> {
        std::mem::take(&mut self.run.shared().written)
    }

    /// Waits for the current run until a deadline; returns whether it ended.
    pub fn wait(&self, until: Instant) -> bool {
        let shared = self.run.shared();
        let left = until.saturating_duration_since(Instant::now());
        let waited = self.run.changed.wait_timeout_while(shared, left, |shared| shared.is_running);
        !waited.unwrap_or_else(PoisonError::into_inner).0.is_running
    }

    /// Cancels the current run.
    pub fn end(&self) {
        let mut shared = self.run.shared();
        shared.has_ended = true;
        shared.pending = None;
        shared.cancel.cancel();
    }
}

impl ExtractionRunner {
    fn shared(&self) -> MutexGuard<'_, ExtractionState> {
        // The state is consistent even after a panic.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs as long as another run is pending.
    fn run_all(&self) {
        loop {
            let (span, cancel, covered) = {
                let mut shared = self.shared();
                let Some(span) = shared.pending.take() else {
                    shared.is_running = false;
                    self.changed.notify_all();
                    return;
                };
                shared.cancel = CancelToken::new();
                (span, shared.cancel.clone(), shared.covered.clone())
            };
            let last = span.last;
            // A panic is a failed run: waiters must not wait forever.
            let ran =
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.run(span, &covered, &cancel)));
            self.ended(last, ran.unwrap_or_else(|_| Err(String::from("it broke down"))));
        }
    }

    fn ended(&self, last: EntryId, ran: Result<(u64, ExtractionOutcome), String>) {
        let mut shared = self.shared();
        match ran {
            Ok((point, outcome)) => {
                shared.failures = 0;
                shared.covered = ExtractionProgress { last: Some(last.to_string()), point };
                let kept = serde_json::to_vec(&shared.covered).unwrap_or_default();
                // On failure, the next run covers more than necessary.
                if let Err(error) = pal_store::replace_private_file(&self.state, &kept) {
                    tracing::warn!(%error, "how far memories were drawn is not kept");
                }
                match outcome {
                    ExtractionOutcome::Skipped => tracing::debug!("the agent wrote memories itself"),
                    ExtractionOutcome::Ran(files) => shared.written.extend(files),
                }
            }
            Err(why) => {
                shared.failures += 1;
                shared.claimed = shared.covered.last.as_ref().and_then(|last| last.parse().ok());
                tracing::warn!(why, "no memories were drawn from the session");
            }
        }
    }

    fn run(
        &self,
        span: ExtractionSpan,
        covered: &ExtractionProgress,
        cancel: &CancelToken,
    ) -> Result<(u64, ExtractionOutcome), String> {
        let words = |error: pal_memory::MemoryError| error.to_string();
        let mut memory = self.place.open(self.model.clock.now()).map_err(words)?;
        if self.agent_wrote(&memory, covered)? {
            return Ok((memory.point(), ExtractionOutcome::Skipped));
        }
        let point = memory.point();
        let index = memory.index_for_context().map_err(words)?.text;
        let directory = memory.path().canonicalize().map_err(|error| error.to_string())?;
        let directive = self.directive(&directory, &index, span.entries.len());
        let entry = span.entries.last().map(ToString::to_string);
        let by = Author::Session { session: self.session.clone(), entry };
        let book = MemoryEditor::new(memory, by, self.model.clock);
        let bounds = AccessBounds::new(directory.clone(), self.home.clone(), &self.rules, false);
        let worker = ForkRunner {
            fork: span.aside,
            model: self.model.clone(),
            limits: ForkLimits {
                turns_max: TURNS_MAX,
                progress: self.progress,
                ends_when_written: true,
                cost_max: Some(COST_MAX),
            },
            tools: book.tools(),
            workspace: self.workspace(&directory),
            access: bounds.reach(),
            on_turn: Box::new(|_| {}),
            cancel: cancel.clone(),
        };
        let mut done = ForkReport::default();
        let deadline = RunDeadline::after(TIME_MAX, cancel).map_err(|error| error.to_string())?;
        let worked = worker.run_with_report(&directive, &mut done);
        drop(deadline);
        self.model.budget.ended(&source(), &book.touched(), self.model.clock.now());
        for refused in &done.refused {
            tracing::warn!(refused, "out of reach for the fork that draws memories");
        }
        tracing::info!(requests = done.requests, tokens = done.tokens, cost = done.cost, files = ?book.touched(), "memories drawn");
        let last_point = book.points().last().copied().unwrap_or(point);
        // Changes before a stop are complete and stay.
        match worked {
            Err(why) if book.touched().is_empty() => Err(why),
            _ => Ok((last_point, ExtractionOutcome::Ran(book.touched()))),
        }
    }

    /// Returns whether the agent changed memories itself since the last run.
    fn agent_wrote(&self, memory: &MemoryStore, covered: &ExtractionProgress) -> Result<bool, String> {
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
            .replace("{turns}", &TURNS_MAX.to_string())
            .replace("{index}", &pal_model::escape_tags(index))
    }

    fn workspace(&self, directory: &Path) -> Workspace {
        let mut roots = self.roots.clone();
        roots.push(directory.to_owned());
        // Files next to a session may be read; this run has none.
        let none = directory.join(".none");
        let mut workspace =
            Workspace::new(roots, none, self.user_home.clone(), MediaSupport::default(), Default::default());
        workspace.hidden = Some(hidden_files(&self.rules, &self.home, &workspace));
        workspace
    }
}

/// Source of its requests.
fn source() -> RequestSource {
    RequestSource::from_name("memory")
}

/// Entries after one; all if it is missing.
fn since(branch: &[LogEntry], last: Option<EntryId>) -> &[LogEntry] {
    let at = last.and_then(|last| branch.iter().rposition(|entry| entry.id == last));
    at.map_or(branch, |at| &branch[at + 1..])
}

/// Texts of a message of the user.
fn message_texts(entry: &LogEntry) -> Vec<String> {
    let EntryBody::User(user) = &entry.body else { return Vec::new() };
    let texts = user.content.blocks().iter().filter(|block| block.kind() == BlockType::Text);
    texts.filter_map(|block| Some(block.string("text")?.into_owned())).collect()
}

fn is_message(entry: &LogEntry) -> bool {
    matches!(entry.body, EntryBody::User(_) | EntryBody::Assistant(_))
}
