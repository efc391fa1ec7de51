//! What the program tells of its own work.

use std::path::PathBuf;

/// Figures for a collector.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Telemetry {
    /// Whether they are exported.
    pub is_on: bool,
    /// Where to.
    pub endpoint: Option<String>,
    /// Whether they carry what was said.
    pub with_content: bool,
    /// Under which name.
    pub service_name: String,
}

/// What the program tells of its own work.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Logging {
    /// How much of it, and of which parts; nothing unless set.
    pub filter: Option<String>,
    /// Where to; standard error unless set.
    pub file: Option<PathBuf>,
}
