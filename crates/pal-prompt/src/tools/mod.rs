//! Tool definitions in a fixed order, rendered once, and deferred tools, which the model looks up when it needs them.
//!
//! Tools come first in a request, so nothing in a session may change their list. If the model's endpoint supports tool search, deferred
//! tools are in the list and marked as such. Otherwise they are left out, a search tool returns their definitions, and one dispatcher
//! calls them.

mod built_in;
mod tool_catalog;
mod tool_schema;
mod tool_search;
mod wire_names;

use pal_model::SharedText;
use smol_str::SmolStr;

pub use built_in::{CALL_TOOL, TOOL_SEARCH, built_in_tools};
pub use tool_catalog::{CatalogTool, ToolCatalog};

/// A tool as its owner describes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ToolSpec {
    /// Its name: for a server's tool, the server's name for it.
    pub name: SmolStr,
    /// Description for the model.
    pub description: String,
    /// The schema of its input, as JSON.
    pub schema: SharedText,
    /// Origin.
    pub origin: ToolOrigin,
    /// True if the model finds it only by search.
    pub is_deferred: bool,
}

/// Origin of a tool. Built-in tools come before those of servers.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ToolOrigin {
    /// The program itself.
    BuiltIn,
    /// An MCP server.
    Mcp {
        /// The server's name.
        server: SmolStr,
    },
}

impl ToolOrigin {
    /// The server that offers the tool, if one does.
    pub fn server(&self) -> Option<&str> {
        match self {
            ToolOrigin::BuiltIn => None,
            ToolOrigin::Mcp { server } => Some(server),
        }
    }
}
