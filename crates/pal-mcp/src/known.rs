//! What is known of a server at a moment.

use std::sync::Arc;

use pal_model::Text;
use rmcp::RoleClient;
use rmcp::service::Peer;

use crate::words::spelled;

/// A tool that a server offers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ToolOffered {
    /// The server.
    pub server: String,
    /// The server's name for it.
    pub name: String,
    /// What it does, as the server says: bounded, without control characters.
    pub description: String,
    /// The schema of its input, as JSON.
    pub schema: Text,
    /// Whether the server says that it only looks. Nobody has checked.
    pub read_only: bool,
}

/// Something that a server lets be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResourceOffered {
    /// The server.
    pub server: String,
    /// Its address; a pattern with places in braces if it is a template.
    pub uri: String,
    /// Its name.
    pub name: String,
    /// What it is, as the server says.
    pub description: String,
    /// Its media type, where known.
    pub mime_type: Option<String>,
    /// Whether the address is a pattern.
    pub is_template: bool,
}

/// A prompt that a server offers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PromptOffered {
    /// The server.
    pub server: String,
    /// The server's name for it.
    pub name: String,
    /// What it is for, as the server says.
    pub description: String,
    /// Its arguments by name, and whether each is needed.
    pub arguments: Vec<(String, bool)>,
}

impl PromptOffered {
    /// Its name among commands.
    pub fn command(&self) -> String {
        format!("mcp__{}__{}", spelled(&self.server), spelled(&self.name))
    }
}

/// How a server is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum State {
    /// It comes up.
    Starting,
    /// It can be called.
    Ready {
        /// How many tools it offers.
        tools: usize,
        /// How many resources.
        resources: usize,
        /// How many prompts.
        prompts: usize,
    },
    /// It did not come up, and why.
    Failed(String),
    /// It was there and is not any more, and why.
    Gone(String),
}

/// Everything that a server offers.
#[derive(Clone, Default, Debug)]
pub(crate) struct Lists {
    pub(crate) tools: Vec<ToolOffered>,
    pub(crate) resources: Vec<ResourceOffered>,
    pub(crate) prompts: Vec<PromptOffered>,
}

/// What is known of a server.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) state: State,
    pub(crate) lists: Arc<Lists>,
    /// What it says about the use of its tools.
    pub(crate) instructions: Option<String>,
    /// The line to it while it is there.
    pub(crate) peer: Option<Peer<RoleClient>>,
    /// Whether it comes back when it is called.
    pub(crate) comes_back: bool,
}

impl Known {
    pub(crate) fn starting() -> Known {
        Known {
            state: State::Starting,
            lists: Arc::default(),
            instructions: None,
            peer: None,
            comes_back: false,
        }
    }

    /// Whether its tools can be called, perhaps after it came back.
    pub(crate) fn is_offered(&self) -> bool {
        matches!(self.state, State::Ready { .. }) || self.comes_back
    }
}
