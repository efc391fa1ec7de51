//! Interface that the program implements to configure agents and list stored sessions.

use std::fmt;
use std::path::{Path, PathBuf};

use agent_client_protocol::Error;
use pal_agent::{Agent, AgentOptions};
use pal_events::AgentEvent;
use pal_mcp::McpServerConfig;
use pal_model::Content;
use pal_permissions::PermissionMode;

/// Configures agents for clients.
pub trait AgentHost: Send + Sync + 'static {
    /// Builds the setup of a session. Called on the session's thread.
    fn prepare(&self, request: &SessionRequest) -> Result<SessionSetup, HostError>;

    /// Lists stored sessions, newest first: those of a directory's project, or all.
    fn list_sessions(&self, directory: Option<&Path>) -> Result<Vec<ListedSession>, HostError>;

    /// Program version reported to clients.
    fn version(&self) -> String;
}

/// Parameters of a session that a client opens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionRequest {
    /// Working directory.
    pub directory: PathBuf,
    /// Further directories that the session may work in.
    pub additional_directories: Vec<PathBuf>,
    /// MCP servers of the client, in addition to the configured ones.
    pub servers: Vec<McpServerConfig>,
    /// Full id of the session to resume; `None` for a new one.
    pub session: Option<String>,
    /// Model that overrides the configured one.
    pub model: Option<String>,
    /// Permission mode that overrides the configured one.
    pub mode: Option<PermissionMode>,
}

/// Agent options of a session and the parts that belong to it.
pub struct SessionSetup {
    /// Options of the agent; the permission asker is filled in later.
    pub options: AgentOptions,
    /// Slash commands of the session.
    pub commands: Box<dyn EditorCommands>,
    /// Models that the client can select.
    pub models: Vec<String>,
    /// File that stores the permission rules that the user allows for this project.
    pub permissions_file: Option<PathBuf>,
    /// Observer of the session's events.
    pub observer: Box<dyn EventObserver>,
}

/// Observes a session on the session's thread while it is open.
pub trait EventObserver {
    /// Called when the session is open.
    fn opened(&mut self, agent: &Agent<'_>);

    /// Called for each event; returns a notice for the user, if there is one.
    fn event(&mut self, event: &AgentEvent) -> Option<String>;
}

/// Slash commands of a session, on the session's thread.
pub trait EditorCommands {
    /// Lists the commands in display order.
    fn list(&self) -> Vec<EditorCommand>;

    /// Runs a command. The agent is idle.
    fn run(&mut self, name: &str, arguments: &str, agent: &mut Agent<'static>) -> CommandReply;
}

/// A slash command as an editor lists it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EditorCommand {
    /// Name without the slash.
    pub name: String,
    /// Description in one line.
    pub about: String,
    /// Argument hint; empty if it takes none.
    pub arguments: String,
}

/// Result of a slash command.
pub enum CommandReply {
    /// Text to show; may be empty.
    Text(String),
    /// A prompt for the agent.
    Prompt(Content),
    /// The command failed, with the reason.
    Failed(String),
    /// No command has this name: the line is a prompt.
    Unknown,
}

/// A stored session as it is listed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListedSession {
    /// Full session id.
    pub id: String,
    /// Directory in which it started.
    pub directory: PathBuf,
    /// Title, if it has one.
    pub title: Option<String>,
    /// Time of the last activity, in ISO 8601.
    pub updated_at: String,
}

/// Failure of a host operation, with advice.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostError {
    /// Cause of the failure.
    pub what: String,
    /// Next step for the user.
    pub hint: Option<String>,
}

impl HostError {
    /// Creates an error without advice.
    pub fn new(what: impl Into<String>) -> HostError {
        HostError { what: what.into(), hint: None }
    }

    /// Converts to the protocol's error.
    pub(crate) fn to_protocol(&self) -> Error {
        internal_error(self.to_string())
    }
}

impl fmt::Display for HostError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.hint {
            Some(hint) => write!(formatter, "{}. What to do: {hint}", self.what),
            None => formatter.write_str(&self.what),
        }
    }
}

/// Internal error with a message; clients rarely show the data of an error.
pub(crate) fn internal_error(what: impl Into<String>) -> Error {
    Error::new(Error::internal_error().code, what)
}

/// Error for invalid parameters of a request.
pub(crate) fn invalid_params(what: impl Into<String>) -> Error {
    Error::new(Error::invalid_params().code, what)
}
