//! A server that is a program: started in a group of its own, heard on standard error, ended with all that it started.

use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;

use crate::config::Reach;
use crate::words::clean;

/// Bytes of standard error that are kept: the last ones.
const HEARD_MOST: usize = 4 * 1024;

/// How long a server may take to end once its input is closed, and once it was asked to.
const CLOSED_GRACE: Duration = Duration::from_millis(300);
const ASKED_GRACE: Duration = Duration::from_millis(700);
/// How long the last words of a server that has ended are waited for.
const HEARING: Duration = Duration::from_millis(200);
/// How often a group that shall end is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// A program that runs, and the group that came of it.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    group: Option<Pid>,
    heard: Heard,
    listening: JoinHandle<()>,
}

/// The pipes to a program.
pub(crate) struct Pipes {
    pub(crate) output: ChildStdout,
    pub(crate) input: ChildStdin,
}

/// What every program gets.
#[derive(Clone, Copy)]
pub(crate) struct Surroundings<'a> {
    /// The variables.
    pub(crate) variables: &'a [(OsString, OsString)],
    /// Where it works unless it says otherwise.
    pub(crate) directory: &'a Path,
}

impl Process {
    /// Starts the program. Needs a runtime.
    pub(crate) fn start(reach: &Reach, around: Surroundings<'_>) -> Result<(Process, Pipes), String> {
        let Reach::Program { command, arguments, variables, directory } = reach else {
            return Err(String::from("it is no program"));
        };
        let directory =
            directory.as_ref().map_or(around.directory.to_owned(), |own| around.directory.join(own));
        let mut spawning = Command::new(command);
        spawning
            .args(arguments)
            .env_clear()
            .envs(around.variables.iter().map(|(name, value)| (name, value)))
            .envs(variables)
            // Whatever the server starts is recognised at the end of the program, or at the start of the next one.
            .env(pal_process::COMMAND_VARIABLE, pal_process::owner_mark())
            .current_dir(&directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        let mut child = spawning.spawn().map_err(|error| match directory.is_dir() {
            true => format!("{command} cannot be started: {error}"),
            false => format!("the directory {} is not there", directory.display()),
        })?;
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let pipes = (child.stdout.take(), child.stdin.take(), child.stderr.take());
        let (Some(output), Some(input), Some(errors)) = pipes else {
            return Err(String::from("its pipes are missing"));
        };
        let heard = Heard::default();
        let listening = tokio::spawn(heard.clone().listen(errors));
        Ok((Process { child, group, heard, listening }, Pipes { output, input }))
    }

    /// What it said last on standard error.
    pub(crate) fn heard(&self) -> String {
        self.heard.text()
    }

    /// How it ended, if it has within a moment. What it said before is heard by then.
    pub(crate) async fn ending(&mut self) -> Option<String> {
        let status = tokio::time::timeout(CLOSED_GRACE, self.child.wait()).await.ok()?.ok()?;
        // What it started may keep the pipe open.
        let _ = tokio::time::timeout(HEARING, &mut self.listening).await;
        Some(format!("it ended with {status}"))
    }

    /// Ends it with all that it started. Its input is closed already, at which well-behaved servers end by themselves.
    pub(crate) async fn end(mut self) {
        let _ = tokio::time::timeout(CLOSED_GRACE, self.child.wait()).await;
        self.signal(Signal::TERM);
        let gone = async {
            while !self.is_gone() {
                tokio::time::sleep(LOOK_EVERY).await;
                // Who has ended counts as there until somebody asks how.
                let _ = self.child.try_wait();
            }
        };
        // Whoever is left is killed when this is dropped.
        let _ = tokio::time::timeout(ASKED_GRACE, gone).await;
    }

    fn is_gone(&self) -> bool {
        self.group.is_none_or(|group| test_kill_process_group(group).is_err())
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // It fails where nobody is left, which is what was wanted.
            let _ = kill_process_group(group, signal);
        }
    }
}

/// However it comes about that nobody holds it any more, nothing of it stays.
impl Drop for Process {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// The end of what was said on standard error.
#[derive(Clone, Default, Debug)]
struct Heard(Arc<Mutex<Vec<u8>>>);

impl Heard {
    async fn listen(self, mut errors: ChildStderr) {
        let mut buffer = [0; 4096];
        while let Ok(count) = errors.read(&mut buffer).await {
            if count == 0 {
                return;
            }
            let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            kept.extend_from_slice(&buffer[..count]);
            let surplus = kept.len().saturating_sub(HEARD_MOST);
            kept.drain(..surplus);
        }
    }

    fn text(&self) -> String {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        clean(&String::from_utf8_lossy(&kept), HEARD_MOST)
    }
}
