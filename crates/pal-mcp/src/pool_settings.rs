//! Settings of all servers of a session.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::mcp_host::McpHost;

/// Settings of all servers.
#[derive(Clone)]
pub struct ServerPoolSettings {
    /// Default working directory.
    pub directory: PathBuf,
    /// Environment variables of the programs.
    pub variables: Vec<(OsString, OsString)>,
    /// Allow unencrypted HTTP to other machines.
    pub allows_plain_http: bool,
    /// Default start timeout.
    pub start_limit: Duration,
    /// Default call timeout.
    pub call_limit: Duration,
    /// The model accepts images.
    pub images: bool,
    /// The model accepts documents.
    pub documents: bool,
    /// Version that the client reports to servers.
    pub version: String,
    /// The program that runs servers of the transport [`crate::ServerTransport::Host`].
    pub host: Option<Arc<dyn McpHost>>,
}
