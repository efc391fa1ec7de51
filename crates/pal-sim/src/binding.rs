//! Bound thinking: a thinking block is valid only on the prefix on which it was thought.
//!
//! The prefix is everything that was sent before it but thinking itself, marks and parameters, with JSON compared by
//! value. Thinking knows the thinking before it, so that a gap in the middle is seen, while the oldest may go. What the
//! provider itself clears or summarises does not count: the hash is over what the client sends, and a summary carries
//! the hash of what it stands for.

use pal_model::Role;

use crate::facts::mix;

/// Where a conversation stands: the hash of all that was sent, thinking left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chain {
    hash: u128,
    role: Option<Role>,
    last_thought: u64,
}

impl Chain {
    /// The beginning of the messages, after these tools and this system prompt.
    pub(crate) fn after_head(head: u128) -> Chain {
        Chain { hash: head, role: None, last_thought: 0 }
    }

    /// Makes a message of this role begin, if the last one had another; the hash up to here.
    pub(crate) fn enter(&mut self, role: Role) -> u128 {
        if self.role != Some(role) {
            self.hash = mix(self.hash, role_number(role));
            self.role = Some(role);
        }
        self.hash
    }

    /// Goes on with a block.
    pub(crate) fn push(&mut self, role: Role, binding: u128) {
        self.hash = mix(self.enter(role), binding);
    }

    /// Goes on with thinking.
    pub(crate) fn think(&mut self, thought: u64) {
        self.last_thought = thought;
    }

    /// The thinking before this, or 0.
    pub(crate) fn last_thought(&self) -> u64 {
        self.last_thought
    }
}

fn role_number(role: Role) -> u128 {
    match role {
        Role::User => 1,
        Role::Assistant => 2,
        Role::System => 3,
    }
}
