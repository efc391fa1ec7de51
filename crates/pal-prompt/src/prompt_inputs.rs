//! Inputs from around a session, as plain data. `pal-project` gathers them.

use serde::Serialize;

/// The git repository that a session works in, or why there is none to tell of.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GitState {
    /// State when the session began.
    Snapshot(GitSnapshot),
    /// Why there is no snapshot.
    Absent(String),
}

/// A repository at one moment. Its texts come from outside and are not yet defused.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct GitSnapshot {
    /// The branch, or the commit if none is checked out.
    pub branch: String,
    /// The branch that changes are usually merged into, where known.
    pub default_branch: Option<String>,
    /// The user's name, where git knows it.
    pub user: Option<String>,
    /// The changed files, as `git status --short` lists them, cut at 2 000 characters.
    pub status: String,
    /// True if the list was cut.
    pub status_was_cut: bool,
    /// The newest commits, the newest first: an abbreviated id and the subject.
    pub commits: Vec<String>,
}

/// Where an instruction file comes from, far to near.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum InstructionScope {
    /// The machine's owner.
    Managed,
    /// The user, for all projects.
    User,
    /// The project, shared with everybody who works on it.
    Project,
    /// The user, for this project alone.
    Local,
    /// A directory that was added to the session.
    Added,
}

/// An instruction file that goes into the context.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct InstructionFile {
    /// Its path, as it is shown to the model.
    pub path: String,
    /// Where it comes from.
    pub scope: InstructionScope,
    /// The file that includes it, if one does.
    pub included_by: Option<String>,
    /// Why it is in the context, in a few words.
    pub reason: String,
    /// Text without front matter, not yet defused.
    #[serde(skip)]
    pub text: String,
}

/// The machine and the place that a session works in.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct HostEnvironment {
    /// The working directory.
    pub directory: String,
    /// Directories that were added to it.
    pub added: Vec<String>,
    /// True if the working directory is in a git repository.
    pub is_repository: bool,
    /// The operating system, such as `linux`.
    pub platform: String,
    /// Its version, where known.
    pub platform_version: Option<String>,
    /// The user's shell, where known.
    pub shell: Option<String>,
}

/// Interactive with a user, or headless.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PromptMode {
    /// A person reads along and answers.
    Interactive,
    /// A program gave the prompt and reads the last answer.
    Headless,
}

/// Facts about one session. Missing ones are left out of the prompt.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SessionFacts {
    /// Sentences of the program about this session, such as its permissions. Trusted, so they are not defused.
    pub guidance: Vec<String>,
    /// The language to answer in.
    pub language: Option<String>,
    /// Output style.
    pub output_style: Option<OutputStyle>,
    /// The folder in which memories are kept, if the session may write some.
    pub memory: Option<String>,
    /// Scratchpad directory.
    pub scratchpad: Option<String>,
    /// Instructions of MCP servers.
    pub mcp_instructions: Vec<McpInstructions>,
    /// Sends them in the conversation as they change, instead of here.
    pub mcp_as_deltas: bool,
    /// True if old tool results are cleared.
    pub is_clearing: bool,
    /// Tokens that the task may cost.
    pub token_budget: Option<u64>,
    /// Text that makes this prefix unique, for debugging cache breaks.
    pub cache_breaker: Option<String>,
}

/// An output style, as its author describes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutputStyle {
    /// Its name.
    pub name: String,
    /// Its request.
    pub text: String,
}

/// Instructions of an MCP server, not yet defused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct McpInstructions {
    /// The server's name.
    pub server: String,
    /// Text.
    pub text: String,
}

/// Memory index. Trusted, so it is not defused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemoryIndex {
    /// Its path, as it is shown to the model.
    pub path: String,
    /// Text.
    pub text: String,
    /// Omissions for lack of room, in words for the user; empty if none.
    pub left_out: String,
}

/// Prompts that were given for a session, beside the default.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PromptOverrides {
    /// Stands alone: nothing else is in the system prompt.
    pub override_all: Option<String>,
    /// The prompt of a session that directs others.
    pub coordinator: Option<String>,
    /// The prompt of the agent that the session runs as.
    pub agent: Option<AgentPrompt>,
    /// The user's own.
    pub custom: Option<String>,
    /// Text after the one that applies, except after an override.
    pub appended: Option<String>,
}

/// Prompt of a session that directs subagents. Text for the model.
pub const COORDINATOR_PROMPT: &str = include_str!("texts/coordinator.md");

/// An agent's own prompt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AgentPrompt {
    /// Text.
    pub text: String,
    /// True for a proactive session, whose text follows the default instead of replacing it.
    pub is_proactive: bool,
}

impl AgentPrompt {
    /// The prompt of a session that works on without asking. It follows the default.
    pub fn proactive() -> AgentPrompt {
        AgentPrompt { text: String::from(include_str!("texts/proactive.md")), is_proactive: true }
    }
}
