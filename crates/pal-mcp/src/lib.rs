//! Servers of the Model Context Protocol: started, asked, called and ended, behind calls that never wait for them.
//!
//! [`Servers::start`] returns at once; each server comes up on a thread of this crate, within its own time limit. What is
//! known of them is asked with calls that do not wait: [`Servers::tools`], [`Servers::states`], [`Servers::take_changes`].
//! Only [`Servers::call`] and its like wait for a server, for a bounded time and until somebody cancels. Whatever a server
//! does (it hangs, dies, floods, speaks rubbish, changes its list), nobody else is held up by it.
//!
//! What servers say of themselves is bounded and free of what nobody sees; it is still the word of a stranger.
//!
//! ```
//! let text = r#"{"mcpServers": {"files": {"command": "mcp-files", "args": ["${ROOT:-/srv}"]}}}"#;
//! let parsed = pal_mcp::parse_file(text, ".mcp.json", &|_| None).unwrap();
//! assert_eq!(parsed.servers[0].name, "files");
//! assert_eq!(parsed.servers[0].reach.to_string(), "mcp-files /srv");
//! ```

mod config;
mod connection;
mod content;
mod expand;
mod keeper;
mod known;
mod listing;
mod process;
mod servers;
mod settings;
mod words;

pub use config::{ConfigError, Parsed, Reach, ServerConfig, parse_file, parse_servers};
pub use known::{PromptOffered, ResourceOffered, State, ToolOffered};
pub use servers::Servers;
pub use settings::Settings;
