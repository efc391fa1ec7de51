//! Agents that an agent sends (§8.3): each is an agent of its own, with its own session below the one that sent it.
//!
//! A *fresh* one starts with nothing but what it is told, under a prompt and with tools of its own. A *forked* one is the
//! conversation itself up to the answer that sent it: its requests begin with the very bytes of the conversation's, so they
//! read what the conversation has written to the provider's cache. Either may work in the background.

//!
//! A *teammate* is our own program once more, in a process of its own: it stays when it has nothing to do, and is spoken to
//! through mailboxes.

mod child;
mod mail;
mod progress;
mod seat;
mod team;
mod teammate;
mod tool;
mod wire;
mod worktree;

pub(crate) use mail::Mail;
pub use seat::work_as_teammate;
pub(crate) use team::Team;
pub use team::{Agents, AtWork};
pub(crate) use tool::{AGENT, AgentTool, SendMessage};
pub use wire::Assignment;

use pal_model::{Body, Entry};

/// How the directive of a fork begins: who finds it in a conversation is a fork.
pub(crate) const FORKED: &str = "[You are a copy of the agent that this conversation is with.]";

/// What is said for every open call of a conversation in its forks, so that all of them begin alike.
pub(crate) const UNDER_WAY: &str = "[This is being done elsewhere; its result is not for you.]";

/// Whether a session is a fork of another one's conversation.
pub(crate) fn is_fork(branch: &[Entry]) -> bool {
    branch.iter().any(|entry| match &entry.body {
        Body::User(user) => {
            let mut blocks = user.content.blocks().iter();
            blocks.any(|block| block.string("text").is_some_and(|text| text.starts_with(FORKED)))
        }
        _ => false,
    })
}
