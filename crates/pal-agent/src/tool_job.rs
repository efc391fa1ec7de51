//! Running tool calls, each on its own thread, so that several run at once and all can be cancelled.

use std::sync::Arc;
use std::time::Instant;

use pal_permissions::{Confinement, ToolAccess};
use pal_process::CancelToken;
use pal_run::{ToolCall, ToolCallResult};
use pal_tools::{ToolContext, ToolHandler, ToolInput, ToolOutput, Workspace};

use crate::agent_handle::{AgentHandle, AgentSignal};
use crate::hook_runner::{HookRunner, HookScene};

/// An authorized call.
pub(crate) struct ToolJob {
    pub(crate) call: ToolCall,
    /// Granted access.
    pub(crate) granted: Vec<ToolAccess>,
    /// Sandbox of its commands.
    pub(crate) confinement: Confinement,
    pub(crate) tools: Arc<Vec<Box<dyn ToolHandler>>>,
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) hooks: Arc<HookRunner>,
    pub(crate) common: HookScene,
    pub(crate) cancel: CancelToken,
    pub(crate) handle: AgentHandle,
}

impl ToolJob {
    /// Starts the call; the handle receives its result.
    pub(crate) fn start(self) {
        let (handle, id) = (self.handle.clone(), self.call.id.clone());
        let span = tracing::info_span!("execute_tool", tool = %self.call.name, call = self.call.id.as_str());
        let started = std::thread::Builder::new().name(self.call.name.to_string()).spawn(move || {
            let _within = span.entered();
            let (handle, id) = (self.handle.clone(), self.call.id.clone());
            // A panic is a failed call: the run must not wait forever.
            let carried = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.carry_out()));
            let (returned, touched) =
                carried.unwrap_or_else(|_| (ToolCallResult::failed(&id, "The tool broke down."), Vec::new()));
            handle.send(AgentSignal::Returned(Box::new(returned), touched));
        });
        if let Err(error) = started {
            let why = format!("The call could not be started: {error}.");
            handle.send(AgentSignal::Returned(Box::new(ToolCallResult::failed(&id, &why)), Vec::new()));
        }
    }

    fn carry_out(self) -> (ToolCallResult, Vec<std::path::PathBuf>) {
        let Some(tool) = pal_tools::find_tool(&self.tools, &self.call.name) else {
            return (ToolCallResult::failed(&self.call.id, "There is no such tool."), Vec::new());
        };
        if self.cancel.is_cancelled() {
            return (
                ToolCallResult::failed(&self.call.id, "[Interrupted by the user before it began.]"),
                Vec::new(),
            );
        }
        let begun = Instant::now();
        let (handle, id) = (&self.handle, &self.call.id);
        let progress = |text: &str| handle.send(AgentSignal::Printed(id.clone(), text.to_owned()));
        let running = ToolContext {
            workspace: &self.workspace,
            granted: &self.granted,
            confinement: &self.confinement,
            call: id,
            cancel: &self.cancel,
            progress: &progress,
        };
        let output: ToolOutput = tool.run(&ToolInput(self.call.input.clone()), &running);
        let ToolOutput { content, is_error, aftermath, touched } = output;
        let took = begun.elapsed();
        let mut returned =
            ToolCallResult { effects: aftermath, took, ..ToolCallResult::plain(id, content, is_error) };
        tracing::debug!(is_error, took_ms = begun.elapsed().as_millis() as u64, "returned");
        if !self.cancel.is_cancelled() {
            self.hooks.tool_used(&self.call, &mut returned, begun.elapsed(), &self.common, &self.cancel);
        }
        (returned, touched)
    }
}
