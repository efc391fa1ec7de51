//! Client of Model Context Protocol servers, and a server for memory and recall.
//!
//! [`ServerPool::start`] returns at once; each server starts in the background, within its own time limit. Queries such
//! as [`ServerPool::tools`], [`ServerPool::states`] and [`ServerPool::take_changes`] never block. Only
//! [`ServerPool::call`] and similar requests wait for a server, for a bounded time and until cancelled. A server that
//! hangs, dies, floods, sends garbage or changes its lists does not affect the others.
//!
//! Texts of servers are bounded and free of invisible characters, but remain untrusted.
//!
//! ```
//! let text = r#"{"mcpServers": {"files": {"command": "mcp-files", "args": ["${ROOT:-/srv}"]}}}"#;
//! let parsed = pal_mcp::parse_file(text, ".mcp.json", &|_| None).unwrap();
//! assert_eq!(parsed.servers[0].name, "files");
//! assert_eq!(parsed.servers[0].transport.to_string(), "mcp-files /srv");
//! ```

mod clean_text;
mod mcp_connection;
mod mcp_host;
mod pool_settings;
mod result_content;
pub mod server;
mod server_config;
mod server_lists;
mod server_pool;
mod server_process;
mod server_state;
mod supervisor;
mod variables;

pub use mcp_host::{McpHost, McpMessageListener};
pub use pool_settings::ServerPoolSettings;
pub use server_config::{
    McpConfigError, McpServerConfig, ParsedConfig, ServerTransport, parse_file, parse_servers,
};
pub use server_pool::ServerPool;
pub use server_state::{McpPrompt, McpResource, McpTool, ServerState};
