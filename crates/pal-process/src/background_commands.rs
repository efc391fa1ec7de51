//! Commands that run in the background of a session.
//!
//! Output goes straight to a file. A dedicated thread starts each command and stays with it to its end, so
//! that sandboxes bound to the starting thread hold for as long as the command runs.

mod background_output;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::command_spec::spawn;
use crate::leftover_processes::{CommandTag, EndedProcess};
use crate::output_capture::create;
use crate::process_group::{ChildWaiter, ProcessGroup};
use crate::termination::{GRACE_PERIOD, KILL_TIMEOUT};
use crate::{CancelToken, ProcessStatus, Program, SpawnError};

pub use background_output::BackgroundOutput;

/// Interval between checks of the output size.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Commands that run in the background of a session. Dropping this value ends them.
#[derive(Debug)]
pub struct BackgroundCommands {
    folder: PathBuf,
    output_bytes_max: u64,
    shared: Arc<BackgroundRegistry>,
}

/// Snapshot of a background command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BackgroundCommand {
    /// Identifier, unique in the session.
    pub id: String,
    /// Command line as the caller describes it.
    pub command_line: String,
    /// File with its output.
    pub file: PathBuf,
    /// Current state.
    pub state: BackgroundState,
    /// Run time so far, or in total.
    pub took: Duration,
    /// True if it left processes behind, which were terminated.
    pub left_processes: bool,
    /// Terminated leftover processes that could be identified.
    pub ended: Vec<EndedProcess>,
}

/// State of a background command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BackgroundState {
    /// The command runs.
    Running,
    /// It exited, or an outside signal ended it.
    Ended(ProcessStatus),
    /// It was killed on request.
    Killed,
    /// It was killed because its output exceeded the limit.
    PrintedTooMuch,
}

#[derive(Debug, Default)]
struct BackgroundRegistry {
    tasks: Mutex<BTreeMap<u64, CommandRecord>>,
    changed: Condvar,
}

/// Bookkeeping for a background command.
#[derive(Debug)]
struct CommandRecord {
    task: BackgroundCommand,
    started: Instant,
    /// Process group, until its leader is reaped.
    group: Option<ProcessGroup>,
    /// Final state if it was killed.
    killed: Option<BackgroundState>,
    /// Bytes of its output that were read.
    read: u64,
    /// True if its end was reported.
    is_told: bool,
}

impl BackgroundCommands {
    /// Creates an empty set. Outputs go to files in `folder`, which is created on demand; a command that
    /// prints more than `output_bytes_max` is killed.
    pub fn new(folder: PathBuf, output_bytes_max: u64) -> BackgroundCommands {
        BackgroundCommands { folder, output_bytes_max, shared: Arc::default() }
    }

    /// Sets the output limit for commands started from now on.
    pub fn limit_outputs(&mut self, bytes_max: u64) {
        self.output_bytes_max = bytes_max;
    }

    /// Starts a command.
    pub fn start(&self, program: Program, what: &str) -> Result<BackgroundCommand, SpawnError> {
        let name = program.path.to_string_lossy().into_owned();
        let (tell, started) = sync_channel(1);
        let keeper = CommandMonitor {
            folder: self.folder.clone(),
            output_bytes_max: self.output_bytes_max,
            shared: Arc::clone(&self.shared),
        };
        let what = what.to_owned();
        let spawned = thread::Builder::new()
            .name("pal-background".to_owned())
            .spawn(move || keeper.monitor(program, what, &tell));
        let answer =
            spawned.and_then(|_| started.recv().unwrap_or_else(|_| Err(io::Error::other("it panicked"))));
        answer.map_err(|cause| SpawnError { program: name, cause })
    }

    /// All commands in starting order.
    pub fn list(&self) -> Vec<BackgroundCommand> {
        self.shared.tasks().values().map(CommandRecord::now).collect()
    }

    /// Returns the command with this id.
    pub fn task(&self, id: &str) -> Option<BackgroundCommand> {
        self.shared.tasks().values().find(|known| known.task.id == id).map(CommandRecord::now)
    }

    /// Waits until a command has ended, the time is up, or `cancel` is triggered.
    pub fn wait(&self, id: &str, time: Duration, cancel: &CancelToken) -> Option<BackgroundCommand> {
        let shared = Arc::clone(&self.shared);
        // The lock prevents a notification between the check of the token and the wait.
        let _watch = cancel.watch(move || {
            drop(shared.tasks());
            shared.changed.notify_all();
        });
        self.shared.wait_until(time, |tasks| {
            let task = tasks.values().find(|known| known.task.id == id);
            cancel.is_cancelled() || task.is_none_or(|known| known.task.state != BackgroundState::Running)
        });
        self.task(id)
    }

    /// Ends a command with all its processes and returns its final snapshot.
    pub fn kill(&self, id: &str) -> Option<BackgroundCommand> {
        self.shared.end(|known| known.task.id == id);
        let mut tasks = self.shared.tasks();
        let known = tasks.values_mut().find(|known| known.task.id == id)?;
        known.is_told = known.task.state != BackgroundState::Running;
        Some(known.now())
    }

    /// Ends all commands.
    pub fn end_all(&self) {
        self.shared.end(|_| true);
    }

    /// Returns ended commands, each once; a command whose end was already seen is left out.
    pub fn take_finished(&self) -> Vec<BackgroundCommand> {
        let mut tasks = self.shared.tasks();
        let news =
            tasks.values_mut().filter(|known| known.task.state != BackgroundState::Running && !known.is_told);
        news.map(|known| {
            known.is_told = true;
            known.now()
        })
        .collect()
    }
}

impl Drop for BackgroundCommands {
    fn drop(&mut self) {
        self.end_all();
    }
}

impl BackgroundRegistry {
    fn tasks(&self) -> MutexGuard<'_, BTreeMap<u64, CommandRecord>> {
        // Every change is consistent by itself, so a poisoned lock is usable.
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a condition holds; returns false on timeout.
    fn wait_until(&self, time: Duration, holds: impl Fn(&BTreeMap<u64, CommandRecord>) -> bool) -> bool {
        let waited = self.changed.wait_timeout_while(self.tasks(), time, |tasks| !holds(tasks));
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// Terminates commands, and kills those that do not end in time.
    fn end(&self, which: impl Fn(&CommandRecord) -> bool) {
        let each = |signal: fn(ProcessGroup)| {
            for known in self.tasks().values_mut().filter(|known| which(known)) {
                if let Some(group) = known.group {
                    known.killed.get_or_insert(BackgroundState::Killed);
                    signal(group);
                }
            }
        };
        let have_ended = |tasks: &BTreeMap<u64, CommandRecord>| {
            tasks
                .values()
                .filter(|known| which(known))
                .all(|known| known.task.state != BackgroundState::Running)
        };
        each(ProcessGroup::terminate);
        if !self.wait_until(GRACE_PERIOD, have_ended) {
            each(ProcessGroup::kill);
            // A command that survives even this is left to the system; leftovers have a grace period of their
            // own.
            self.wait_until(2 * (GRACE_PERIOD + KILL_TIMEOUT), have_ended);
        }
    }
}

impl CommandRecord {
    fn now(&self) -> BackgroundCommand {
        let mut task = self.task.clone();
        if task.state == BackgroundState::Running {
            task.took = self.started.elapsed();
        }
        task
    }
}

/// Monitor of one command.
struct CommandMonitor {
    folder: PathBuf,
    output_bytes_max: u64,
    shared: Arc<BackgroundRegistry>,
}

impl CommandMonitor {
    fn monitor(&self, mut program: Program, what: String, tell: &SyncSender<io::Result<BackgroundCommand>>) {
        let mark = CommandTag::next();
        program.environment.push(mark.variable());
        let (number, group, ended) = match self.start(&program, what, &mark) {
            Ok((number, group, ended)) => {
                let task = self.shared.tasks().get(&number).map(CommandRecord::now);
                // The caller is waiting for it.
                let _ = tell.send(task.ok_or_else(|| io::Error::other("it is not known")));
                (number, group, ended)
            }
            Err(cause) => {
                let _ = tell.send(Err(cause));
                return;
            }
        };
        let child = loop {
            match ended.recv_timeout(POLL_INTERVAL) {
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
    ) -> io::Result<(u64, ProcessGroup, std::sync::mpsc::Receiver<Child>)> {
        let waiter = ChildWaiter::ready(None)?;
        let mut command = program.command();
        // Numbers are assigned under the lock, and files of an earlier run of the session stay.
        let mut tasks = self.shared.tasks();
        let first = tasks.last_key_value().map_or(1, |(number, _)| number + 1);
        let (number, file, output) = create_next(&self.folder, first)?;
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        let started = spawn(&mut command, program.thread_setup.as_ref())
            .inspect_err(|_| _ = std::fs::remove_file(&file));
        let child = started?;
        mark.contain(child.id());
        let group = ProcessGroup::of(&child);
        let id = format!("task_{number}");
        let (state, took) = (BackgroundState::Running, Duration::ZERO);
        let task = BackgroundCommand {
            id,
            command_line: what,
            file,
            state,
            took,
            left_processes: false,
            ended: Vec::new(),
        };
        let known = CommandRecord {
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
            known.killed.get_or_insert(BackgroundState::PrintedTooMuch);
            group.kill();
        }
    }

    /// Truncates output that exceeded the limit before it was noticed.
    fn cut_output(&self, number: u64) {
        let file = self.shared.tasks().get(&number).map(|known| known.task.file.clone());
        let Some(file) = file.and_then(|file| std::fs::File::options().write(true).open(file).ok()) else {
            return;
        };
        if file.metadata().is_ok_and(|metadata| metadata.len() > self.output_bytes_max) {
            // On failure the file stays too long.
            let _ = file.set_len(self.output_bytes_max);
        }
    }

    fn finish(&self, number: u64, group: ProcessGroup, child: Option<Child>, mark: &CommandTag) {
        let mut status = ProcessStatus::Unknown;
        mark.close();
        {
            // Once it is reaped its pid may be reused: the lock prevents signals in between.
            let mut tasks = self.shared.tasks();
            if let Some(mut child) = child {
                status = child.wait().map_or(ProcessStatus::Unknown, ProcessStatus::from);
            }
            if let Some(known) = tasks.get_mut(&number) {
                known.group = None;
            }
        }
        let left = group.end_leftovers();
        let escaped = mark.end_leftovers();
        self.cut_output(number);
        if let Some(known) = self.shared.tasks().get_mut(&number) {
            known.task.state = known.killed.unwrap_or(BackgroundState::Ended(status));
            known.task.took = known.started.elapsed();
            known.task.left_processes = left.is_some() || !escaped.is_empty();
            known.task.ended = left.into_iter().flatten().chain(escaped).collect();
        }
        self.shared.changed.notify_all();
    }
}

/// Creates the file with the first free number.
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
