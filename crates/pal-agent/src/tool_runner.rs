//! The tools of a session: which calls an answer makes, which of them run, and what they may do.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use pal_engine::Session;
use pal_events::AgentEvent;
use pal_model::{ContentBlock, SharedText, Timestamp, ToolUseId, member, member_string, object_fields};
use pal_permissions::{Confinement, ToolAccess, is_read_only};
use pal_prompt::{CALL_TOOL, ToolCatalog};
use pal_run::ToolCall;
use pal_tools::{FileCheckpoints, Shell, ToolHandler, Workspace};
use smol_str::SmolStr;

use crate::disk_output_limit::OutputLimit;
use crate::session_tools;
use crate::session_tools::structured_output::StructuredOutput;

/// The tools of a session, and the calls that use them.
pub(crate) struct ToolRunner {
    pub(crate) all: Arc<Vec<Box<dyn ToolHandler>>>,
    pub(crate) catalog: ToolCatalog,
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) shell: Arc<Shell>,
    /// Versions of files before they were changed.
    pub(crate) checkpoints: Arc<FileCheckpoints>,
    /// Disk limit on outputs; none for a subagent, whose outputs count with those of its parent.
    pub(crate) output_limit: Option<OutputLimit>,
    /// Structured output that each prompt must end with.
    pub(crate) output: Option<StructuredOutput>,
    /// Calls under way: id, tool and start.
    pub(crate) running: Vec<(ToolUseId, SmolStr, Instant)>,
    /// Access of calls that are authorized and not started yet.
    pub(crate) granted: BTreeMap<ToolUseId, (Vec<ToolAccess>, Confinement)>,
}

impl ToolRunner {
    fn tool(&self, name: &str) -> Option<&dyn ToolHandler> {
        pal_tools::find_tool(&self.all, name)
    }

    /// Parses a call of a response.
    pub(crate) fn call(&self, block: &ContentBlock) -> Option<ToolCall> {
        let id = block.tool_use_id()?.clone();
        let mut name = SmolStr::new(block.string("name").unwrap_or_default());
        let mut input = SharedText::from(block.field("input").unwrap_or("{}"));
        let problem = if block.field("unparsed_input").is_some() {
            Some(String::from(
                "The input of this call is no JSON object, so it was not carried out. Make the call again.",
            ))
        } else if name == CALL_TOOL {
            // Permission checks apply to the dispatched tool.
            self.dispatched(&input).map(|meant| (name, input) = meant).err()
        } else {
            self.unknown(&name)
        };
        let only_looks = problem.is_none() && self.only_looks(&name, &input);
        Some(ToolCall { id, name, input, is_read_only: only_looks, problem })
    }

    /// Problem of a call to an unknown tool.
    fn unknown(&self, name: &str) -> Option<String> {
        if session_tools::is_inner(name) || self.catalog.find_tool(name).is_some() {
            return None;
        }
        let names: Vec<&str> = self.catalog.tools().iter().map(|tool| tool.wire_name.as_str()).collect();
        Some(format!("There is no tool of the name `{name}`. There are: {}.", names.join(", ")))
    }

    fn only_looks(&self, name: &str, input: &SharedText) -> bool {
        let input = pal_tools::ToolInput(input.clone());
        match self.tool(name) {
            // Commands are classified by the permission rules.
            Some(_) if name == "Bash" => input.text("command").is_some_and(|command| is_read_only(&command)),
            Some(tool) => tool.is_read_only(&input),
            None => session_tools::is_inner(name),
        }
    }

    /// Resolves a call of the dispatcher to the tool that it names.
    fn dispatched(&self, input: &SharedText) -> Result<(SmolStr, SharedText), String> {
        let Ok(fields) = object_fields(input) else {
            return Err(String::from("The input is no JSON object."));
        };
        let name = member_string(&fields, "name").unwrap_or_default();
        let is_meant = self.catalog.find_tool(&name).is_some_and(|tool| tool.spec.is_deferred);
        if !is_meant {
            return Err(format!(
                "CallTool calls tools that ToolSearch found, and `{name}` is none of them. Tools of your own list are called \
                 directly."
            ));
        }
        let meant = member(&fields, "input").unwrap_or("{}");
        if !meant.trim_start().starts_with('{') {
            return Err(String::from("`input` has to be an object that fits the tool's schema."));
        }
        Ok((SmolStr::new(name), SharedText::from(meant)))
    }

    /// Tells the workspace whether the model still sees an earlier result of a file.
    pub(crate) fn note_visibility(&self, session: &Session, call: &ToolCall) {
        let input = pal_tools::ToolInput(call.input.clone());
        let Some(path) = input.text("file_path") else { return };
        let seen = self.workspace.seen_file(&self.workspace.resolve(&path).real);
        let Some(earlier) = seen.and_then(|seen| seen.call) else { return };
        if session_tools::is_visible_file(session.view(), &ToolUseId::from(earlier.as_str())) {
            self.workspace.show_result(&earlier);
        } else {
            self.workspace.hide_result(&earlier);
        }
    }

    /// Ends a running call; returns the event that reports it.
    pub(crate) fn end_call(
        &mut self,
        call: &ToolUseId,
        is_error: bool,
        content: &[ContentBlock],
    ) -> Option<AgentEvent> {
        let at = self.running.iter().position(|(id, ..)| id == call)?;
        let (call, name, begun) = self.running.swap_remove(at);
        let bytes = content.iter().map(|block| block.raw().len() as u64).sum();
        Some(AgentEvent::ToolEnded { call, name, is_error, took: begun.elapsed(), bytes })
    }

    /// Enforces the disk limit on outputs; returns a line for the user if any were removed.
    pub(crate) fn limit_outputs(&mut self, now: Timestamp) -> Option<String> {
        let limit = self.output_limit.as_mut()?;
        let running = self.shell.background.list().into_iter();
        let running =
            running.filter(|task| task.state == pal_process::BackgroundState::Running).map(|task| task.file);
        limit.enforce(&running.collect::<Vec<_>>(), now)
    }
}
