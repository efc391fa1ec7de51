//! Runs hooks (§8.7) and translates their answers for the run.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pal_context::{CompactionRequest, CompactionTrigger};
use pal_engine::{Session, summary_text};
use pal_hooks::{
    HookConfig, HookContext, HookEvent, HookEventName, HookOutcome, HookPermission, HookSession,
    HookToolCall as HookCall, SessionHooks,
};
use pal_model::{Boundary, Content, ContentBlock, SharedText};
use pal_process::CancelToken;
use pal_run::{ToolCall, ToolCallResult};
use pal_settings::{KillSwitch, KillSwitches};
use pal_tools::Workspace;
use tracing::debug;

use pal_permissions::PermissionMode;

use crate::hook_tool_response::{content_text, output_text, tool_response};

/// Hooks of a session.
pub(crate) struct HookRunner {
    hooks: SessionHooks,
    workspace: Arc<Workspace>,
    switches: KillSwitches,
    model: String,
    /// Name, kind and log of a subagent.
    agent: Option<(String, String, PathBuf)>,
    /// Messages for the user.
    messages: Mutex<HookMessages>,
}

/// Messages of hooks for the user.
#[derive(Default)]
pub(crate) struct HookMessages {
    pub(crate) notices: Vec<String>,
    /// Failures, each the first time only.
    pub(crate) warnings: Vec<String>,
    /// Failures that the user has seen.
    warned: BTreeSet<String>,
}

/// Circumstances of a call, for use on its thread.
#[derive(Clone)]
pub(crate) struct HookScene {
    directory: PathBuf,
    mode: &'static str,
}

/// Answers of hooks to a call.
#[derive(Default)]
pub(crate) struct HookRuling {
    /// Reason to stop the run.
    pub(crate) stop: Option<String>,
    /// Reason to deny the call.
    pub(crate) denied: Option<String>,
    /// Reason to ask the user.
    pub(crate) asks: Option<String>,
    /// Whether the call is allowed without asking.
    pub(crate) allowed: bool,
    /// Replacement input.
    pub(crate) input: Option<SharedText>,
    /// Context for the model.
    pub(crate) notes: Vec<String>,
}

/// Answers of hooks to a compaction.
#[derive(Default)]
pub(crate) struct CompactionHookAnswer {
    pub(crate) blocked_by: Option<String>,
    pub(crate) instructions: Option<String>,
}

impl HookRunner {
    pub(crate) fn new(
        configs: Vec<HookConfig>,
        place: HookSession,
        workspace: Arc<Workspace>,
        switches: KillSwitches,
        model: &str,
    ) -> HookRunner {
        let hooks = SessionHooks::new(configs, place);
        let (model, messages) = (model.to_owned(), Mutex::default());
        HookRunner { hooks, workspace, switches, model, agent: None, messages }
    }

    /// Marks the runner as that of a subagent.
    pub(crate) fn of_agent(self, agent: Option<(String, String)>, log: &Path) -> HookRunner {
        HookRunner { agent: agent.map(|(name, kind)| (name, kind, log.to_owned())), ..self }
    }

    /// Returns whether hooks listen to an event. They can be switched off at any time.
    fn listens_to(&self, event: HookEventName) -> bool {
        self.hooks.has_hooks_for(event) && !self.switches.is_off(KillSwitch::Hooks)
    }

    /// Takes the messages for the user.
    pub(crate) fn take_messages(&self) -> HookMessages {
        let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        let warned = std::mem::take(&mut messages.warned);
        std::mem::replace(&mut *messages, HookMessages { warned, ..HookMessages::default() })
    }

    pub(crate) fn common(&self, directory: PathBuf, mode: PermissionMode) -> HookScene {
        HookScene { directory, mode: mode.claude_code_name() }
    }

    pub(crate) fn session_started(
        &self,
        session: &Session,
        source: &str,
        mode: PermissionMode,
        cancel: &CancelToken,
    ) -> Vec<String> {
        if self.agent.is_some() || !self.listens_to(HookEventName::SessionStart) {
            return Vec::new();
        }
        let view = session.view();
        let happening = HookEvent::SessionStart {
            source,
            model: Some(&self.model),
            title: view.state().title.as_deref(),
            context_tokens: Some(view.size().tokens),
            since_last_response: None,
        };
        self.run(&happening, mode, cancel).context
    }

    /// Returns context for a prompt, or why hooks block it.
    pub(crate) fn prompt_submitted(
        &self,
        session: &Session,
        prompt: &Content,
        mode: PermissionMode,
        cancel: &CancelToken,
    ) -> Result<Vec<String>, String> {
        if self.agent.is_some() || !self.listens_to(HookEventName::UserPromptSubmit) {
            return Ok(Vec::new());
        }
        let words: Vec<_> = prompt.blocks().iter().filter_map(|block| block.string("text")).collect();
        let title = session.view().state().title.as_deref();
        let happening = HookEvent::UserPromptSubmit { prompt: &words.join("\n"), title };
        let said = self.run(&happening, mode, cancel);
        match said.blocked.map(|blocked| blocked.reason).or(said.stop) {
            Some(why) => Err(format!("a hook does not want the prompt to be worked on: {why}")),
            None => Ok(said.context),
        }
    }

    pub(crate) fn tool_wanted(
        &self,
        call: &ToolCall,
        fits: &(dyn Fn(&str) -> bool + Sync),
        mode: PermissionMode,
        cancel: &CancelToken,
    ) -> HookRuling {
        if !self.listens_to(HookEventName::PreToolUse) {
            return HookRuling::default();
        }
        let directory = self.workspace.directory();
        let moment = HookContext {
            matches_rule: Some(fits),
            permission_mode: Some(mode.claude_code_name()),
            ..HookContext::new(&directory)
        };
        let said = self.heard(&HookEvent::PreToolUse(described(call)), &moment, cancel);
        let denied = said.blocked.map(|blocked| format!("a hook does not want it: {}", blocked.reason));
        let mut spoken = HookRuling {
            stop: said.stop,
            denied,
            input: said.updated_input.map(|input| SharedText::from(input.to_string())),
            notes: said.context,
            ..HookRuling::default()
        };
        match said.permission {
            Some((HookPermission::Deny, why)) => {
                spoken.denied = spoken.denied.or(Some(format!("a hook does not want it: {why}")));
            }
            Some((HookPermission::Ask, why)) => {
                spoken.asks = Some(format!("a hook wants the user to be asked: {why}"))
            }
            Some((HookPermission::Allow, _)) => spoken.allowed = true,
            None => {}
        }
        spoken
    }

    /// Runs the hooks after a call and applies their changes to its result.
    pub(crate) fn tool_used(
        &self,
        call: &ToolCall,
        returned: &mut ToolCallResult,
        took: Duration,
        common: &HookScene,
        cancel: &CancelToken,
    ) {
        let event =
            if returned.is_error { HookEventName::PostToolUseFailure } else { HookEventName::PostToolUse };
        if !self.listens_to(event) {
            return;
        }
        let moment =
            HookContext { permission_mode: Some(common.mode), ..HookContext::new(&common.directory) };
        let words = content_text(&returned.content);
        let response = tool_response(call, &returned.content, &self.workspace);
        let happening = match event {
            HookEventName::PostToolUse => {
                HookEvent::PostToolUse { call: described(call), response: &response, took }
            }
            _ => HookEvent::PostToolUseFailure { call: described(call), error: &words, is_interrupt: false },
        };
        let said = self.heard(&happening, &moment, cancel);
        if let Some(output) = said.updated_output {
            returned.content = vec![ContentBlock::text(&output_text(&output))];
        }
        let blocked =
            said.blocked.map(|blocked| format!("A hook objects to this result: {}", blocked.reason));
        returned.notes.extend(blocked.into_iter().chain(said.context).map(|text| ("hook", text)));
        returned.stop = said.stop;
    }

    pub(crate) fn compacting(
        &self,
        order: &CompactionRequest,
        mode: PermissionMode,
        cancel: &CancelToken,
    ) -> CompactionHookAnswer {
        if !self.listens_to(HookEventName::PreCompact) {
            return CompactionHookAnswer::default();
        }
        let instructions = order.instructions.as_deref().unwrap_or_default();
        let happening = HookEvent::PreCompact { trigger: trigger_name(order.trigger), instructions };
        let said = self.run(&happening, mode, cancel);
        let instructions = (!said.context.is_empty()).then(|| said.context.join("\n"));
        CompactionHookAnswer { blocked_by: said.blocked.map(|blocked| blocked.hook), instructions }
    }

    pub(crate) fn compacted(
        &self,
        boundary: &Boundary,
        mode: PermissionMode,
        cancel: &CancelToken,
    ) -> Vec<String> {
        let mut context = Vec::new();
        if self.listens_to(HookEventName::PostCompact) {
            let summary = summary_text(boundary).unwrap_or_default();
            let trigger = if boundary.trigger == "manual" { "manual" } else { "auto" };
            context = self.run(&HookEvent::PostCompact { trigger, summary: &summary }, mode, cancel).context;
        }
        let happening = HookEvent::SessionStart {
            source: "compact",
            model: Some(&self.model),
            title: boundary.snapshot.title.as_deref(),
            context_tokens: boundary.tokens_after,
            since_last_response: None,
        };
        context.extend(self.run(&happening, mode, cancel).context);
        context
    }

    /// Lets the agent stop, or returns why it must continue.
    pub(crate) fn stopping(
        &self,
        last: &str,
        is_repeated: bool,
        mode: PermissionMode,
        cancel: &CancelToken,
    ) -> Result<(), String> {
        let last_message = (!last.is_empty()).then_some(last);
        let happening = match &self.agent {
            None => HookEvent::Stop { is_hook_active: is_repeated, last_message },
            Some((_, _, log)) => {
                HookEvent::SubagentStop { is_hook_active: is_repeated, last_message, transcript_path: log }
            }
        };
        if !self.listens_to(happening.event_name()) {
            return Ok(());
        }
        let said = self.run(&happening, mode, cancel);
        // A hook that stops the run overrides one that continues it.
        match said.blocked.filter(|_| said.stop.is_none()) {
            Some(blocked) => Err(format!("A hook does not let you stop yet: {}", blocked.reason)),
            None => Ok(()),
        }
    }

    pub(crate) fn instructions_loaded(
        &self,
        path: &Path,
        whose: &str,
        why: &str,
        mode: PermissionMode,
        cancel: &CancelToken,
    ) {
        let happening = HookEvent::InstructionsLoaded {
            file_path: path,
            memory_type: whose,
            load_reason: why,
            globs: &[],
        };
        self.run(&happening, mode, cancel);
    }

    pub(crate) fn session_ended(&self, reason: &str, mode: PermissionMode, cancel: &CancelToken) {
        if self.agent.is_none() {
            self.run(&HookEvent::SessionEnd { reason }, mode, cancel);
        }
    }

    pub(crate) fn listens_for_instructions(&self) -> bool {
        self.listens_to(HookEventName::InstructionsLoaded)
    }

    fn run(&self, happening: &HookEvent<'_>, mode: PermissionMode, cancel: &CancelToken) -> HookOutcome {
        let directory = self.workspace.directory();
        let moment =
            HookContext { permission_mode: Some(mode.claude_code_name()), ..HookContext::new(&directory) };
        self.heard(happening, &moment, cancel)
    }

    /// Runs the hooks of an event.
    fn heard(
        &self,
        happening: &HookEvent<'_>,
        moment: &HookContext<'_>,
        cancel: &CancelToken,
    ) -> HookOutcome {
        let event = happening.event_name();
        if !self.listens_to(event) {
            return HookOutcome::default();
        }
        let begun = Instant::now();
        let agent = self.agent.as_ref().map(|(id, kind, _)| pal_hooks::HookSubagent { id, kind });
        let said = self.hooks.run(happening, &HookContext { agent, ..*moment }, cancel);
        // Names and messages of hooks stay out of the program's log.
        debug!(
            event = event.name(),
            took_ms = begun.elapsed().as_millis() as u64,
            blocked = said.blocked.is_some(),
            failures = said.failures.len(),
            "hooks ran"
        );
        self.noted(said)
    }

    /// Keeps messages for the user. A hook that fails in the same way at every call is a warning only once.
    fn noted(&self, mut said: HookOutcome) -> HookOutcome {
        let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        messages.notices.append(&mut said.system_messages);
        for failure in &said.failures {
            let line = format!("hook `{}` failed: {}", failure.hook, failure.reason);
            match messages.warned.insert(line.clone()) {
                true => messages.warnings.push(line),
                false => messages.notices.push(line),
            }
        }
        drop(messages);
        said
    }
}

fn described(call: &ToolCall) -> HookCall<'_> {
    let server =
        call.name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__")).map(|(server, _)| server);
    HookCall { tool_name: &call.name, input: &call.input, tool_use_id: call.id.as_str(), mcp_server: server }
}

/// Trigger of a compaction as hooks name it.
fn trigger_name(trigger: CompactionTrigger) -> &'static str {
    match trigger {
        CompactionTrigger::Manual => "manual",
        CompactionTrigger::Auto
        | CompactionTrigger::Model
        | CompactionTrigger::Reactive
        | CompactionTrigger::Idle => "auto",
    }
}
