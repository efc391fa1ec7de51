//! Subagents (§8.3): each is an agent with its own session below that of its parent.
//!
//! A *fresh* subagent starts with its prompt and its own tools. A *fork* continues the conversation up to the
//! response that started it: its requests share the conversation's prefix and read its cache. Both can run in
//! the background.

//!
//! A *teammate* is our own program once more, in a process of its own: it stays when it has nothing to do, and is spoken to
//! through mailboxes.

mod agent_tool;
mod running_agent;
mod subagent_progress;
mod subagent_registry;
mod subagent_task;
mod team_mailbox;
mod teammate_listener;
mod teammate_process;
mod teammate_protocol;
mod worktree;

pub(crate) use agent_tool::{AgentTool, SendMessageTool};
pub(crate) use running_agent::RunningAgent;
pub(crate) use subagent_registry::Subagents;
pub use subagent_registry::{SubagentStatus, SubagentsHandle};
pub(crate) use subagent_task::{reported, shaped};
pub(crate) use team_mailbox::TeamMailbox;
pub use teammate_protocol::TeammateAssignment;
pub(crate) use teammate_protocol::{LeadMessage, TeammateMessage, line};

use std::path::Path;

use pal_model::{EntryBody, LogEntry};

/// Name of the tool that starts subagents.
pub(crate) const AGENT: &str = "Agent";

/// Directory of subagents' sessions in that of their parent.
pub(crate) const AGENTS_FOLDER: &str = "agents";

/// Returns the directory of the session that a subagent's session lies below, however deep.
pub(crate) fn root_session(folder: &Path) -> &Path {
    let above = folder.parent().filter(|agents| agents.file_name().is_some_and(|name| name == AGENTS_FOLDER));
    above.and_then(Path::parent).map_or(folder, root_session)
}

/// First sentence of a fork's prompt, which identifies a fork. Text for the model.
pub(crate) const FORKED: &str = "[You are a copy of the agent that this conversation is with.]";

/// Tool result for all open calls in a fork, so that all forks share one prefix. Text for the model.
pub(crate) const UNDER_WAY: &str = "[This is being done elsewhere; its result is not for you.]";

/// Returns whether the history of a session says that it is a fork of a conversation, as that of a resumed fork does.
pub(crate) fn is_fork(branch: &[LogEntry]) -> bool {
    branch.iter().any(|entry| match &entry.body {
        EntryBody::User(user) => {
            let mut blocks = user.content.blocks().iter();
            blocks.any(|block| block.string("text").is_some_and(|text| text.starts_with(FORKED)))
        }
        _ => false,
    })
}
