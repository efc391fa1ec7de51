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

use pal_model::{EntryBody, LogEntry};

/// Name of the tool that starts subagents.
pub(crate) const AGENT: &str = "Agent";

/// First sentence of a fork's prompt, which identifies a fork. Text for the model.
pub(crate) const FORKED: &str = "[You are a copy of the agent that this conversation is with.]";

/// Tool result for all open calls in a fork, so that all forks share one prefix. Text for the model.
pub(crate) const UNDER_WAY: &str = "[This is being done elsewhere; its result is not for you.]";

/// Returns whether a session is a fork of a conversation.
pub(crate) fn is_fork(branch: &[LogEntry]) -> bool {
    branch.iter().any(|entry| match &entry.body {
        EntryBody::User(user) => {
            let mut blocks = user.content.blocks().iter();
            blocks.any(|block| block.string("text").is_some_and(|text| text.starts_with(FORKED)))
        }
        _ => false,
    })
}
