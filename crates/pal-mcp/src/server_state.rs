//! Known state of a server.

use std::sync::Arc;

use pal_model::SharedText;
use rmcp::RoleClient;
use rmcp::service::Peer;

use crate::clean_text::tool_name_part;

/// A tool of a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct McpTool {
    /// Name of the server.
    pub server: String,
    /// Name of the tool at the server.
    pub name: String,
    /// Description by the server: bounded, without control characters.
    pub description: String,
    /// JSON schema of the input.
    pub schema: SharedText,
    /// The server claims that the tool is read-only; not verified.
    pub is_read_only: bool,
}

/// A resource of a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct McpResource {
    /// Name of the server.
    pub server: String,
    /// URI, or a URI template with placeholders in braces.
    pub uri: String,
    /// Display name.
    pub name: String,
    /// Description by the server.
    pub description: String,
    /// Media type, if known.
    pub mime_type: Option<String>,
    /// The URI is a template.
    pub is_template: bool,
}

/// A prompt of a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct McpPrompt {
    /// Name of the server.
    pub server: String,
    /// Name of the prompt at the server.
    pub name: String,
    /// Description by the server.
    pub description: String,
    /// Arguments: name, and whether required.
    pub arguments: Vec<(String, bool)>,
}

impl McpPrompt {
    /// Name as a command.
    pub fn command(&self) -> String {
        format!("mcp__{}__{}", tool_name_part(&self.server), tool_name_part(&self.name))
    }
}

/// State of a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ServerState {
    /// Starting.
    Starting,
    /// Ready for calls.
    Ready {
        /// Number of tools.
        tools: usize,
        /// Number of resources.
        resources: usize,
        /// Number of prompts.
        prompts: usize,
    },
    /// Failed to start, with the reason.
    Failed(String),
    /// Ended after a successful start, with the reason.
    Gone(String),
}

/// Tools, resources and prompts of a server.
#[derive(Clone, Default, Debug)]
pub(crate) struct ServerLists {
    pub(crate) tools: Vec<McpTool>,
    pub(crate) resources: Vec<McpResource>,
    pub(crate) prompts: Vec<McpPrompt>,
}

/// Snapshot of a server.
#[derive(Clone, Debug)]
pub(crate) struct ServerSnapshot {
    pub(crate) state: ServerState,
    pub(crate) lists: Arc<ServerLists>,
    /// Instructions of the server.
    pub(crate) instructions: Option<String>,
    /// Connection, while the server is ready.
    pub(crate) peer: Option<Peer<RoleClient>>,
    /// The server restarts on the next call.
    pub(crate) restarts_on_call: bool,
}

impl ServerSnapshot {
    pub(crate) fn starting() -> ServerSnapshot {
        ServerSnapshot {
            state: ServerState::Starting,
            lists: Arc::default(),
            instructions: None,
            peer: None,
            restarts_on_call: false,
        }
    }

    /// Reports whether its tools can be called, possibly after a restart.
    pub(crate) fn is_callable(&self) -> bool {
        matches!(self.state, ServerState::Ready { .. }) || self.restarts_on_call
    }
}
