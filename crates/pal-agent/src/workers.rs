//! Calls on their way: each in a thread of its own, so that several can be under way and all can be cancelled.

use std::sync::Arc;
use std::time::Instant;

use pal_permissions::{Confinement, Need};
use pal_process::Cancel;
use pal_session::{Call, Returned};
use pal_tools::{Input, Output, Running, Tool, Workspace};

use crate::handle::{Handle, Signal};
use crate::listening::{Common, Listening};

/// A call that is to be carried out.
pub(crate) struct Job {
    pub(crate) call: Call,
    /// What it may do.
    pub(crate) granted: Vec<Need>,
    /// The sandbox that a command of it runs in.
    pub(crate) confinement: Confinement,
    pub(crate) tools: Arc<Vec<Box<dyn Tool>>>,
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) hooks: Arc<Listening>,
    pub(crate) common: Common,
    pub(crate) cancel: Cancel,
    pub(crate) handle: Handle,
}

impl Job {
    /// Starts it; the handle hears of its end.
    pub(crate) fn start(self) {
        let (handle, id) = (self.handle.clone(), self.call.id.clone());
        let span = tracing::info_span!("execute_tool", tool = %self.call.name, call = self.call.id.as_str());
        let started = std::thread::Builder::new().name(self.call.name.to_string()).spawn(move || {
            let _within = span.entered();
            let (handle, id) = (self.handle.clone(), self.call.id.clone());
            // A tool that panics is a tool that failed: the run must not wait for it for ever.
            let carried = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.carry_out()));
            let (returned, touched) =
                carried.unwrap_or_else(|_| (Returned::failed(&id, "The tool broke down."), Vec::new()));
            handle.send(Signal::Returned(Box::new(returned), touched));
        });
        if let Err(error) = started {
            let why = format!("The call could not be started: {error}.");
            handle.send(Signal::Returned(Box::new(Returned::failed(&id, &why)), Vec::new()));
        }
    }

    fn carry_out(self) -> (Returned, Vec<std::path::PathBuf>) {
        let Some(tool) = pal_tools::find(&self.tools, &self.call.name) else {
            return (Returned::failed(&self.call.id, "There is no such tool."), Vec::new());
        };
        if self.cancel.is_cancelled() {
            return (
                Returned::failed(&self.call.id, "[Interrupted by the user before it began.]"),
                Vec::new(),
            );
        }
        let begun = Instant::now();
        let (handle, id) = (&self.handle, &self.call.id);
        let progress = |text: &str| handle.send(Signal::Printed(id.clone(), text.to_owned()));
        let running = Running {
            workspace: &self.workspace,
            granted: &self.granted,
            confinement: &self.confinement,
            call: id,
            cancel: &self.cancel,
            progress: &progress,
        };
        let output: Output = tool.run(&Input(self.call.input.clone()), &running);
        let Output { content, is_error, aftermath, touched } = output;
        let took = begun.elapsed();
        let mut returned = Returned { aftermath, took, ..Returned::plain(id, content, is_error) };
        tracing::debug!(is_error, took_ms = begun.elapsed().as_millis() as u64, "returned");
        if !self.cancel.is_cancelled() {
            self.hooks.tool_used(&self.call, &mut returned, begun.elapsed(), &self.common, &self.cancel);
        }
        (returned, touched)
    }
}
