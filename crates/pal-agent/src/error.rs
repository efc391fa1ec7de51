//! Why an agent cannot be had, or cannot go on.

use std::path::Path;

use pal_engine::EngineError;

/// Why an agent cannot be had, or cannot go on. The session's log is whole in every case.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The session.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// Something else, and what to do about it.
    #[error("{0}")]
    Other(String),
}

impl AgentError {
    pub(crate) fn file(path: &Path, error: &std::io::Error) -> AgentError {
        AgentError::Other(format!("{}: {error}", path.display()))
    }
}
