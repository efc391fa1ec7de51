//! A server process: in its own process group, with captured standard error, ended with all its children.

use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;

use crate::clean_text::clean;
use crate::server_config::ServerTransport;

/// Bytes of standard error that are kept, from the end.
const STDERR_BYTES_MAX: usize = 4 * 1024;

/// Grace period after closing the input, and after SIGTERM.
const CLOSED_GRACE: Duration = Duration::from_millis(300);
const TERM_GRACE: Duration = Duration::from_millis(700);
/// Maximum wait for the last output of an ended server.
const STDERR_TIMEOUT: Duration = Duration::from_millis(200);
/// Poll interval while a process group ends.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A running server and its process group.
#[derive(Debug)]
pub(crate) struct ServerProcess {
    child: Child,
    group: Option<Pid>,
    stderr: StderrTail,
    stderr_task: JoinHandle<()>,
}

/// Pipes to a server.
pub(crate) struct ServerPipes {
    pub(crate) output: ChildStdout,
    pub(crate) input: ChildStdin,
}

/// Environment of all servers.
#[derive(Clone, Copy)]
pub(crate) struct ProcessEnvironment<'a> {
    /// Environment variables.
    pub(crate) variables: &'a [(OsString, OsString)],
    /// Default working directory.
    pub(crate) directory: &'a Path,
}

impl ServerProcess {
    /// Starts the program. Needs a tokio runtime.
    pub(crate) fn start(
        transport: &ServerTransport,
        environment: ProcessEnvironment<'_>,
    ) -> Result<(ServerProcess, ServerPipes), String> {
        let ServerTransport::Stdio { command, arguments, variables, directory } = transport else {
            return Err(String::from("it is no program"));
        };
        let directory = directory
            .as_ref()
            .map_or(environment.directory.to_owned(), |own| environment.directory.join(own));
        let mut spawning = Command::new(command);
        spawning
            .args(arguments)
            .env_clear()
            .envs(environment.variables.iter().map(|(name, value)| (name, value)))
            .envs(variables)
            // Lets children of the server be found at the end of the program, or at the next start.
            .env(pal_process::COMMAND_VARIABLE, pal_process::owner_tag())
            .current_dir(&directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        let mut child = spawning.spawn().map_err(|error| match directory.is_dir() {
            true => format!("cannot start {command}: {error}"),
            false => format!("the directory {} does not exist", directory.display()),
        })?;
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let pipes = (child.stdout.take(), child.stdin.take(), child.stderr.take());
        let (Some(output), Some(input), Some(errors)) = pipes else {
            return Err(String::from("its pipes are missing"));
        };
        let stderr = StderrTail::default();
        let stderr_task = tokio::spawn(stderr.clone().listen(errors));
        Ok((ServerProcess { child, group, stderr, stderr_task }, ServerPipes { output, input }))
    }

    /// Last output on standard error.
    pub(crate) fn stderr(&self) -> String {
        self.stderr.text()
    }

    /// Exit status, if the process ends within the grace period; its output is complete by then.
    pub(crate) async fn ending(&mut self) -> Option<String> {
        let status = tokio::time::timeout(CLOSED_GRACE, self.child.wait()).await.ok()?.ok()?;
        // Its children may keep the pipe open.
        let _ = tokio::time::timeout(STDERR_TIMEOUT, &mut self.stderr_task).await;
        Some(format!("it ended with {status}"))
    }

    /// Ends the process group. Its input is already closed, which ends well-behaved servers.
    pub(crate) async fn end(mut self) {
        let _ = tokio::time::timeout(CLOSED_GRACE, self.child.wait()).await;
        self.signal(Signal::TERM);
        let gone = async {
            while !self.is_gone() {
                tokio::time::sleep(POLL_INTERVAL).await;
                // Reap it, since a zombie still counts as running.
                let _ = self.child.try_wait();
            }
        };
        // Dropping kills the rest.
        let _ = tokio::time::timeout(TERM_GRACE, gone).await;
    }

    fn is_gone(&self) -> bool {
        self.group.is_none_or(|group| test_kill_process_group(group).is_err())
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // Fails if the group is already gone.
            let _ = kill_process_group(group, signal);
        }
    }
}

/// Kills the process group in every case.
impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// End of the standard error output.
#[derive(Clone, Default, Debug)]
struct StderrTail(Arc<Mutex<Vec<u8>>>);

impl StderrTail {
    async fn listen(self, mut errors: ChildStderr) {
        let mut buffer = [0; 4096];
        while let Ok(count) = errors.read(&mut buffer).await {
            if count == 0 {
                return;
            }
            let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            kept.extend_from_slice(&buffer[..count]);
            let surplus = kept.len().saturating_sub(STDERR_BYTES_MAX);
            kept.drain(..surplus);
        }
    }

    fn text(&self) -> String {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        clean(&String::from_utf8_lossy(&kept), STDERR_BYTES_MAX)
    }
}
