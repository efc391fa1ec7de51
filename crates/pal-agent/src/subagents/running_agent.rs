//! A started subagent, as the agent that started it sees it.

use pal_events::{AgentEvent, PromptResult};
use pal_model::Content;

use crate::AgentError;
use crate::agent_handle::AgentHandle;
use crate::options::AgentOptions;

/// An agent that has been started and waits for its prompt.
pub(crate) trait RunningAgent {
    fn handle(&self) -> AgentHandle;

    fn prompt(&mut self, content: Content) -> Result<PromptResult, AgentError>;

    fn finish(self: Box<Self>, reason: &str);
}

/// Starts an agent with these options and this event sink.
pub(crate) type StartAgent = for<'a> fn(
    AgentOptions,
    Box<dyn FnMut(AgentEvent) + 'a>,
) -> Result<Box<dyn RunningAgent + 'a>, AgentError>;
