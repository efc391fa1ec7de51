//! Runs the program as a user would, and reads its output line by line.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;

use super::scratch_dir::{MODEL, ScratchDir};
use crate::failure::Failure;

/// Time limit of a run.
const PATIENCE: Duration = Duration::from_secs(60);

/// Parameters of a run.
pub(super) struct ProgramRun<'a> {
    /// Scratch directory.
    pub(super) scratch: &'a ScratchDir,
    /// Base URL of the provider.
    pub(super) address: &'a str,
    /// Session to resume.
    pub(super) session: Option<&'a str>,
    /// Offset of its clock.
    pub(super) ahead: Duration,
    /// Prompt for the agent.
    pub(super) prompt: &'a str,
}

/// Reaction to a line of output.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum LineReaction {
    /// Continue the run.
    GoOn,
    /// Kill the process without a chance to clean up.
    Kill,
}

impl ProgramRun<'_> {
    /// Starts the program and passes every line of its output to `look`. Fails if the program fails. Returns the signal that ended
    /// it, if `look` asked for a kill.
    pub(super) fn execute(
        &self,
        mut look: impl FnMut(&Value) -> Result<LineReaction, Failure>,
    ) -> Result<Option<i32>, Failure> {
        let mut child = self.command()?.spawn().map_err(|error| Failure::new(format!("pal: {error}")))?;
        let Some(output) = child.stdout.take() else { return Err(Failure::new("pal: no output")) };
        let child = Arc::new(Mutex::new(child));
        let watch = RunWatchdog::set(Arc::clone(&child));
        let mut is_killed = false;
        for line in BufReader::new(output).lines() {
            let line = line.map_err(|error| Failure::new(format!("pal: {error}")))?;
            let line: Value = serde_json::from_str(&line)
                .map_err(|error| Failure::new(format!("pal printed a line that is not JSON: {error}")))?;
            match look(&line) {
                Ok(LineReaction::GoOn) => {}
                Ok(LineReaction::Kill) => {
                    kill(&child);
                    is_killed = true;
                    break;
                }
                Err(failure) => {
                    kill(&child);
                    return Err(failure);
                }
            }
        }
        let status = wait_for_exit(&child)?;
        drop(watch);
        if status.success() || is_killed {
            Ok(status.signal())
        } else {
            Err(self.failure(&status.to_string()))
        }
    }

    fn command(&self) -> Result<Command, Failure> {
        let program = std::env::current_exe()
            .map_err(|error| Failure::new(format!("cannot find the pal executable: {error}")))?;
        let mut command = Command::new(program);
        command.args(["--print", self.prompt, "--output-format", "stream-json", "--verbose"]);
        command.args(["--model", MODEL, "--permission-mode", "accept-edits"]);
        command.args(["--allowed-tools", "Bash(sh test.sh),Bash(sh rebuild.sh)"]);
        if let Some(session) = self.session {
            command.args(["--resume", session]);
        }
        // No keys, settings or sessions of the user.
        command.env_clear();
        for name in ["PATH", "TMPDIR", "LANG"] {
            command.envs(std::env::var_os(name).map(|value| (name, value)));
        }
        command.env("HOME", self.scratch.user()).env("PAL_HOME", self.scratch.home());
        command.env("ANTHROPIC_BASE_URL", self.address).env("ANTHROPIC_API_KEY", "simulated");
        // Every request belongs to the demo; no background work.
        command.env("PAL_EXTRACTION", "false");
        command.env("PAL_CLOCK_OFFSET_S", self.ahead.as_secs().to_string());
        let errors = File::create(self.errors()).map_err(|error| Failure::of_file(&self.errors(), &error))?;
        command.current_dir(self.scratch.project());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors);
        Ok(command)
    }

    fn errors(&self) -> PathBuf {
        self.scratch.user().join("errors.txt")
    }

    fn failure(&self, status: &str) -> Failure {
        let said = std::fs::read_to_string(self.errors()).unwrap_or_default();
        Failure::new(format!("pal -p exited with {status}: {}", pal_report::clip_line(&said, 400)))
    }
}

/// Kills a process after a timeout, unless dropped before.
struct RunWatchdog {
    _is_over: mpsc::Sender<()>,
}

impl RunWatchdog {
    fn set(child: Arc<Mutex<Child>>) -> RunWatchdog {
        let (is_over, over) = mpsc::channel();
        std::thread::spawn(move || {
            if over.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout) {
                kill(&child);
            }
        });
        RunWatchdog { _is_over: is_over }
    }
}

/// Waits for a process to end, without holding the lock in between.
fn wait_for_exit(child: &Mutex<Child>) -> Result<ExitStatus, Failure> {
    loop {
        let status = locked(child).try_wait().map_err(|error| Failure::new(format!("pal: {error}")))?;
        if let Some(status) = status {
            return Ok(status);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn kill(child: &Mutex<Child>) {
    // The process may have ended already.
    let _ = locked(child).kill();
}

fn locked(child: &Mutex<Child>) -> MutexGuard<'_, Child> {
    child.lock().unwrap_or_else(PoisonError::into_inner)
}
