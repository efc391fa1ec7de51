//! What runs with the session at hand, for commands that look at it while it works.

use std::sync::{Arc, Mutex, PoisonError};

use pal_agent::{Agent, Agents, DreamTask, Handle};
use pal_mcp::Servers;

/// What runs with the session at hand; nothing as long as none is open.
#[derive(Clone, Default)]
pub(super) struct Running(Arc<Mutex<Option<Live>>>);

/// The last dream of a session, if there was one.
pub(super) type Dreams = Arc<dyn Fn() -> Option<DreamTask> + Send + Sync>;

/// What runs with a session.
#[derive(Clone)]
pub(super) struct Live {
    /// The agents that it sent.
    pub(super) agents: Agents,
    /// Steers it.
    pub(super) handle: Handle,
    /// Its MCP servers.
    pub(super) servers: Arc<Servers>,
    /// The last dream of it.
    pub(super) dream: Dreams,
}

impl Running {
    /// Another session is at hand.
    pub(super) fn set(&self, agent: &Agent<'_>) {
        let dream: Dreams = Arc::new(agent.dream());
        let live = Live { agents: agent.agents(), handle: agent.handle(), servers: agent.servers(), dream };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(live);
    }

    /// What runs now.
    pub(super) fn get(&self) -> Option<Live> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
