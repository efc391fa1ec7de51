//! What the program tells of its own work.

use std::path::PathBuf;

/// Figures for a collector.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TelemetrySettings {
    /// Exports spans and metrics.
    pub is_on: bool,
    /// Where to.
    pub endpoint: Option<String>,
    /// Includes prompts and responses.
    pub with_content: bool,
    /// Under which name.
    pub service_name: String,
}

/// The program's own log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogSettings {
    /// Log levels by module; no log unless set.
    pub filter: Option<String>,
    /// Where to; standard error unless set.
    pub file: Option<PathBuf>,
}
