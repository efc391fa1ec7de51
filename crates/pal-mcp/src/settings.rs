//! What holds for all servers of a session.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// What holds for all servers.
#[derive(Clone)]
pub struct Settings {
    /// Where programs work unless they say otherwise.
    pub directory: PathBuf,
    /// The variables that programs get.
    pub variables: Vec<(OsString, OsString)>,
    /// Whether other machines may be spoken to in the clear.
    pub allows_plain_http: bool,
    /// For how long a server may take to come up.
    pub start_limit: Duration,
    /// For how long a call may take.
    pub call_limit: Duration,
    /// Whether the model looks at pictures.
    pub images: bool,
    /// Whether the model looks at documents.
    pub documents: bool,
    /// The version under which the program names itself to servers.
    pub version: String,
}
