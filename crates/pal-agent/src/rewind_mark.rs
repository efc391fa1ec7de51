//! Scope of a rewind, and the state that its undo needs.

use pal_model::{EntryId, Timestamp};

/// Part of a session that a rewind takes back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RewindScope {
    /// The conversation, and the files that tools changed since the prompt.
    Both,
    /// The conversation only.
    Conversation,
    /// The files only.
    Files,
}

/// State before a rewind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RewindMark {
    /// Last entry of the conversation.
    pub(crate) head: EntryId,
    /// Time of the rewind.
    pub(crate) at: Timestamp,
    pub(crate) scope: RewindScope,
}
