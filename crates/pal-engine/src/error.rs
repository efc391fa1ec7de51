//! What can go wrong for a session, and what to do about it.

use std::path::PathBuf;

use pal_store::LogChange;

/// Why a session cannot go on for now. The log is whole in every case.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The log cannot be opened.
    #[error(transparent)]
    Open(#[from] pal_store::OpenError),
    /// The log cannot be read further back.
    #[error(transparent)]
    Rewind(#[from] pal_store::RewindError),
    /// The log cannot be appended to.
    #[error(transparent)]
    Append(#[from] pal_store::AppendError),
    /// Another program deleted or changed the log while the session was running.
    #[error(
        "{} was {change} while the session was running, so the session stops here. Everything up to now is saved in {}: \
         continue with `pal --resume {}`",
        .path.display(), .saved.display(), .saved.display()
    )]
    LogChanged {
        /// The log.
        path: PathBuf,
        /// What happened to it.
        change: LogChange,
        /// The file that has the session now.
        saved: PathBuf,
    },
    /// The same, and the session could not be saved anywhere else.
    #[error("{} was {change} while the session was running, and saving the session elsewhere failed: {error}", .path.display())]
    LogLost {
        /// The log.
        path: PathBuf,
        /// What happened to it.
        change: LogChange,
        /// Why it could not be saved.
        error: pal_store::FileError,
    },
    /// The disk does not take what was appended.
    #[error(transparent)]
    File(#[from] pal_store::FileError),
    /// The context is full and could not be made smaller.
    #[error("the context is full: {0}")]
    Full(String),
    /// The provider says that the request is too long, whatever is done.
    #[error(
        "the provider finds the request too long even after a compaction ({message}); nothing is lost. \
         Compact with instructions on what to keep, choose a model with a larger window, or start a new session"
    )]
    TooLong {
        /// What the provider said.
        message: String,
    },
    /// The provider gave no answer.
    #[error("{0}")]
    Provider(String),
    /// The answer began and broke off.
    #[error("{}", .0.why)]
    Broke(Box<crate::Broke>),
    /// There is nothing to take back.
    #[error("{0}")]
    NotPossible(String),
}
