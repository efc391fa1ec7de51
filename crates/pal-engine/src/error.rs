//! Errors of a session, with the next step.

use std::path::PathBuf;

use pal_store::LogChange;

/// Error of a session. The log is complete in every case.
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
        /// Path of the log.
        path: PathBuf,
        /// The change.
        change: LogChange,
        /// File with the saved session.
        saved: PathBuf,
    },
    /// Like [`EngineError::LogChanged`], and the session could not be saved elsewhere.
    #[error("{} was {change} while the session was running, and saving the session elsewhere failed: {error}", .path.display())]
    LogLost {
        /// Path of the log.
        path: PathBuf,
        /// The change.
        change: LogChange,
        /// Error of saving.
        error: pal_store::FileError,
    },
    /// The disk does not accept an entry.
    #[error(transparent)]
    File(#[from] pal_store::FileError),
    /// The context is full and could not be reduced.
    #[error("the context is full: {0}")]
    Full(String),
    /// The provider rejects the request as too long even after all reductions.
    #[error(
        "the provider finds the request too long although everything was left out that can be ({message}); nothing is \
         lost. The last attempt had about {tokens} tokens, {fixed_tokens} of them system prompt, tools and instructions: \
         shorten the instruction files, switch off MCP servers, or choose a model with a larger window. If the server's \
         window is smaller than the model card says, set `max_context_tokens`, or `window` in models.toml"
    )]
    TooLong {
        /// Tokens of the last attempt, as text.
        tokens: String,
        /// Tokens that no compaction removes, as text.
        fixed_tokens: String,
        /// Message of the provider.
        message: String,
    },
    /// No response.
    #[error("{0}")]
    Provider(String),
    /// The response broke off.
    #[error("{}", .0.why)]
    Broke(Box<crate::BrokenResponse>),
    /// The operation is not possible; why.
    #[error("{0}")]
    NotPossible(String),
}
