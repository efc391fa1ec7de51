//! Restart of one server.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use super::ServerPool;
use crate::server_state::ServerSnapshot;
use crate::supervisor::supervise;

impl ServerPool {
    /// Ends a server in any state and starts it again in the background.
    pub fn restart(&self, name: &str) -> Result<(), String> {
        let at = self.servers.iter().position(|server| server.config.name == name);
        let at = at.ok_or_else(|| format!("there is no server of the name {name}"))?;
        let runtime = self.runtime.lock().unwrap_or_else(PoisonError::into_inner);
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        let (Some(runtime), true) = (&*runtime, at < tasks.len()) else {
            return Err(String::from("the servers are ended"));
        };
        let (server, context) = (Arc::clone(&self.servers[at]), Arc::clone(&self.context));
        server.known.send_modify(|known| *known = ServerSnapshot::starting());
        let before = tasks.remove(at);
        // Aborting the supervisor ends the process.
        before.abort();
        let supervised = async move {
            let _ = before.await;
            server.has_served.store(false, Ordering::Relaxed);
            server.known.send_modify(|known| *known = ServerSnapshot::starting());
            supervise(server, context).await;
        };
        tasks.insert(at, runtime.spawn(supervised));
        Ok(())
    }
}
