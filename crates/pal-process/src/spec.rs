//! What shall be run, and how.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use crate::Keep;

/// A program with what it is started with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    /// Its path, or its name if it is looked up in `PATH`.
    pub path: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// The directory that it starts in.
    pub directory: PathBuf,
    /// What its environment has otherwise than ours: a value, or none where a variable is taken away. Later wins.
    pub environment: Vec<(OsString, Option<OsString>)>,
    /// What the thread does to itself that starts the program, which inherits it.
    pub thread_setup: Option<ThreadSetup>,
}

/// Something that a thread does to itself before it starts a program, such as giving up rights. The thread does nothing
/// else and ends with the start.
#[derive(Clone)]
pub struct ThreadSetup(Arc<dyn Fn() -> io::Result<()> + Send + Sync>);

impl ThreadSetup {
    /// Nothing is started if it fails.
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

/// Starts a command, on a thread of its own if that has something to do to itself first.
pub(crate) fn spawn(command: &mut Command, setup: Option<&ThreadSetup>) -> io::Result<Child> {
    let Some(setup) = setup else { return command.spawn() };
    std::thread::scope(|scope| {
        let started = scope.spawn(|| (setup.0)().and_then(|()| command.spawn()));
        started.join().unwrap_or_else(|_| Err(io::Error::other("the thread that starts it broke down")))
    })
}

impl Program {
    /// The command, in a process group of its own.
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

/// A run of a program that somebody waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spec {
    /// What runs.
    pub program: Program,
    /// What stands on its standard input.
    pub input: Input,
    /// Whether its two outputs come in one stream.
    pub streams: Streams,
    /// How much of each stream is kept.
    pub keep: Keep,
    /// How long it may take; no limit if none.
    pub limit: Option<Duration>,
}

/// What stands on the standard input of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// Nothing: it reads the end at once.
    Nothing,
    /// These bytes. A program that does not read them all loses nothing but them.
    Bytes(Vec<u8>),
    /// No input but a pipe back to us, open for writing: a shell moves it to another number and says there what must
    /// not be mixed up with what its commands print. What came is [`crate::Finished::report`].
    Report,
}

/// Whether the two outputs of a program come in one stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Streams {
    /// In one, in the order in which they were written.
    Merged,
    /// Each for itself.
    Separate,
}
