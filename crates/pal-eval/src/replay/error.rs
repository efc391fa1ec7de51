//! Reasons why a recording cannot be replayed.

use std::path::PathBuf;

use pal_store::{FileError, OpenError};

/// Why a recording could not be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The recording asks no model by name, and none was given.
    #[error("the session does not say which model it asked")]
    NoModel,
    /// No card can be made for a model.
    #[error("the model `{0}` cannot be simulated")]
    Model(String),
    /// There is no place for the log.
    #[error("{path}: {error}")]
    Place {
        /// Where it should have been.
        path: PathBuf,
        /// Error of the system.
        error: std::io::Error,
    },
    /// A file of the replay.
    #[error(transparent)]
    File(#[from] FileError),
    /// The log could not be made or opened again.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The session could not go on.
    #[error(transparent)]
    Engine(#[from] pal_engine::EngineError),
}
