//! Errors for users: what failed, the cause, the next step.

use std::fmt;
use std::path::Path;
use std::process::ExitCode;

use crate::exit_codes;

/// Failure of a command.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An error.
    Error {
        /// What failed, and the cause.
        what: String,
        /// Next step.
        hint: Option<String>,
    },
    /// Wrong usage.
    Usage {
        /// The problem.
        what: String,
        /// Next step.
        hint: String,
    },
    /// The reader of standard output closed it; not an error.
    OutputClosed,
}

impl Failure {
    pub(crate) fn new(what: impl Into<String>) -> Failure {
        Failure::Error { what: what.into(), hint: None }
    }

    pub(crate) fn with_hint(what: impl Into<String>, hint: impl Into<String>) -> Failure {
        Failure::Error { what: what.into(), hint: Some(hint.into()) }
    }

    pub(crate) fn usage_error(what: impl Into<String>, hint: impl Into<String>) -> Failure {
        Failure::Usage { what: what.into(), hint: hint.into() }
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Failure::Error { .. } => ExitCode::from(exit_codes::ERROR),
            Failure::Usage { .. } => ExitCode::from(exit_codes::USAGE),
            // As in `pal render … | head`.
            Failure::OutputClosed => ExitCode::SUCCESS,
        }
    }

    /// The error without the program's name.
    pub(crate) fn message(&self) -> String {
        self.to_string().trim_start_matches("pal: ").to_owned()
    }

    /// Failure to read or write a file.
    pub(crate) fn of_file(path: &Path, error: &std::io::Error) -> Failure {
        use std::io::ErrorKind;
        let what = format!("{}: {error}", path.display());
        match error.kind() {
            ErrorKind::NotFound => Failure::with_hint(what, "check the path"),
            ErrorKind::PermissionDenied => Failure::with_hint(what, "check the permissions of the file"),
            _ => Failure::new(what),
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Failure::OutputClosed,
            _ => Failure::new(format!("standard output: {error}")),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Error { what, hint: None } => write!(formatter, "pal: {what}"),
            Failure::Error { what, hint: Some(hint) } => write!(formatter, "pal: {what}\n  hint: {hint}"),
            Failure::Usage { what, hint } => write!(formatter, "pal: {what}\n  hint: {hint}"),
            Failure::OutputClosed => write!(formatter, "pal: the output is closed"),
        }
    }
}
