//! Handles to the open session, for commands that run while the agent works.

use std::sync::{Arc, Mutex, PoisonError};

use pal_agent::{Agent, AgentHandle, SubagentsHandle};
use pal_background::DreamTask;
use pal_mcp::ServerPool;
use pal_tools::Shell;

/// The open session, shared between threads; empty until one is open.
#[derive(Clone, Default)]
pub(crate) struct LiveSessionCell(Arc<Mutex<Option<LiveSession>>>);

/// Returns the last dream of a session, if there was one.
type LastDream = Arc<dyn Fn() -> Option<DreamTask> + Send + Sync>;

/// Handles to an open session.
#[derive(Clone)]
pub(super) struct LiveSession {
    id: String,
    pub(super) agents: SubagentsHandle,
    pub(super) handle: AgentHandle,
    pub(super) servers: Arc<ServerPool>,
    pub(super) dream: LastDream,
    shell: Arc<Shell>,
}

impl LiveSessionCell {
    /// Replaces the open session.
    pub(crate) fn set(&self, agent: &Agent<'_>) {
        let live = LiveSession {
            id: agent.id().to_string(),
            agents: agent.agents(),
            handle: agent.handle(),
            servers: agent.servers(),
            dream: Arc::new(agent.dream()),
            shell: agent.shell(),
        };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(live);
    }

    /// Id of the open session.
    pub(crate) fn session_id(&self) -> Option<String> {
        self.get().map(|live| live.id)
    }

    /// Background commands and a running dream of the open session, a line each.
    pub(crate) fn background_tasks(&self) -> Vec<String> {
        self.get().map_or(Vec::new(), |live| live.background_tasks())
    }

    /// Stops the current work of the open session.
    pub(crate) fn interrupt(&self) {
        if let Some(live) = self.get() {
            live.handle.interrupt();
        }
    }

    /// Handle of the open session.
    pub(crate) fn handle(&self) -> Option<AgentHandle> {
        self.get().map(|live| live.handle)
    }

    /// MCP servers of the open session.
    pub(crate) fn servers(&self) -> Option<Arc<ServerPool>> {
        self.get().map(|live| live.servers)
    }

    /// Ends the processes of the open session, when the program ends at once.
    pub(crate) fn end_processes(&self) {
        if let Some(live) = self.get() {
            live.servers.stop();
            live.shell.shut_down();
        }
    }

    pub(super) fn get(&self) -> Option<LiveSession> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl LiveSession {
    /// Background commands and a running dream, a line each.
    pub(super) fn background_tasks(&self) -> Vec<String> {
        let dream = (self.dream)().filter(|dream| dream.state().is_running());
        self.shell.running_commands().into_iter().chain(dream.map(|dream| dream.line())).collect()
    }
}
