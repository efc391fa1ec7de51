//! Commands that go on beside the session.
//!
//! What such a command prints goes straight to a file. A thread of its own starts each command and stays with it to its
//! end: fences that die with the thread that started them hold for as long as the command runs.

mod news;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::capture::create;
use crate::group::{GRACE, Group, KILL_TIME, Waiter};
use crate::leftovers::{CommandTag, EndedProcess};
use crate::spec::spawn;
use crate::{Cancel, NotStarted, Program, Status};

pub use news::News;

/// How often the size of an output is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Commands that go on beside the session. They end with this value.
#[derive(Debug)]
pub struct Background {
    folder: PathBuf,
    output_bytes_max: u64,
    shared: Arc<Shared>,
}

/// A command in the background, as it is now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Task {
    /// What it is called; no other of the session is called so.
    pub id: String,
    /// What runs, in the words of whoever started it.
    pub what: String,
    /// The file that its output goes to.
    pub file: PathBuf,
    /// How it is.
    pub state: State,
    /// How long it has been running, or ran.
    pub took: Duration,
    /// Whether it left processes behind, which were ended.
    pub left_processes: bool,
    /// Those of them that could be named, wherever they had gone.
    pub ended: Vec<EndedProcess>,
}

/// How a command in the background is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// It runs.
    Running,
    /// It ended by itself, or by a signal of somebody else.
    Ended(Status),
    /// It was killed because somebody asked for it.
    Killed,
    /// It was killed because it printed more than its file may hold.
    PrintedTooMuch,
}

#[derive(Debug, Default)]
struct Shared {
    tasks: Mutex<BTreeMap<u64, Known>>,
    changed: Condvar,
}

/// What is known of a task.
#[derive(Debug)]
struct Known {
    task: Task,
    started: Instant,
    /// Its processes, as long as their number is theirs.
    group: Option<Group>,
    /// Why it was killed, if it was.
    killed: Option<State>,
    /// How much of its output was read.
    read: u64,
    /// Whether somebody was told that it has ended.
    is_told: bool,
}

impl Background {
    /// No command yet. Outputs go to files in a folder, which is made when it is needed; a command that prints more
    /// than `output_bytes_max` is ended.
    pub fn new(folder: PathBuf, output_bytes_max: u64) -> Background {
        Background { folder, output_bytes_max, shared: Arc::default() }
    }

    /// Limits the output of commands that are started from now on.
    pub fn limit_outputs(&mut self, bytes_max: u64) {
        self.output_bytes_max = bytes_max;
    }

    /// Starts a command.
    pub fn start(&self, program: Program, what: &str) -> Result<Task, NotStarted> {
        let name = program.path.to_string_lossy().into_owned();
        let (tell, started) = sync_channel(1);
        let keeper = Keeper {
            folder: self.folder.clone(),
            output_bytes_max: self.output_bytes_max,
            shared: Arc::clone(&self.shared),
        };
        let what = what.to_owned();
        let spawned = thread::Builder::new()
            .name("pal-background".to_owned())
            .spawn(move || keeper.keep(program, what, &tell));
        let answer =
            spawned.and_then(|_| started.recv().unwrap_or_else(|_| Err(io::Error::other("it panicked"))));
        answer.map_err(|cause| NotStarted { program: name, cause })
    }

    /// All commands, in the order in which they were started.
    pub fn list(&self) -> Vec<Task> {
        self.shared.tasks().values().map(Known::now).collect()
    }

    /// The command with this id.
    pub fn task(&self, id: &str) -> Option<Task> {
        self.shared.tasks().values().find(|known| known.task.id == id).map(Known::now)
    }

    /// Waits until a command has ended, the time is over, or a wish to stop comes.
    pub fn wait(&self, id: &str, time: Duration, cancel: &Cancel) -> Option<Task> {
        let shared = Arc::clone(&self.shared);
        // The lock is taken so that nobody is told between his look at the wish and his wait.
        let _watch = cancel.watch(move || {
            drop(shared.tasks());
            shared.changed.notify_all();
        });
        self.shared.wait_until(time, |tasks| {
            let task = tasks.values().find(|known| known.task.id == id);
            cancel.is_cancelled() || task.is_none_or(|known| known.task.state != State::Running)
        });
        self.task(id)
    }

    /// Ends a command and all its processes; as it is afterwards.
    pub fn kill(&self, id: &str) -> Option<Task> {
        self.shared.end(|known| known.task.id == id);
        let mut tasks = self.shared.tasks();
        let known = tasks.values_mut().find(|known| known.task.id == id)?;
        known.is_told = known.task.state != State::Running;
        Some(known.now())
    }

    /// Ends all commands.
    pub fn end_all(&self) {
        self.shared.end(|_| true);
    }

    /// Commands that have ended, each told once; one whose end was seen in another way is not told.
    pub fn finished_since_last_asked(&self) -> Vec<Task> {
        let mut tasks = self.shared.tasks();
        let news = tasks.values_mut().filter(|known| known.task.state != State::Running && !known.is_told);
        news.map(|known| {
            known.is_told = true;
            known.now()
        })
        .collect()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.end_all();
    }
}

impl Shared {
    fn tasks(&self) -> MutexGuard<'_, BTreeMap<u64, Known>> {
        // Every change is a few assignments that make sense one by one.
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something holds of the tasks; whether it does.
    fn wait_until(&self, time: Duration, holds: impl Fn(&BTreeMap<u64, Known>) -> bool) -> bool {
        let waited = self.changed.wait_timeout_while(self.tasks(), time, |tasks| !holds(tasks));
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// Asks commands to end, and kills those that do not.
    fn end(&self, which: impl Fn(&Known) -> bool) {
        let each = |signal: fn(Group)| {
            for known in self.tasks().values_mut().filter(|known| which(known)) {
                if let Some(group) = known.group {
                    known.killed.get_or_insert(State::Killed);
                    signal(group);
                }
            }
        };
        let have_ended = |tasks: &BTreeMap<u64, Known>| {
            tasks.values().filter(|known| which(known)).all(|known| known.task.state != State::Running)
        };
        each(Group::ask_to_end);
        if !self.wait_until(GRACE, have_ended) {
            each(Group::kill);
            // What ignores even this is left to the system; leftovers have times of grace of their own.
            self.wait_until(2 * (GRACE + KILL_TIME), have_ended);
        }
    }
}

impl Known {
    fn now(&self) -> Task {
        let mut task = self.task.clone();
        if task.state == State::Running {
            task.took = self.started.elapsed();
        }
        task
    }
}

/// Stays with one command.
struct Keeper {
    folder: PathBuf,
    output_bytes_max: u64,
    shared: Arc<Shared>,
}

impl Keeper {
    fn keep(&self, mut program: Program, what: String, tell: &SyncSender<io::Result<Task>>) {
        let mark = CommandTag::next();
        program.environment.push(mark.variable());
        let (number, group, ended) = match self.start(&program, what, &mark) {
            Ok((number, group, ended)) => {
                let task = self.shared.tasks().get(&number).map(Known::now);
                // Whoever asked is waiting for it.
                let _ = tell.send(task.ok_or_else(|| io::Error::other("it is not known")));
                (number, group, ended)
            }
            Err(cause) => {
                let _ = tell.send(Err(cause));
                return;
            }
        };
        let child = loop {
            match ended.recv_timeout(LOOK_EVERY) {
                Ok(child) => break Some(child),
                Err(RecvTimeoutError::Disconnected) => break None,
                Err(RecvTimeoutError::Timeout) => self.check_size(number),
            }
        };
        self.finish(number, group, child, &mark);
    }

    fn start(
        &self,
        program: &Program,
        what: String,
        mark: &CommandTag,
    ) -> io::Result<(u64, Group, std::sync::mpsc::Receiver<Child>)> {
        let waiter = Waiter::ready(None)?;
        let mut command = program.command();
        // Numbers are given under the lock, and files of an earlier life of the session are left alone.
        let mut tasks = self.shared.tasks();
        let first = tasks.last_key_value().map_or(1, |(number, _)| number + 1);
        let (number, file, output) = create_next(&self.folder, first)?;
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        let started = spawn(&mut command, program.thread_setup.as_ref())
            .inspect_err(|_| _ = std::fs::remove_file(&file));
        let child = started?;
        mark.contain(child.id());
        let group = Group::of(&child);
        let id = format!("task_{number}");
        let (state, took) = (State::Running, Duration::ZERO);
        let task = Task { id, what, file, state, took, left_processes: false, ended: Vec::new() };
        let known = Known {
            task,
            started: Instant::now(),
            group: Some(group),
            killed: None,
            read: 0,
            is_told: false,
        };
        tasks.insert(number, known);
        Ok((number, group, waiter.wait_for(child)))
    }

    fn check_size(&self, number: u64) {
        let mut tasks = self.shared.tasks();
        let Some(known) = tasks.get_mut(&number) else { return };
        let bytes = std::fs::metadata(&known.task.file).map_or(0, |file| file.len());
        if bytes > self.output_bytes_max
            && let Some(group) = known.group
        {
            known.killed.get_or_insert(State::PrintedTooMuch);
            group.kill();
        }
    }

    /// Cuts off what a command printed beyond its limit before that was noticed.
    fn cut_output(&self, number: u64) {
        let file = self.shared.tasks().get(&number).map(|known| known.task.file.clone());
        let Some(file) = file.and_then(|file| std::fs::File::options().write(true).open(file).ok()) else {
            return;
        };
        if file.metadata().is_ok_and(|metadata| metadata.len() > self.output_bytes_max) {
            // If it fails, the file stays as long as it is.
            let _ = file.set_len(self.output_bytes_max);
        }
    }

    fn finish(&self, number: u64, group: Group, child: Option<Child>, mark: &CommandTag) {
        let mut status = Status::Unknown;
        mark.close();
        {
            // Once it is reaped its number may be another's: nobody may signal it between.
            let mut tasks = self.shared.tasks();
            if let Some(mut child) = child {
                status = child.wait().map_or(Status::Unknown, Status::from);
            }
            if let Some(known) = tasks.get_mut(&number) {
                known.group = None;
            }
        }
        let left = group.end_leftovers();
        let escaped = mark.end_leftovers();
        self.cut_output(number);
        if let Some(known) = self.shared.tasks().get_mut(&number) {
            known.task.state = known.killed.unwrap_or(State::Ended(status));
            known.task.took = known.started.elapsed();
            known.task.left_processes = left.is_some() || !escaped.is_empty();
            known.task.ended = left.into_iter().flatten().chain(escaped).collect();
        }
        self.shared.changed.notify_all();
    }
}

/// The first file of a number that is free.
fn create_next(folder: &Path, first: u64) -> io::Result<(u64, PathBuf, std::fs::File)> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    for number in first.. {
        let path = folder.join(format!("task_{number}.txt"));
        match create(&path) {
            Ok(file) => return Ok((number, path, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("no number is free"))
}
