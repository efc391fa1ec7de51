//! Errors of an agent.

use std::path::Path;

use pal_engine::EngineError;

/// Errors of an agent.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// Error of the session.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// Any other error, with the next step.
    #[error("{0}")]
    Other(String),
}

impl AgentError {
    pub(crate) fn file(path: &Path, error: &std::io::Error) -> AgentError {
        AgentError::Other(format!("{}: {error}", path.display()))
    }
}
