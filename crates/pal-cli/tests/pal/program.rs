//! Runs `pal` in a home of its own, and imports without it.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use pal_import::{Imported, Measure, Options};

/// A home that nothing else uses; gone when dropped.
pub(crate) struct Home {
    directory: tempfile::TempDir,
}

/// What a run of the program gave.
#[must_use = "look at what the program said"]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Home {
    pub(crate) fn new() -> Home {
        Home { directory: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// A file beside the program's own files.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// The program in this home, with nothing of our own environment.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pal"));
        command.args(arguments).env_clear().env("PAL_HOME", self.path().join("pal"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Said {
        said(self.command(arguments), b"")
    }

    pub(crate) fn run_with_input(&self, arguments: &[&str], input: &[u8]) -> Said {
        said(self.command(arguments), input)
    }

    pub(crate) fn run_with_environment(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Said {
        let mut command = self.command(arguments);
        command.envs(variables.iter().copied());
        said(command, b"")
    }

    /// Runs it where a person stands in a directory.
    pub(crate) fn run_in(&self, directory: &Path, arguments: &[&str]) -> Said {
        let mut command = self.command(arguments);
        command.current_dir(directory);
        said(command, b"")
    }

    /// The same, with variables.
    pub(crate) fn run_in_with(
        &self,
        directory: &Path,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Said {
        let mut command = self.command(arguments);
        command.current_dir(directory).envs(variables.iter().copied());
        said(command, b"")
    }

    /// All files of the program's own home.
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

/// A measure that is good enough where sizes do not matter.
struct Thirds;

impl Measure for Thirds {
    fn text(&self, _model: &str, text: &str) -> f64 {
        text.len() as f64 / 3.0
    }

    fn json(&self, _model: &str, json: &str) -> f64 {
        json.len() as f64 / 3.0
    }
}

/// A recorded session, imported.
pub(crate) fn imported(file: &Path) -> Imported {
    let source = std::fs::read(file).unwrap();
    pal_import::import(&source, &Options { measure: &Thirds, strict: false })
        .unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn said(mut command: Command, input: &[u8]) -> Said {
    let mut child = command.spawn().unwrap();
    // A program that does not read its input closes it; that is its right.
    let _ = child.stdin.take().unwrap().write_all(input);
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    Said {
        code: status.code().unwrap_or(-1),
        out: String::from_utf8(stdout).unwrap(),
        err: String::from_utf8(stderr).unwrap(),
    }
}
