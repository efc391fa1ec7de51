//! Control of a working agent from a user interface.

use pal_model::Content;
use pal_permissions::PermissionMode;

/// Steers and interrupts an agent from any thread.
pub trait AgentControl: Send + Sync {
    /// Adds a message of the user; a working agent reads it with its next tool results.
    fn steer(&self, content: Content);

    /// Number of messages of the user that the agent has not read yet.
    fn unread_messages(&self) -> usize;

    /// Takes back all messages that the agent has not read yet; returns how many there were.
    fn take_back_messages(&self) -> usize;

    /// Stops the current response and running tools; everything that arrived is kept.
    fn interrupt(&self);

    /// Notes that the user is active: cancels a compaction in the pause.
    fn end_idle_work(&self);

    /// Chooses the permission mode for all following calls.
    fn choose_mode(&self, mode: PermissionMode);
}
