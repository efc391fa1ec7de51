//! A command that somebody waits for.
//!
//! One thread serves the pipes and the clock; another waits for the process and wakes the first, as a wish to stop does.
//! A command goes through these steps, forwards only: it runs; it was asked to end (its time was over, or a wish to stop
//! came); it was killed; it has ended, and what it wrote last is collected until its pipes are silent.

use std::fmt;
use std::io::{self, Write, pipe};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use crate::capture::{Capture, Captured, Keep};
use crate::group::{GRACE, Group, KILL_TIME, Waiter};
use crate::leftovers::{CommandTag, EndedProcess};
use crate::pump::{Feed, Pump, Stream};
use crate::spec::spawn;
use crate::{Cancel, Input, Spec, Status, Streams};

/// After the end of a process its pipes are silent when nothing came for so long.
const SILENCE: Duration = Duration::from_millis(50);

/// What a process left behind is not listened to for longer than this.
const LISTEN_MAX: Duration = Duration::from_millis(500);

/// No report is longer.
const REPORT_MAX: usize = 64 * 1024;

/// What came of a command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finished {
    /// How it ended.
    pub status: Status,
    /// Why it was made to end before it did so itself.
    pub stopped: Option<Stopped>,
    /// What it printed: both outputs, or the first of them if they are separate.
    pub output: Captured,
    /// What it printed to the second output, if they are separate.
    pub errors: Captured,
    /// What came through the pipe of [`Input::Report`].
    pub report: Vec<u8>,
    /// Whether it left processes behind, which were ended.
    pub left_processes: bool,
    /// Those of them that could be named, wherever they had gone.
    pub ended: Vec<EndedProcess>,
    /// How long it took.
    pub took: Duration,
}

/// Why a command was made to end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stopped {
    /// Its time was over.
    TimedOut,
    /// Somebody wished it.
    Cancelled,
}

/// Why a command never ran.
#[derive(Debug)]
pub struct NotStarted {
    /// What should have run.
    pub program: String,
    /// What the system says.
    pub cause: io::Error,
}

impl fmt::Display for NotStarted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} could not be started: {}", self.program, self.cause)
    }
}

impl std::error::Error for NotStarted {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}

/// Runs a command to its end, its limit or a wish to stop. `progress` gets what it prints, while it does.
pub fn run(mut spec: Spec, cancel: &Cancel, progress: &dyn Fn(&[u8])) -> Result<Finished, NotStarted> {
    let began = Instant::now();
    if cancel.is_cancelled() {
        return Ok(never_ran());
    }
    let program = spec.program.path.to_string_lossy().into_owned();
    let deadline = spec.limit.and_then(|limit| began.checked_add(limit));
    let mark = CommandTag::next();
    spec.program.environment.push(mark.variable());
    let mut running = start(spec, cancel, &mark).map_err(|cause| NotStarted { program, cause })?;
    let (child, stopped) = running.drive(deadline, cancel, progress);
    let group = running.group;
    mark.close();
    let (status, left) = match child {
        Some(mut child) => (child.wait().map_or(Status::Unknown, Status::from), group.end_leftovers()),
        None => (Status::Unknown, Some(Vec::new())),
    };
    let escaped = mark.end_leftovers();
    let left_processes = left.is_some() || !escaped.is_empty();
    let ended = left.into_iter().flatten().chain(escaped).collect();
    let pump = running.pump;
    let report = pump.report.capture.finish();
    Ok(Finished {
        status,
        stopped,
        output: pump.output.capture.finish(),
        errors: pump.errors.capture.finish(),
        report: if report.left_out == 0 { report.head } else { report.tail },
        left_processes,
        ended,
        took: began.elapsed(),
    })
}

fn never_ran() -> Finished {
    Finished {
        status: Status::Unknown,
        stopped: Some(Stopped::Cancelled),
        output: Captured::default(),
        errors: Captured::default(),
        report: Vec::new(),
        left_processes: false,
        ended: Vec::new(),
        took: Duration::ZERO,
    }
}

/// A command that runs, and what it is watched with.
struct Running {
    pump: Pump,
    group: Group,
    ended: Receiver<Child>,
    _watch: crate::Watch,
}

fn start(spec: Spec, cancel: &Cancel, mark: &CommandTag) -> io::Result<Running> {
    let mut command = spec.program.command();
    let (wake, waker) = pipe()?;
    rustix::io::ioctl_fionbio(&wake, true)?;
    let waiter = Waiter::ready(Some(waker.try_clone()?))?;

    let (output, printed) = pipe()?;
    let errors = match spec.streams {
        Streams::Merged => {
            command.stderr(printed.try_clone()?);
            None
        }
        Streams::Separate => {
            let (errors, printed) = pipe()?;
            command.stderr(printed);
            Some(errors)
        }
    };
    command.stdout(printed);
    let (mut input, mut report) = (None, None);
    match spec.input {
        Input::Nothing => _ = command.stdin(Stdio::null()),
        Input::Bytes(bytes) => {
            let (reader, writer) = pipe()?;
            command.stdin(reader);
            input = Some(Feed::new(writer, bytes)?);
        }
        Input::Report => {
            let (reader, writer) = pipe()?;
            command.stdin(writer);
            report = Some(reader);
        }
    }
    let pump = Pump {
        output: Stream::new(Some(output), Capture::new(spec.keep.clone()), true)?,
        errors: Stream::new(errors, Capture::new(without_file(&spec.keep)), true)?,
        report: Stream::new(report, Capture::new(Keep::up_to(REPORT_MAX)), false)?,
        input,
        wake,
        buffer: vec![0; 64 * 1024],
    };
    let watch = cancel.watch(move || _ = (&waker).write(&[0]));
    let child = spawn(&mut command, spec.program.thread_setup.as_ref())?;
    mark.contain(child.id());
    // Our copies of the ends that the child writes to go with the command: else no pipe would ever end.
    drop(command);
    Ok(Running { pump, group: Group::of(&child), ended: waiter.wait_for(child), _watch: watch })
}

/// One file cannot hold two outputs.
fn without_file(keep: &Keep) -> Keep {
    Keep { overflow: None, ..keep.clone() }
}

/// How far a command has come, and when it is time for the next step.
enum Step {
    Runs(Option<Instant>),
    AskedToEnd(Instant),
    Killed(Instant),
    Ended { silent_at: Instant, latest: Instant },
}

impl Running {
    /// Serves the command until it has ended; the child, still to be reaped, and why it was stopped.
    fn drive(
        &mut self,
        deadline: Option<Instant>,
        cancel: &Cancel,
        progress: &dyn Fn(&[u8]),
    ) -> (Option<Child>, Option<Stopped>) {
        let (mut step, mut stopped, mut child) = (Step::Runs(deadline), None, None);
        loop {
            let next = match step {
                Step::Runs(at) => at,
                Step::AskedToEnd(at) | Step::Killed(at) => Some(at),
                Step::Ended { silent_at, latest } => Some(silent_at.min(latest)),
            };
            let got = self.pump.turn(next.map(|at| at.saturating_duration_since(Instant::now())), progress);
            let now = Instant::now();
            if child.is_none() {
                match self.ended.try_recv() {
                    Ok(ended) => {
                        child = Some(ended);
                        // What it wrote between the last look and its end.
                        self.pump.collect(progress);
                        step = Step::Ended { silent_at: now + SILENCE, latest: now + LISTEN_MAX };
                    }
                    Err(TryRecvError::Empty) => {}
                    Err(TryRecvError::Disconnected) => return (None, stopped),
                }
            }
            let is_over = next.is_some_and(|at| now >= at);
            step = match step {
                Step::Runs(_) if cancel.is_cancelled() || is_over => {
                    let why = if cancel.is_cancelled() { Stopped::Cancelled } else { Stopped::TimedOut };
                    stopped = Some(why);
                    self.group.ask_to_end();
                    Step::AskedToEnd(now + GRACE)
                }
                Step::AskedToEnd(_) if is_over => {
                    self.group.kill();
                    Step::Killed(now + KILL_TIME)
                }
                Step::Killed(_) if is_over => return (None, stopped),
                Step::Ended { latest, .. } if got => Step::Ended { silent_at: now + SILENCE, latest },
                same => same,
            };
            if let Step::Ended { silent_at, latest } = step
                && (self.pump.is_dry() || now >= silent_at.min(latest))
            {
                return (child, stopped);
            }
        }
    }
}
