//! The agent above a subagent of the same process, as the subagent can speak to it.

use pal_mailbox::AgentName;
use pal_model::Content;

/// An agent that started another one in this process.
pub trait ParentAgent: Send + Sync {
    /// Delivers a message to the agent itself.
    fn message(&self, content: Content);

    /// Sends summary and text to one of its agents, or to all (`*`); returns who receives it.
    fn say(
        &self,
        from: &str,
        to: &str,
        purpose: MessagePurpose,
        words: (&str, &str),
    ) -> Result<Vec<String>, String>;

    /// Name of its session among all sessions of this machine.
    fn public_name(&self) -> Result<AgentName, String>;
}

/// Purpose of a message, as the model states it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MessagePurpose {
    /// A text.
    Text,
    /// A request to shut down.
    ShutdownRequest,
    /// The answer to a shutdown request.
    ShutdownResponse(bool),
    /// The answer to a plan.
    PlanApproval(bool),
}
