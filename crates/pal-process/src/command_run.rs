//! Foreground runs of commands.
//!
//! One thread serves the pipes and the clock; another waits for the process and wakes the first, as a
//! cancellation does. A command goes through these phases: running; asked to end (timeout or cancellation);
//! killed; ended, while its last output is collected until the pipes are silent.

use std::fmt;
use std::io::{self, Write, pipe};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use crate::command_spec::spawn;
use crate::leftover_processes::{CommandTag, EndedProcess};
use crate::output_capture::{CaptureLimits, CapturedOutput, OutputCapture};
use crate::pipe_pump::{InputPipe, OutputPipe, PipePump};
use crate::process_group::{ChildWaiter, ProcessGroup};
use crate::termination::{GRACE_PERIOD, KILL_TIMEOUT};
use crate::{CancelToken, CommandInput, CommandSpec, ProcessStatus, StreamMode};

/// Silence after which the pipes of an ended process count as drained.
const SILENCE_TIME: Duration = Duration::from_millis(50);

/// Maximum time to collect output of leftover processes.
const COLLECT_TIME_MAX: Duration = Duration::from_millis(500);

/// Maximum bytes of a report.
const REPORT_MAX: usize = 64 * 1024;

/// Outcome of a command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommandOutcome {
    /// Exit status.
    pub status: ProcessStatus,
    /// Cause if it was terminated.
    pub stopped: Option<TerminationCause>,
    /// Standard output, with standard error if merged.
    pub output: CapturedOutput,
    /// Standard error, if separate.
    pub errors: CapturedOutput,
    /// Bytes from the pipe of [`CommandInput::Report`].
    pub report: Vec<u8>,
    /// True if it left processes behind, which were terminated.
    pub left_processes: bool,
    /// Terminated leftover processes that could be identified.
    pub ended: Vec<EndedProcess>,
    /// Run time.
    pub took: Duration,
}

/// Cause of a forced end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TerminationCause {
    /// The time limit was exceeded.
    TimedOut,
    /// The run was cancelled.
    Cancelled,
}

/// Error when a command could not be started.
#[derive(Debug)]
pub struct SpawnError {
    /// Program that should have run.
    pub program: String,
    /// Error of the operating system.
    pub cause: io::Error,
}

impl fmt::Display for SpawnError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} could not be started: {}", self.program, self.cause)
    }
}

impl std::error::Error for SpawnError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}

/// Runs a command until it ends, times out or is cancelled. `progress` gets its output as it arrives.
pub fn run_command(
    mut spec: CommandSpec,
    cancel: &CancelToken,
    progress: &dyn Fn(&[u8]),
) -> Result<CommandOutcome, SpawnError> {
    let began = Instant::now();
    if cancel.is_cancelled() {
        return Ok(cancelled_outcome());
    }
    let program = spec.program.path.to_string_lossy().into_owned();
    let deadline = spec.limit.and_then(|limit| began.checked_add(limit));
    let mark = CommandTag::next();
    spec.program.environment.push(mark.variable());
    let mut running = start(spec, cancel, &mark).map_err(|cause| SpawnError { program, cause })?;
    let (child, stopped) = running.drive(deadline, cancel, progress);
    let group = running.group;
    mark.close();
    let (status, left) = match child {
        Some(mut child) => {
            (child.wait().map_or(ProcessStatus::Unknown, ProcessStatus::from), group.end_leftovers())
        }
        None => (ProcessStatus::Unknown, Some(Vec::new())),
    };
    let escaped = mark.end_leftovers();
    let left_processes = left.is_some() || !escaped.is_empty();
    let ended = left.into_iter().flatten().chain(escaped).collect();
    let pump = running.pump;
    let report = pump.report.capture.finish();
    Ok(CommandOutcome {
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

fn cancelled_outcome() -> CommandOutcome {
    CommandOutcome {
        status: ProcessStatus::Unknown,
        stopped: Some(TerminationCause::Cancelled),
        output: CapturedOutput::default(),
        errors: CapturedOutput::default(),
        report: Vec::new(),
        left_processes: false,
        ended: Vec::new(),
        took: Duration::ZERO,
    }
}

/// Running command with its pipes and watchers.
struct RunningCommand {
    pump: PipePump,
    group: ProcessGroup,
    ended: Receiver<Child>,
    _watch: crate::CancelWatch,
}

fn start(spec: CommandSpec, cancel: &CancelToken, mark: &CommandTag) -> io::Result<RunningCommand> {
    let mut command = spec.program.command();
    let (wake, waker) = pipe()?;
    rustix::io::ioctl_fionbio(&wake, true)?;
    let waiter = ChildWaiter::ready(Some(waker.try_clone()?))?;

    let (output, printed) = pipe()?;
    let errors = match spec.streams {
        StreamMode::Merged => {
            command.stderr(printed.try_clone()?);
            None
        }
        StreamMode::Separate => {
            let (errors, printed) = pipe()?;
            command.stderr(printed);
            Some(errors)
        }
    };
    command.stdout(printed);
    let (mut input, mut report) = (None, None);
    match spec.input {
        CommandInput::Nothing => _ = command.stdin(Stdio::null()),
        CommandInput::Bytes(bytes) => {
            let (reader, writer) = pipe()?;
            command.stdin(reader);
            input = Some(InputPipe::new(writer, bytes)?);
        }
        CommandInput::Report => {
            let (reader, writer) = pipe()?;
            command.stdin(writer);
            report = Some(reader);
        }
    }
    let pump = PipePump {
        output: OutputPipe::new(Some(output), OutputCapture::new(spec.keep.clone()), true)?,
        errors: OutputPipe::new(errors, OutputCapture::new(without_file(&spec.keep)), true)?,
        report: OutputPipe::new(report, OutputCapture::new(CaptureLimits::up_to(REPORT_MAX)), false)?,
        input,
        wake,
        buffer: vec![0; 64 * 1024],
    };
    let watch = cancel.watch(move || _ = (&waker).write(&[0]));
    let child = spawn(&mut command, spec.program.thread_setup.as_ref())?;
    mark.contain(child.id());
    // Dropping the command closes our copies of the write ends; otherwise no pipe would ever end.
    drop(command);
    Ok(RunningCommand { pump, group: ProcessGroup::of(&child), ended: waiter.wait_for(child), _watch: watch })
}

/// Copy without the overflow file, which cannot hold two outputs.
fn without_file(keep: &CaptureLimits) -> CaptureLimits {
    CaptureLimits { overflow: None, ..keep.clone() }
}

/// Phase of a command, with the time of the next transition.
enum CommandPhase {
    Runs(Option<Instant>),
    AskedToEnd(Instant),
    Killed(Instant),
    Ended { silent_at: Instant, latest: Instant },
}

impl RunningCommand {
    /// Serves the command until it has ended; returns the child, not yet reaped, and the cause of a forced
    /// end.
    fn drive(
        &mut self,
        deadline: Option<Instant>,
        cancel: &CancelToken,
        progress: &dyn Fn(&[u8]),
    ) -> (Option<Child>, Option<TerminationCause>) {
        let (mut step, mut stopped, mut child) = (CommandPhase::Runs(deadline), None, None);
        loop {
            let next = match step {
                CommandPhase::Runs(at) => at,
                CommandPhase::AskedToEnd(at) | CommandPhase::Killed(at) => Some(at),
                CommandPhase::Ended { silent_at, latest } => Some(silent_at.min(latest)),
            };
            let got = self
                .pump
                .wait_and_collect(next.map(|at| at.saturating_duration_since(Instant::now())), progress);
            let now = Instant::now();
            if child.is_none() {
                match self.ended.try_recv() {
                    Ok(ended) => {
                        child = Some(ended);
                        // Output between the last poll and its end.
                        self.pump.collect(progress);
                        step = CommandPhase::Ended {
                            silent_at: now + SILENCE_TIME,
                            latest: now + COLLECT_TIME_MAX,
                        };
                    }
                    Err(TryRecvError::Empty) => {}
                    Err(TryRecvError::Disconnected) => return (None, stopped),
                }
            }
            let is_over = next.is_some_and(|at| now >= at);
            step = match step {
                CommandPhase::Runs(_) if cancel.is_cancelled() || is_over => {
                    let why = if cancel.is_cancelled() {
                        TerminationCause::Cancelled
                    } else {
                        TerminationCause::TimedOut
                    };
                    stopped = Some(why);
                    self.group.terminate();
                    CommandPhase::AskedToEnd(now + GRACE_PERIOD)
                }
                CommandPhase::AskedToEnd(_) if is_over => {
                    self.group.kill();
                    CommandPhase::Killed(now + KILL_TIMEOUT)
                }
                CommandPhase::Killed(_) if is_over => return (None, stopped),
                CommandPhase::Ended { latest, .. } if got => {
                    CommandPhase::Ended { silent_at: now + SILENCE_TIME, latest }
                }
                same => same,
            };
            if let CommandPhase::Ended { silent_at, latest } = step
                && (self.pump.is_drained() || now >= silent_at.min(latest))
            {
                return (child, stopped);
            }
        }
    }
}
