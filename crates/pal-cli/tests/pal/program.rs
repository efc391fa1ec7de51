//! Runs `pal` in its own home, and imports sessions without it.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use pal_import::{ImportOptions, ImportedSession};
use pal_testkit::ByteThirds;

/// A home directory for one test, removed when dropped.
pub(crate) struct TestHome {
    directory: tempfile::TempDir,
}

/// Exit code and output of a run.
#[must_use = "look at what the program said"]
pub(crate) struct CommandOutput {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl TestHome {
    pub(crate) fn new() -> TestHome {
        TestHome { directory: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Writes a file next to the program's home.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Builds a command that runs the program in this home with an empty environment.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pal"));
        command.args(arguments).env_clear().env("PAL_HOME", self.path().join("pal"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> CommandOutput {
        said(self.command(arguments), b"")
    }

    pub(crate) fn run_with_input(&self, arguments: &[&str], input: &[u8]) -> CommandOutput {
        said(self.command(arguments), input)
    }

    pub(crate) fn run_with_environment(
        &self,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> CommandOutput {
        let mut command = self.command(arguments);
        command.envs(variables.iter().copied());
        said(command, b"")
    }

    /// Runs the program in a directory.
    pub(crate) fn run_in(&self, directory: &Path, arguments: &[&str]) -> CommandOutput {
        let mut command = self.command(arguments);
        command.current_dir(directory);
        said(command, b"")
    }

    /// Runs the program in a directory with environment variables.
    pub(crate) fn run_in_with(
        &self,
        directory: &Path,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> CommandOutput {
        let mut command = self.command(arguments);
        command.current_dir(directory).envs(variables.iter().copied());
        said(command, b"")
    }

    /// Lists all files in the program's home.
    pub(crate) fn written(&self) -> Vec<std::path::PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.path().join("pal")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                if entry.path().is_dir() { folders.push(entry.path()) } else { found.push(entry.path()) }
            }
        }
        found
    }
}

/// Imports a recorded session.
pub(crate) fn imported(file: &Path) -> ImportedSession {
    let source = std::fs::read(file).unwrap();
    pal_import::import(&source, &ImportOptions { measure: &ByteThirds, strict: false })
        .unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn said(mut command: Command, input: &[u8]) -> CommandOutput {
    let mut child = command.spawn().unwrap();
    // The program may close its input without reading it.
    let _ = child.stdin.take().unwrap().write_all(input);
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    CommandOutput {
        code: status.code().unwrap_or(-1),
        out: String::from_utf8(stdout).unwrap(),
        err: String::from_utf8(stderr).unwrap(),
    }
}
