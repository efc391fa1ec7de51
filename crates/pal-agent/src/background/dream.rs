//! Dreaming (§7.5–7.6): an agent of its own puts all memories of a project in order, one at a time over all processes. What
//! fails or is stopped leaves everything as it was.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use pal_engine::{Aside, CacheSettings};
use pal_memory::{Author, CONTEXT_LINES, Cut, Memory, Place};
use pal_messages::Process;
use pal_model::Source;
use pal_permissions::Rules;
use pal_prompt::{Assembly, Mode, Prompts, ToolSpec, assemble, built_in_tools};
use pal_session::ProgressLimits;
use pal_store::project_directory;
use pal_tools::{Abilities, Workspace};
use pal_view::Lens;

use super::lock;
use super::reach::{Bounds, Look};
use super::report::DreamReport;
use super::sessions::{self, SearchSessions};
use super::task::{DreamState, DreamTask};
use super::tools::Book;
use crate::allowance::Allowance;
use crate::aside::{Deadline, Done, Worker};
use crate::clock::{self, Clock};
use crate::handle::Handle;
use crate::line::Line;
use crate::options::{Fencing, Options};

/// What the agent is, and what it is told.
const PROMPT: &str = include_str!("texts/dream.md");
const DIRECTIVE: &str = include_str!("texts/dream_directive.md");

/// The tools of the program that it has, besides its own.
const TOOLS: [&str; 6] = ["Bash", "Edit", "Glob", "Grep", "Read", "Write"];

/// Most of its answers, how long it may take, and what it may cost in US dollars.
const TURNS_MOST: usize = 40;
const TIME_MOST: Duration = Duration::from_secs(900);
const COST_MOST: f64 = 3.0;

/// How the author of what a run writes is called, before the run's id.
const AUTHOR: &str = "dream";

/// The memories of a project, and whoever can put them in order.
#[derive(Clone)]
pub struct Dream {
    home: PathBuf,
    user_home: Option<PathBuf>,
    /// The folders of the project that may be looked at.
    roots: Vec<PathBuf>,
    place: Place,
    /// The project's folder of ours.
    kept: PathBuf,
    line: Arc<Line>,
    lens: Lens,
    cache: CacheSettings,
    rules: Rules,
    secret_variables: Vec<String>,
    fencing: Option<Fencing>,
    clock: Clock,
    today: fn() -> String,
    attribution: String,
    tokens_per_day: u64,
    progress: ProgressLimits,
}

/// Who is told what it takes, and for which session that is; an empty one for none.
pub(super) type Books = (Handle, String);

impl Dream {
    /// For the project that an agent of these options works on.
    pub fn of(options: &Options) -> Dream {
        let search = &options.sources.search;
        let project = pal_sources::project_of(&search.directory);
        let roots = std::iter::once(&search.directory).chain(&search.added);
        Dream {
            home: options.home.clone(),
            user_home: search.home.clone(),
            roots: roots.map(|root| root.canonicalize().unwrap_or_else(|_| root.clone())).collect(),
            place: Place::of_project(&options.home, &project),
            kept: project_directory(&options.home, &project),
            line: Arc::clone(&options.line),
            lens: options.lens.clone(),
            cache: options.cache.clone(),
            rules: options.rules.clone(),
            secret_variables: options.secret_variables.clone(),
            fencing: options.fence.clone(),
            clock: options.clock,
            today: options.today,
            attribution: options.attribution.clone(),
            tokens_per_day: options.background_tokens_daily,
            progress: options.run.progress,
        }
    }

    /// A task that nobody works on yet.
    pub fn task(&self) -> DreamTask {
        DreamTask::new()
    }

    /// Puts the memories in order. Nobody else does it meanwhile, in any process.
    pub fn run(&self, task: &DreamTask) -> DreamReport {
        // Nobody keeps books.
        let (sender, _) = channel();
        self.run_for(task, (Handle::new(sender), String::new()))
    }

    pub(super) fn run_for(&self, task: &DreamTask, books: Books) -> DreamReport {
        let (begun, now) = (Instant::now(), self.clock.now());
        let run = clock::ids().next_id(now).to_string();
        let mut report = DreamReport::new();
        let memory = self.place.open(now).map_err(|error| error.to_string());
        let taken = memory.and_then(|memory| {
            let taken = lock::acquire(memory.path(), &Process::current(), &run, &Process::is_alive, now);
            match taken.map_err(|error| error.to_string())? {
                Ok((held, abandoned)) => Ok((memory, held, abandoned)),
                Err(held) => Err(held.told(now)),
            }
        });
        match taken {
            Err(why) => report.state = DreamState::Failed(why),
            Ok((memory, held, abandoned)) => {
                let work = || self.held(memory, &run, &abandoned, (task, books), &mut report);
                // A run that panics is a run that failed: the lock is to be given back.
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

    /// The same on a copy that is thrown away: what it would change.
    pub fn rehearse(&self, task: &DreamTask) -> DreamReport {
        let (begun, now) = (Instant::now(), self.clock.now());
        let mut report = DreamReport::new();
        let scratch = self.kept.join("dream").join(format!("rehearsal-{}", std::process::id()));
        let (sender, _) = channel();
        let worked = self.copied(&scratch).and_then(|cuts| {
            let memory = Memory::open(&scratch, now).map_err(|error| error.to_string())?;
            report.since = memory.point();
            let by = Author::Named(format!("{AUTHOR} rehearsal"));
            let book = Book::new(memory, by, self.clock);
            self.work(&book, &cuts, (task, (Handle::new(sender), String::new())), &mut report)?;
            report.look(&book)
        });
        report.state = ended(worked, task, begun);
        // What is left of it is removed by the next one.
        let _ = std::fs::remove_dir_all(&scratch);
        report.took = begun.elapsed();
        report.turns = task.turns();
        task.ended(report.state.clone());
        report.log();
        report
    }

    /// Copies the memories; what is said of the last run's cuts.
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

    /// What is done under the lock. Whatever goes wrong, everything is as it was.
    fn held(
        &self,
        mut memory: Memory,
        run: &str,
        abandoned: &[String],
        (task, books): (&DreamTask, Books),
        report: &mut DreamReport,
    ) -> Result<(), String> {
        for lost in abandoned {
            if self.taken_back(&mut memory, &author(lost))? {
                report.notes.push(String::from("what a dream had changed that was killed is taken back"));
            }
        }
        let (by, since) = (author(run), memory.point());
        report.since = since;
        let cuts = earlier_cuts(&memory)?;
        let book = Book::new(memory, by.clone(), self.clock);
        let worked = self.work(&book, &cuts, (task, books), report);
        match worked {
            Ok(()) => report.look(&book)?,
            Err(why) => {
                let back = book.with(|memory| memory.take_back(&by, since, &by, self.clock.now()));
                back.map_err(|error| format!("{why}; and what it changed could not be taken back: {error}"))?;
                return Err(why);
            }
        }
        book.with(|memory| memory.cuts(&by)).map(|cuts| report.cuts = cuts).map_err(|error| error.to_string())
    }

    fn taken_back(&self, memory: &mut Memory, of: &Author) -> Result<bool, String> {
        let changes = memory.log().map_err(|error| error.to_string())?;
        let Some(first) = changes.iter().find(|change| change.by == *of) else { return Ok(false) };
        let before = memory.point();
        let point = memory
            .take_back(of, first.id - 1, &Author::program(), self.clock.now())
            .map_err(|error| error.to_string())?;
        Ok(point > before)
    }

    /// Lets the agent work.
    fn work(
        &self,
        book: &Book,
        cuts: &str,
        (task, books): (&DreamTask, Books),
        report: &mut DreamReport,
    ) -> Result<(), String> {
        let (directory, index) = book.with(|memory| {
            let directory = memory.path().canonicalize().map_err(|error| error.to_string())?;
            Ok::<_, String>((directory, memory.index_for_context().map_err(|error| error.to_string())?.text))
        })?;
        if index.trim().is_empty() {
            return Ok(());
        }
        let (source, session) = (Source::named(AUTHOR), books.1);
        let allowance = Allowance::new(&self.home, self.tokens_per_day, &session, Arc::clone(&self.line));
        let allowance = Arc::new(allowance);
        allowance.may_begin(&source, self.clock.now())?;
        let folder = self.kept.join("dream").join("run");
        let mut tools = book.tools();
        let workspace = self.workspace(directory.clone(), folder.clone());
        let sandbox =
            self.fencing.as_ref().map(|fencing| crate::fencing::sandbox(fencing, &workspace, &self.home));
        let look = Look::new(&folder, sandbox, self.secret_variables.clone());
        let sandbox = look.sandbox();
        tools.push(Box::new(look));
        tools.push(Box::new(SearchSessions { sessions: self.kept.join("sessions") }));
        let mut bounds = Bounds::new(directory.clone(), self.home.clone(), &self.rules, true);
        bounds.sandbox = sandbox;
        let (teller, pages) = (task.clone(), book.clone());
        let worker = Worker {
            aside: self.aside(&directory),
            line: Arc::clone(&self.line),
            card: self.lens.card.clone(),
            source: source.clone(),
            handle: books.0,
            tools,
            workspace,
            reach: bounds.reach(),
            turns_most: TURNS_MOST,
            progress: self.progress,
            ends_when_written: false,
            cost_most: Some(COST_MOST),
            told: Box::new(move |turn| teller.told(turn, pages.touched())),
            cancel: task.cancel.clone(),
            allowance: Arc::clone(&allowance),
            clock: self.clock,
        };
        let directive = DIRECTIVE
            .replace("{lines}", &CONTEXT_LINES.to_string())
            .replace("{cuts}", cuts)
            // What memories say is said by nobody but themselves.
            .replace("{index}", &pal_model::defuse(index.trim_end()));
        let mut done = Done::default();
        let deadline = Deadline::after(TIME_MOST, &task.cancel).map_err(|error| error.to_string())?;
        let worked = worker.work_on(&directive, &mut done);
        drop(deadline);
        allowance.ended(&source, &book.touched(), self.clock.now());
        (report.requests, report.tokens, report.cost) = (done.requests, done.tokens, done.cost);
        report.refused = done.refused;
        worked
    }

    fn aside(&self, directory: &Path) -> Aside {
        let project = self.roots.first().map_or(String::new(), |root| root.display().to_string());
        let prompt = PROMPT
            .replace("{directory}", &directory.display().to_string())
            .replace("{project}", &project)
            .replace("{today}", &(self.today)());
        let is_offered = |tool: &ToolSpec| TOOLS.contains(&tool.name.as_str());
        let assembled = assemble(&Assembly {
            attribution: self.attribution.clone(),
            mode: Mode::Headless,
            prompts: Prompts { override_all: Some(prompt), ..Prompts::default() },
            tools: built_in_tools().into_iter().filter(is_offered).chain([sessions::spec()]).collect(),
            ..Assembly::bare(&self.lens.card)
        });
        Aside::fresh(self.lens.clone(), &assembled.prefix, &self.cache, self.clock.now())
    }

    fn workspace(&self, directory: PathBuf, folder: PathBuf) -> Workspace {
        let mut roots = self.roots.clone();
        roots.push(directory);
        let mut workspace =
            Workspace::new(roots, folder, self.user_home.clone(), Abilities::default(), Default::default());
        workspace.hidden = Some(crate::gate::hidden(&self.rules, &self.home, &workspace));
        workspace
    }
}

fn author(run: &str) -> Author {
    Author::Named(format!("{AUTHOR} {run}"))
}

fn ended(worked: Result<(), String>, task: &DreamTask, begun: Instant) -> DreamState {
    match worked {
        Ok(()) => DreamState::Completed,
        Err(_) if begun.elapsed() >= TIME_MOST => {
            DreamState::Failed(format!("it took longer than {} min", TIME_MOST.as_secs() / 60))
        }
        Err(_) if task.cancel.is_cancelled() => DreamState::Killed,
        Err(why) => DreamState::Failed(why),
    }
}

/// What the last run cut away, in words for the next one.
fn earlier_cuts(memory: &Memory) -> Result<String, String> {
    let changes = memory.log().map_err(|error| error.to_string())?;
    let is_dream = |by: &Author| matches!(by, Author::Named(name) if name.starts_with(AUTHOR));
    let Some(last) = changes.iter().rev().find(|change| is_dream(&change.by)) else {
        return Ok(String::new());
    };
    let cuts = memory.cuts(&last.by).map_err(|error| error.to_string())?;
    if cuts.is_empty() {
        return Ok(String::new());
    }
    let line = |cut: &Cut| {
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
