//! Dreams (§7.5–7.6): an agent consolidates all memories of a project, one at a time over all processes. A
//! failed or stopped dream changes nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pal_engine::{CacheSettings, ConversationFork};
use pal_mailbox::ProcessIdentity;
use pal_memory::{Author, CONTEXT_LINES, MemoryLocation, MemoryStore, TruncatedFile};
use pal_model::{RequestSource, Timestamp};
use pal_permissions::RuleSet;
use pal_prompt::{PrefixInputs, PromptMode, PromptOverrides, ToolSpec, assemble, built_in_tools};
use pal_provider::ProviderConnection;
use pal_run::ProgressLimits;
use pal_store::project_directory;
use pal_tools::{MediaSupport, SandboxOptions, Workspace, hidden_files, workspace_sandbox};
use pal_view::Lens;

use super::access_bounds::{AccessBounds, ReadOnlyBash};
use super::dream_lock;
use super::dream_report::DreamReport;
use super::dream_task::{DreamState, DreamTask};
use super::memory_editor::MemoryEditor;
use super::session_search::{self, SearchSessionsTool};
use crate::background_budget::BackgroundBudget;
use crate::background_config::BackgroundConfig;
use crate::clock::{Clock, random_ids};
use crate::fork_runner::{ForkLimits, ForkModel, ForkReport, ForkRunner, RunDeadline};
use crate::timed_exchange::ExchangeListener;

/// System prompt and directive of the agent.
const PROMPT: &str = include_str!("texts/dream.md");
const DIRECTIVE: &str = include_str!("texts/dream_directive.md");

/// Built-in tools of the agent.
const TOOLS: [&str; 6] = ["Bash", "Edit", "Glob", "Grep", "Read", "Write"];

/// Limits: responses, duration, and price in US dollars.
const TURNS_MAX: u64 = 40;
const TIME_MAX: Duration = Duration::from_secs(900);
const COST_MAX: f64 = 3.0;

/// Author name of its changes, before the run id.
const AUTHOR: &str = "dream";

/// A dream over the memories of a project.
#[derive(Clone)]
pub struct Dream {
    home: PathBuf,
    user_home: Option<PathBuf>,
    /// Directories that the agent may read.
    roots: Vec<PathBuf>,
    place: MemoryLocation,
    /// Directory of the project in the program's home.
    kept: PathBuf,
    model: DreamModel,
    rules: RuleSet,
    secret_variables: Vec<String>,
    fencing: Option<SandboxOptions>,
    clock: Clock,
    today: fn() -> String,
    attribution: String,
}

/// Model of a dream and its limits.
#[derive(Clone)]
struct DreamModel {
    connection: Arc<ProviderConnection>,
    lens: Lens,
    cache: CacheSettings,
    tokens_per_day: u64,
    progress: ProgressLimits,
}

/// Receiver of its usage, and the session it works for; empty for none.
pub(super) type UsageSink = (Arc<dyn ExchangeListener>, String);

impl Dream {
    /// Creates a dream for the project of this configuration.
    pub fn new(config: &BackgroundConfig) -> Dream {
        let search = &config.search;
        let project = pal_project::find_project(&search.directory);
        let roots = std::iter::once(&search.directory).chain(&search.added);
        Dream {
            home: config.home.clone(),
            user_home: search.home.clone(),
            roots: roots.map(|root| root.canonicalize().unwrap_or_else(|_| root.clone())).collect(),
            place: MemoryLocation::of_project(&config.home, &project),
            kept: project_directory(&config.home, &project),
            model: DreamModel {
                connection: Arc::clone(&config.model.connection),
                lens: config.model.lens.clone(),
                cache: config.model.cache.clone(),
                tokens_per_day: config.tokens_daily,
                progress: config.model.progress,
            },
            rules: config.rules.clone(),
            secret_variables: config.secret_variables.clone(),
            fencing: config.sandbox.clone(),
            clock: config.clock,
            today: config.today,
            attribution: config.attribution.clone(),
        }
    }

    /// Creates a task that has not started.
    pub fn task(&self) -> DreamTask {
        DreamTask::new()
    }

    /// Consolidates the memories under the lock.
    pub fn run(&self, task: &DreamTask) -> DreamReport {
        // Nothing receives the usage.
        self.run_for(task, (Arc::new(()), String::new()))
    }

    pub(super) fn run_for(&self, task: &DreamTask, books: UsageSink) -> DreamReport {
        let (begun, now) = (Instant::now(), self.clock.now());
        let run = random_ids().next_id(now).to_string();
        let mut report = DreamReport::new();
        let memory = self.place.open(now).map_err(|error| error.to_string());
        let taken = memory.and_then(|memory| {
            let taken = dream_lock::acquire(
                memory.path(),
                &ProcessIdentity::current(),
                &run,
                &ProcessIdentity::is_alive,
                now,
            );
            match taken.map_err(|error| error.to_string())? {
                Ok((held, abandoned)) => Ok((memory, held, abandoned)),
                Err(held) => Err(held.told(now)),
            }
        });
        match taken {
            Err(why) => report.state = DreamState::Failed(why),
            Ok((memory, held, abandoned)) => {
                let work = || self.held(memory, &run, &abandoned, (task, books), &mut report);
                // A panic is a failed run: the lock must be released.
                let worked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
                let worked = worked.unwrap_or_else(|_| Err(String::from("it broke down")));
                report.state = ended(worked, task, begun);
                let given = match report.state {
                    DreamState::Completed => held.succeed(),
                    _ => held.fail(),
                };
                if let Err(error) = given {
                    report.notes.push(format!("the lock was not given back: {error}"));
                }
            }
        }
        report.took = begun.elapsed();
        report.turns = task.turns();
        task.ended(report.state.clone());
        report.log();
        report
    }

    /// Runs on a copy that is thrown away, and reports what would change.
    pub fn rehearse(&self, task: &DreamTask) -> DreamReport {
        let (begun, now) = (Instant::now(), self.clock.now());
        let mut report = DreamReport::new();
        let scratch = self.kept.join("dream").join(format!("rehearsal-{}", std::process::id()));
        let worked = self.copied(&scratch).and_then(|cuts| {
            let memory = MemoryStore::open(&scratch, now).map_err(|error| error.to_string())?;
            report.since = memory.point();
            let by = Author::Named(format!("{AUTHOR} rehearsal"));
            let book = MemoryEditor::new(memory, by, self.clock).consolidating();
            self.work(&book, &cuts, (task, (Arc::new(()), String::new())), &mut report)?;
            report.look(&book)
        });
        report.state = ended(worked, task, begun);
        // The next run removes leftovers.
        let _ = std::fs::remove_dir_all(&scratch);
        report.took = begun.elapsed();
        report.turns = task.turns();
        task.ended(report.state.clone());
        report.log();
        report
    }

    /// Copies the memories; returns the text about earlier cuts.
    fn copied(&self, scratch: &Path) -> Result<String, String> {
        let wrong = |error: std::io::Error| error.to_string();
        let mut memory = self.place.open(self.clock.now()).map_err(|error| error.to_string())?;
        let cuts = earlier_cuts(&memory)?;
        let _ = std::fs::remove_dir_all(scratch);
        pal_store::create_private_directory(scratch).map_err(|error| error.to_string())?;
        memory.list().map_err(|error| error.to_string())?;
        for entry in std::fs::read_dir(memory.path()).map_err(wrong)?.flatten() {
            let name = entry.file_name();
            let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
            if is_file && !name.to_string_lossy().starts_with('.') {
                let bytes = std::fs::read(entry.path()).map_err(wrong)?;
                pal_store::replace_private_file(&scratch.join(name), &bytes).map_err(wrong)?;
            }
        }
        Ok(cuts)
    }

    /// Work under the lock. Any failure undoes all changes.
    fn held(
        &self,
        mut memory: MemoryStore,
        run: &str,
        abandoned: &[String],
        (task, books): (&DreamTask, UsageSink),
        report: &mut DreamReport,
    ) -> Result<(), String> {
        for lost in abandoned {
            if revert_run(&mut memory, lost, self.clock.now())? {
                report.notes.push(String::from("what a dream had changed that was killed is taken back"));
            }
        }
        let (by, since) = (author(run), memory.point());
        report.since = since;
        let cuts = earlier_cuts(&memory)?;
        let book = MemoryEditor::new(memory, by.clone(), self.clock).consolidating();
        let worked = self.work(&book, &cuts, (task, books), report);
        match worked {
            Ok(()) => report.look(&book)?,
            Err(why) => {
                let back = book.with(|memory| memory.revert_author(&by, since, &by, self.clock.now()));
                back.map_err(|error| format!("{why}; and what it changed could not be taken back: {error}"))?;
                return Err(why);
            }
        }
        book.with(|memory| memory.truncated_files(&by))
            .map(|cuts| report.cuts = cuts)
            .map_err(|error| error.to_string())
    }

    /// Runs the agent.
    fn work(
        &self,
        book: &MemoryEditor,
        cuts: &str,
        (task, books): (&DreamTask, UsageSink),
        report: &mut DreamReport,
    ) -> Result<(), String> {
        let (directory, index) = book.with(|memory| {
            let directory = memory.path().canonicalize().map_err(|error| error.to_string())?;
            Ok::<_, String>((directory, memory.index_for_context().map_err(|error| error.to_string())?.text))
        })?;
        if index.trim().is_empty() {
            return Ok(());
        }
        let (source, session) = (RequestSource::from_name(AUTHOR), books.1);
        let allowance = BackgroundBudget::new(
            &self.home,
            self.model.tokens_per_day,
            &session,
            Arc::clone(&self.model.connection),
        );
        let allowance = Arc::new(allowance);
        allowance.may_begin(&source, self.clock.now())?;
        let folder = self.kept.join("dream").join("run");
        let mut tools = book.tools();
        let workspace = self.workspace(directory.clone(), folder.clone());
        let sandbox = self.fencing.as_ref().map(|fencing| workspace_sandbox(fencing, &workspace, &self.home));
        let look = ReadOnlyBash::new(&folder, sandbox, self.secret_variables.clone());
        let sandbox = look.sandbox();
        tools.push(Box::new(look));
        tools.push(Box::new(SearchSessionsTool { sessions: self.kept.join("sessions") }));
        let mut bounds = AccessBounds::new(directory.clone(), self.home.clone(), &self.rules, true);
        bounds.sandbox = sandbox;
        let (teller, pages) = (task.clone(), book.clone());
        let worker = ForkRunner {
            fork: self.aside(&directory),
            model: ForkModel {
                connection: Arc::clone(&self.model.connection),
                card: self.model.lens.card.clone(),
                source: source.clone(),
                listener: books.0,
                budget: Arc::clone(&allowance),
                clock: self.clock,
            },
            limits: ForkLimits {
                turns_max: TURNS_MAX,
                progress: self.model.progress,
                ends_when_written: false,
                cost_max: Some(COST_MAX),
            },
            tools,
            workspace,
            access: bounds.reach(),
            on_turn: Box::new(move |turn| teller.told(turn, pages.touched())),
            cancel: task.cancel.clone(),
        };
        let directive = DIRECTIVE
            .replace("{lines}", &CONTEXT_LINES.to_string())
            .replace("{cuts}", cuts)
            // Memories are data and must not speak for the system.
            .replace("{index}", &pal_model::escape_tags(index.trim_end()));
        let mut done = ForkReport::default();
        let deadline = RunDeadline::after(TIME_MAX, &task.cancel).map_err(|error| error.to_string())?;
        let worked = worker.run_with_report(&directive, &mut done);
        drop(deadline);
        allowance.ended(&source, &book.touched(), self.clock.now());
        (report.requests, report.tokens, report.cost) = (done.requests, done.tokens, done.cost);
        report.refused = done.refused;
        worked
    }

    fn aside(&self, directory: &Path) -> ConversationFork {
        let project = self.roots.first().map_or(String::new(), |root| root.display().to_string());
        let prompt = PROMPT
            .replace("{directory}", &directory.display().to_string())
            .replace("{project}", &project)
            .replace("{today}", &(self.today)());
        let is_offered = |tool: &ToolSpec| TOOLS.contains(&tool.name.as_str());
        let assembled = assemble(&PrefixInputs {
            attribution: self.attribution.clone(),
            mode: PromptMode::Headless,
            prompts: PromptOverrides { override_all: Some(prompt), ..PromptOverrides::default() },
            tools: built_in_tools().into_iter().filter(is_offered).chain([session_search::spec()]).collect(),
            // All of its few tools are listed, whatever the window.
            window: u64::MAX,
            ..PrefixInputs::for_card(&self.model.lens.card)
        });
        ConversationFork::fresh(
            self.model.lens.clone(),
            &assembled.prefix,
            &self.model.cache,
            self.clock.now(),
        )
    }

    fn workspace(&self, directory: PathBuf, folder: PathBuf) -> Workspace {
        let mut roots = self.roots.clone();
        roots.push(directory);
        let mut workspace = Workspace::new(
            roots,
            folder,
            self.user_home.clone(),
            MediaSupport::default(),
            Default::default(),
        );
        workspace.hidden = Some(hidden_files(&self.rules, &self.home, &workspace));
        workspace
    }
}

/// Reverts the changes of dreams that were killed, unless another process dreams. Returns true if there were
/// any.
pub fn revert_killed_dreams(place: &MemoryLocation, now: Timestamp) -> Result<bool, String> {
    let is_alive = &ProcessIdentity::is_alive;
    if !dream_lock::is_abandoned(&place.directory, is_alive) {
        return Ok(false);
    }
    let mut memory = place.open(now).map_err(|error| error.to_string())?;
    let run = random_ids().next_id(now).to_string();
    let taken = dream_lock::acquire(memory.path(), &ProcessIdentity::current(), &run, is_alive, now);
    let Ok((held, abandoned)) = taken.map_err(|error| error.to_string())? else { return Ok(false) };
    let mut is_changed = false;
    for lost in &abandoned {
        // After a failure the lock keeps the runs, so the next start tries again.
        is_changed |= revert_run(&mut memory, lost, now)?;
    }
    held.fail().map_err(|error| error.to_string())?;
    Ok(is_changed)
}

/// Reverts the changes of one dream. Returns true if there were any.
fn revert_run(memory: &mut MemoryStore, run: &str, now: Timestamp) -> Result<bool, String> {
    let of = author(run);
    let changes = memory.log().map_err(|error| error.to_string())?;
    let Some(first) = changes.iter().find(|change| change.by == of) else { return Ok(false) };
    let before = memory.point();
    let point = memory
        .revert_author(&of, first.id - 1, &Author::program(), now)
        .map_err(|error| error.to_string())?;
    Ok(point > before)
}

fn author(run: &str) -> Author {
    Author::Named(format!("{AUTHOR} {run}"))
}

fn ended(worked: Result<(), String>, task: &DreamTask, begun: Instant) -> DreamState {
    match worked {
        Ok(()) => DreamState::Completed,
        Err(_) if begun.elapsed() >= TIME_MAX => {
            DreamState::Failed(format!("it took longer than {} min", TIME_MAX.as_secs() / 60))
        }
        Err(_) if task.cancel.is_cancelled() => DreamState::Killed,
        Err(why) => DreamState::Failed(why),
    }
}

/// Cuts of the last run, as text for the next one.
fn earlier_cuts(memory: &MemoryStore) -> Result<String, String> {
    let changes = memory.log().map_err(|error| error.to_string())?;
    let is_dream = |by: &Author| matches!(by, Author::Named(name) if name.starts_with(AUTHOR));
    let Some(last) = changes.iter().rev().find(|change| is_dream(&change.by)) else {
        return Ok(String::new());
    };
    let cuts = memory.truncated_files(&last.by).map_err(|error| error.to_string())?;
    if cuts.is_empty() {
        return Ok(String::new());
    }
    let line = |cut: &TruncatedFile| {
        format!(
            "- {}: {} of {} lines are left; as it was: {}\n",
            cut.file,
            cut.left,
            cut.lines,
            cut.kept.display()
        )
    };
    let lines: String = cuts.iter().map(line).collect();
    Ok(format!(
        "\nThe last time more than half was taken away from these. Look at how they were, and bring back what should not have gone:\n\n{lines}"
    ))
}
