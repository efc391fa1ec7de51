//! One run of the program, as anybody would start it, and what it prints line by line.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;

use super::stage::{MODEL, Stage};
use crate::failure::Failure;

/// A run that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a run is started with.
pub(super) struct Run<'a> {
    /// Where it works.
    pub(super) stage: &'a Stage,
    /// Where the provider is.
    pub(super) address: &'a str,
    /// The session that it goes on with.
    pub(super) session: Option<&'a str>,
    /// How much its clock is ahead.
    pub(super) ahead: Duration,
    /// What it is told to do.
    pub(super) prompt: &'a str,
}

/// What is to be done after a line was looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// The run goes on.
    GoOn,
    /// The process is killed, without a chance to tidy up.
    Kill,
}

impl Run<'_> {
    /// Starts the program and hands every line that it prints to `look`. Fails if the program does. Returns the signal that
    /// ended it, if `look` wanted it killed.
    pub(super) fn go(
        &self,
        mut look: impl FnMut(&Value) -> Result<Next, Failure>,
    ) -> Result<Option<i32>, Failure> {
        let mut child = self.command()?.spawn().map_err(|error| Failure::new(format!("pal: {error}")))?;
        let Some(output) = child.stdout.take() else { return Err(Failure::new("pal: no output")) };
        let child = Arc::new(Mutex::new(child));
        let watch = Watchdog::set(Arc::clone(&child));
        let mut is_killed = false;
        for line in BufReader::new(output).lines() {
            let line = line.map_err(|error| Failure::new(format!("pal: {error}")))?;
            let line: Value = serde_json::from_str(&line)
                .map_err(|error| Failure::new(format!("pal printed a line that is no JSON: {error}")))?;
            match look(&line) {
                Ok(Next::GoOn) => {}
                Ok(Next::Kill) => {
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
        let status = ended(&child)?;
        drop(watch);
        if status.success() || is_killed {
            Ok(status.signal())
        } else {
            Err(self.failure(&status.to_string()))
        }
    }

    fn command(&self) -> Result<Command, Failure> {
        let program = std::env::current_exe()
            .map_err(|error| Failure::new(format!("the program does not find itself: {error}")))?;
        let mut command = Command::new(program);
        command.args(["--print", self.prompt, "--output-format", "stream-json", "--verbose"]);
        command.args(["--model", MODEL, "--permission-mode", "accept-edits"]);
        command.args(["--allowed-tools", "Bash(sh test.sh),Bash(sh rebuild.sh)"]);
        if let Some(session) = self.session {
            command.args(["--resume", session]);
        }
        // Nothing of the user's own: no key, no settings, no sessions.
        command.env_clear();
        for name in ["PATH", "TMPDIR", "LANG"] {
            command.envs(std::env::var_os(name).map(|value| (name, value)));
        }
        command.env("HOME", self.stage.user()).env("PAL_HOME", self.stage.home());
        command.env("ANTHROPIC_BASE_URL", self.address).env("ANTHROPIC_API_KEY", "simulated");
        // The story is told to its last request, and nothing is asked behind its back.
        command.env("PAL_EXTRACTION", "false");
        command.env("PAL_CLOCK_AHEAD_S", self.ahead.as_secs().to_string());
        let errors = File::create(self.errors()).map_err(|error| Failure::of_file(&self.errors(), &error))?;
        command.current_dir(self.stage.project());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors);
        Ok(command)
    }

    fn errors(&self) -> PathBuf {
        self.stage.user().join("errors.txt")
    }

    fn failure(&self, status: &str) -> Failure {
        let said = std::fs::read_to_string(self.errors()).unwrap_or_default();
        Failure::new(format!("pal -p ended with {status}: {}", crate::colour::clipped(&said, 400)))
    }
}

/// Kills a process that takes too long, until it is dropped.
struct Watchdog {
    _is_over: mpsc::Sender<()>,
}

impl Watchdog {
    fn set(child: Arc<Mutex<Child>>) -> Watchdog {
        let (is_over, over) = mpsc::channel();
        std::thread::spawn(move || {
            if over.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout) {
                kill(&child);
            }
        });
        Watchdog { _is_over: is_over }
    }
}

/// Waits for a process to end, and leaves it to the watchdog in between.
fn ended(child: &Mutex<Child>) -> Result<ExitStatus, Failure> {
    loop {
        let status = locked(child).try_wait().map_err(|error| Failure::new(format!("pal: {error}")))?;
        if let Some(status) = status {
            return Ok(status);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn kill(child: &Mutex<Child>) {
    // It may have ended by itself.
    let _ = locked(child).kill();
}

fn locked(child: &Mutex<Child>) -> MutexGuard<'_, Child> {
    child.lock().unwrap_or_else(PoisonError::into_inner)
}
