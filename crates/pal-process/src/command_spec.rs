//! Specification of a program run.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use crate::CaptureLimits;

/// Program with arguments, directory and environment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    /// Path, or name to be looked up in `PATH`.
    pub path: OsString,
    /// Arguments without the program name.
    pub arguments: Vec<OsString>,
    /// Working directory.
    pub directory: PathBuf,
    /// Changes to our environment: a value, or `None` to remove a variable. Later entries win.
    pub environment: Vec<(OsString, Option<OsString>)>,
    /// Setup of the starting thread, which the program inherits.
    pub thread_setup: Option<ThreadSetup>,
}

/// Setup of a thread before it starts a program, such as dropping privileges. The thread does nothing else
/// and ends after the start.
#[derive(Clone)]
pub struct ThreadSetup(Arc<dyn Fn() -> io::Result<()> + Send + Sync>);

impl ThreadSetup {
    /// Wraps a setup function; if it fails, nothing is started.
    pub fn new(setup: impl Fn() -> io::Result<()> + Send + Sync + 'static) -> ThreadSetup {
        ThreadSetup(Arc::new(setup))
    }
}

impl PartialEq for ThreadSetup {
    fn eq(&self, other: &ThreadSetup) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for ThreadSetup {}

impl fmt::Debug for ThreadSetup {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ThreadSetup")
    }
}

/// Starts a command, on a dedicated thread if there is a setup.
pub(crate) fn spawn(command: &mut Command, setup: Option<&ThreadSetup>) -> io::Result<Child> {
    let Some(setup) = setup else { return command.spawn() };
    std::thread::scope(|scope| {
        let started = scope.spawn(|| (setup.0)().and_then(|()| command.spawn()));
        started.join().unwrap_or_else(|_| Err(io::Error::other("the thread that starts it broke down")))
    })
}

impl Program {
    /// Builds the command in a process group of its own.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.args(&self.arguments).current_dir(&self.directory).process_group(0);
        for (name, value) in &self.environment {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
    }
}

/// Specification of a foreground run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommandSpec {
    /// Program to run.
    pub program: Program,
    /// Standard input.
    pub input: CommandInput,
    /// Handling of standard output and standard error.
    pub streams: StreamMode,
    /// Limits for captured output of each stream.
    pub keep: CaptureLimits,
    /// Time limit; none for unlimited.
    pub limit: Option<Duration>,
}

/// Standard input of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CommandInput {
    /// Empty input.
    Nothing,
    /// These bytes. A program need not read all of them.
    Bytes(Vec<u8>),
    /// A pipe back to us, open for writing: a shell moves it to another descriptor and reports there what must
    /// not mix with command output. The bytes end up in [`crate::CommandOutcome::report`].
    Report,
}

/// Handling of the two outputs of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamMode {
    /// One stream, in the order of writing.
    Merged,
    /// Two separate streams.
    Separate,
}
