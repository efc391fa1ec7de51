//! Beginning anew with one server.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use super::Servers;
use crate::keeper::keep;
use crate::known::Known;

impl Servers {
    /// Ends a server, whatever became of it, and begins to start it again; returns at once.
    pub fn restart(&self, name: &str) -> Result<(), String> {
        let at = self.servers.iter().position(|server| server.config.name == name);
        let at = at.ok_or_else(|| format!("there is no server of the name {name}"))?;
        let runtime = self.runtime.lock().unwrap_or_else(PoisonError::into_inner);
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        let (Some(runtime), true) = (&*runtime, at < tasks.len()) else {
            return Err(String::from("the servers are ended"));
        };
        let (server, house) = (Arc::clone(&self.servers[at]), Arc::clone(&self.house));
        server.known.send_modify(|known| *known = Known::starting());
        let before = tasks.remove(at);
        // Its process goes with whoever keeps it.
        before.abort();
        let keeping = async move {
            let _ = before.await;
            server.has_served.store(false, Ordering::Relaxed);
            server.known.send_modify(|known| *known = Known::starting());
            keep(server, house).await;
        };
        tasks.insert(at, runtime.spawn(keeping));
        Ok(())
    }
}
