//! A teammate process as its lead sees it.

use std::collections::HashSet;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::teammate_protocol::{LeadMessage, TeammateAssignment, line};

/// Grace period of a teammate when its lead ends.
const END_TIME: Duration = Duration::from_secs(5);

/// File with a teammate's standard error; it identifies the directory of a teammate.
pub(super) const ERRORS: &str = "errors.txt";

/// Polling interval for its exit.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A running teammate.
pub(crate) struct TeammateProcess {
    process: Mutex<Child>,
    /// Closed to make it end.
    input: Mutex<Option<ChildStdin>>,
    state: Mutex<TeammateState>,
}

#[derive(Default)]
pub(super) struct TeammateState {
    /// Whether it is idle or waits for its lead, as last reported.
    pub(super) rests: bool,
    /// Messages that it has not read.
    pub(super) unheard: HashSet<String>,
}

impl TeammateProcess {
    /// Starts a teammate.
    pub(crate) fn start(
        mut command: Command,
        assignment: &TeammateAssignment,
    ) -> Result<(TeammateProcess, ChildStdout), String> {
        let folder = assignment.lead.join(super::AGENTS_FOLDER).join(&assignment.name);
        let failed = |error: std::io::Error| format!("The teammate could not be started: {error}.");
        pal_store::create_private_directory(&folder).map_err(|error| error.to_string())?;
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let errors = options.open(folder.join(ERRORS)).map_err(failed)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(errors);
        // An interrupt of the lead must not reach the teammate.
        command.process_group(0);
        let mut process = command.spawn().map_err(failed)?;
        let (Some(mut input), Some(output)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(String::from("The teammate could not be started: its pipes are missing."));
        };
        input.write_all(line(assignment).as_bytes()).map_err(failed)?;
        let state = Mutex::default();
        Ok((TeammateProcess { process: Mutex::new(process), input: Mutex::new(Some(input)), state }, output))
    }

    /// Sends a message to the process; ignored if it has exited.
    pub(crate) fn say(&self, down: &LeadMessage) {
        if let Some(input) = &mut *self.input.lock().unwrap_or_else(PoisonError::into_inner) {
            let _ = input.write_all(line(down).as_bytes());
        }
    }

    /// Counts a message as unread.
    pub(crate) fn is_written_to(&self, id: String) {
        self.state().unheard.insert(id);
    }

    /// Takes back a message that could not be delivered.
    pub(crate) fn is_not_written_to(&self, id: &str) {
        self.state().unheard.remove(id);
    }

    /// Returns whether it works or has unread messages.
    pub(crate) fn is_at_work(&self) -> bool {
        let state = self.state();
        !state.rests || !state.unheard.is_empty()
    }

    pub(super) fn state(&self) -> MutexGuard<'_, TeammateState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn process(&self) -> MutexGuard<'_, Child> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes its input, which ends it.
    pub(crate) fn close(&self) {
        self.input.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Waits for its exit, and kills it after the grace period.
    pub(crate) fn end(&self) {
        self.close();
        let until = Instant::now() + END_TIME;
        while Instant::now() < until {
            // The listener may hold the lock and has seen the exit.
            match self.process.try_lock().map(|mut process| process.try_wait()) {
                Ok(Ok(None)) | Err(_) => std::thread::sleep(POLL_INTERVAL),
                Ok(Ok(Some(_)) | Err(_)) => return,
            }
        }
        if let Ok(mut process) = self.process.try_lock() {
            let _ = process.kill();
        }
    }
}
