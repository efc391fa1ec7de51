//! Who knows how agents are made here, and which sessions are kept.

use std::fmt;
use std::path::{Path, PathBuf};

use agent_client_protocol::Error;
use pal_agent::{Agent, Event, Options};
use pal_mcp::ServerConfig;
use pal_permissions::Mode;

/// Makes agents for clients.
pub trait Host: Send + Sync + 'static {
    /// What the agent of a session is made of. Called on the thread that the session will live on.
    fn prepare(&self, wanted: &Wanted) -> Result<Prepared, Refusal>;

    /// The sessions that are kept, the newest first: of the project of a directory, or all.
    fn kept(&self, directory: Option<&Path>) -> Result<Vec<KeptSession>, Refusal>;

    /// The program's version.
    fn version(&self) -> String;
}

/// A session that a client wants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wanted {
    /// Where it works.
    pub directory: PathBuf,
    /// Directories that it works in, too.
    pub added: Vec<PathBuf>,
    /// MCP servers of the client, besides those that are set.
    pub servers: Vec<ServerConfig>,
    /// The session to go on with, by its whole id; none for a new one.
    pub session: Option<String>,
    /// The model, if another one than is usual here.
    pub model: Option<String>,
    /// The permission mode, if another one than is usual here.
    pub mode: Option<Mode>,
}

/// What a session is made of.
pub struct Prepared {
    /// What its agent is made of. Who asks the user is filled in later.
    pub options: Options,
    /// Commands of the user.
    pub commands: Vec<Command>,
    /// Models that can be chosen.
    pub models: Vec<String>,
    /// The file that keeps what the user allows for good in this project.
    pub allowed: Option<PathBuf>,
    /// Who else wants to know what happens.
    pub observer: Box<dyn Observer>,
}

/// Somebody who watches a session on its own thread, as long as it is open.
pub trait Observer {
    /// The session is open.
    fn opened(&mut self, agent: &Agent<'_>);

    /// Something happened in it; what the user is to know of that, if something.
    fn event(&mut self, event: &Event) -> Option<String>;
}

/// A command of the user: a name that stands for a prompt.
pub struct Command {
    /// Its name, without the slash.
    pub name: String,
    /// What it is for.
    pub about: String,
    /// What may stand behind it; empty for nothing.
    pub arguments: String,
    /// The prompt, by what stands behind the name.
    pub prompt: Box<dyn Fn(&str) -> String>,
}

/// A session that is kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeptSession {
    /// Its id.
    pub id: String,
    /// Where it began.
    pub directory: PathBuf,
    /// What it is about.
    pub title: Option<String>,
    /// When something last happened in it, as ISO 8601 spells it.
    pub active: String,
}

/// Why something cannot be had, and what to do about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub hint: Option<String>,
}

impl Refusal {
    /// A refusal without advice.
    pub fn new(what: impl Into<String>) -> Refusal {
        Refusal { what: what.into(), hint: None }
    }

    /// As the error that the client reads.
    pub(crate) fn error(&self) -> Error {
        failed(self.to_string())
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.hint {
            Some(hint) => write!(formatter, "{}. What to do: {hint}", self.what),
            None => formatter.write_str(&self.what),
        }
    }
}

/// An error in words: clients show the message, hardly ever the data.
pub(crate) fn failed(what: impl Into<String>) -> Error {
    Error::new(Error::internal_error().code, what)
}

/// What is wrong with what a client sent.
pub(crate) fn wrong(what: impl Into<String>) -> Error {
    Error::new(Error::invalid_params().code, what)
}
