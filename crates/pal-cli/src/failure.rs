//! Errors as people read them: what happened, why, what to do.

use std::fmt;
use std::path::Path;
use std::process::ExitCode;

/// Why a command did not do what it should.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Something is wrong, with a way on.
    Said {
        /// What happened, and why.
        what: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// The command was used wrongly.
    WrongUse {
        /// What is wrong.
        what: String,
        /// What to do about it.
        hint: String,
    },
    /// Whoever read our output closed it.
    ReaderLeft,
}

impl Failure {
    pub(crate) fn new(what: impl Into<String>) -> Failure {
        Failure::Said { what: what.into(), hint: None }
    }

    pub(crate) fn with_hint(what: impl Into<String>, hint: impl Into<String>) -> Failure {
        Failure::Said { what: what.into(), hint: Some(hint.into()) }
    }

    pub(crate) fn wrong_use(what: impl Into<String>, hint: impl Into<String>) -> Failure {
        Failure::WrongUse { what: what.into(), hint: hint.into() }
    }

    /// What the program exits with.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Failure::Said { .. } => ExitCode::from(1),
            Failure::WrongUse { .. } => ExitCode::from(2),
            // The reader has seen enough: `pal render … | head` is no error.
            Failure::ReaderLeft => ExitCode::SUCCESS,
        }
    }

    /// The same for somebody who knows who speaks.
    pub(crate) fn words(&self) -> String {
        self.to_string().trim_start_matches("pal: ").to_owned()
    }

    /// An error of the system about a file.
    pub(crate) fn of_file(path: &Path, error: &std::io::Error) -> Failure {
        use std::io::ErrorKind;
        let what = format!("{}: {error}", path.display());
        match error.kind() {
            ErrorKind::NotFound => Failure::with_hint(what, "check the path"),
            ErrorKind::PermissionDenied => Failure::with_hint(what, "check who may read the file"),
            _ => Failure::new(what),
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Failure::ReaderLeft,
            _ => Failure::new(format!("standard output: {error}")),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Said { what, hint: None } => write!(formatter, "pal: {what}"),
            Failure::Said { what, hint: Some(hint) } => write!(formatter, "pal: {what}\n  hint: {hint}"),
            Failure::WrongUse { what, hint } => write!(formatter, "pal: {what}\n  hint: {hint}"),
            Failure::ReaderLeft => write!(formatter, "pal: nobody reads the output"),
        }
    }
}
