//! Logs of test sessions.

use std::path::{Path, PathBuf};

use pal_agent::Agent;
use serde_json::Value;

/// The log of an agent's session.
pub(crate) fn log_of(agent: &Agent<'_>) -> PathBuf {
    pal_store::log_path(agent.session().directory())
}

/// The whole lines of a log.
pub fn log_lines(path: &Path) -> Vec<Value> {
    let text = String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}
