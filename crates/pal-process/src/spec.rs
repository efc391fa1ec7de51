//! What shall be run, and how.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

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
