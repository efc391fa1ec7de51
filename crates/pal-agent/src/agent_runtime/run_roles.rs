//! The roles that a run needs, played by the runtime.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pal_context::cache::fork_price;
use pal_engine::{
    EngineError, PermissionPrompt, RunEvent, RunInbox, RunObserver, Session, SessionConfig, ToolExecutor,
    TurnHooks,
};
use pal_events::AgentEvent;
use pal_model::text::short_tokens;
use pal_model::{BlockType, CacheBreak, Content, ContentBlock, Timestamp};
use pal_permissions::{Confinement, SandboxLevel, ToolAccess};
use pal_run::{CallRuling, RunInput, ToolCall};
use pal_settings::KillSwitch;

use crate::agent_runtime::AgentRuntime;
use crate::session_tools;
use crate::session_tools::structured_output::StructuredOutput;
use crate::subagents::AGENT;
use crate::todo_reminder::REMINDER;
use crate::tool_job::ToolJob;

impl ToolExecutor for AgentRuntime<'_> {
    fn parse_calls(&mut self, blocks: &[ContentBlock]) -> Vec<ToolCall> {
        let calls = blocks.iter().filter(|block| block.kind() == BlockType::ToolUse);
        calls.filter_map(|block| self.tools.call(block)).collect()
    }

    fn execute(&mut self, session: &mut Session, config: &SessionConfig, call: ToolCall) {
        // The provider's cache now contains everything but the last response.
        self.update_notes(session, config, self.clock.now());
        self.background.pause(session, config, self.clock.now());
        self.events.send(AgentEvent::ToolStarted {
            call: call.id.clone(),
            name: call.name.clone(),
            input: call.input.to_string(),
        });
        self.pending.todo_reminder.called(&call);
        if call.name == AGENT {
            self.subagents.set_may(self.permissions.mode, &self.permissions.rules);
            if is_fork_call(&call) {
                let price = fork_price(session.view(), self.clock.now());
                self.events.notice(format!("a fork {}", price.line()));
            }
        }
        self.tools.running.push((call.id.clone(), call.name.clone(), Instant::now()));
        if call.name == "Read" {
            self.tools.note_visibility(session, &call);
        }
        if session_tools::is_inner(&call.name) {
            let span = tracing::info_span!("execute_tool", tool = %call.name, call = call.id.as_str());
            let _within = span.entered();
            let begun = Instant::now();
            let mut returned = self.look_inside(session, config, &call);
            let common = self.hooks.common(self.tools.workspace.directory(), self.permissions.mode);
            self.hooks.tool_used(&call, &mut returned, begun.elapsed(), &common, &self.inbox.handle.cancel());
            self.report_notices();
            self.report_ended_call(&returned.call, returned.is_error, &returned.content);
            self.inbox.ready.push(RunInput::CallReturned(returned));
            return;
        }
        let (granted, confinement) = self
            .tools
            .granted
            .remove(&call.id)
            .unwrap_or_else(|| (Vec::new(), Confinement::whole(SandboxLevel::ReadOnly)));
        if let (Some(keeping), [ToolAccess::Write(target)]) =
            (self.background.notes.as_mut(), granted.as_slice())
        {
            keeping.calling(&call.id, &target.real, session);
        }
        let job = ToolJob {
            granted,
            confinement,
            call,
            tools: Arc::clone(&self.tools.all),
            workspace: Arc::clone(&self.tools.workspace),
            hooks: Arc::clone(&self.hooks),
            common: self.hooks.common(self.tools.workspace.directory(), self.permissions.mode),
            cancel: self.inbox.handle.cancel(),
            handle: self.inbox.handle.clone(),
        };
        job.start();
    }

    fn cancel(&mut self) {
        if let Some(remembering) = &mut self.memory {
            remembering.give_up();
        }
        self.inbox.handle.cancel().cancel();
    }
}

impl PermissionPrompt for AgentRuntime<'_> {
    fn authorize(&mut self, _session: &mut Session, call: &ToolCall) -> CallRuling {
        self.apply_chosen_mode();
        let judged = self.permissions.judge(
            call,
            &self.tools.all,
            &self.tools.workspace,
            &self.hooks,
            &self.inbox.handle.cancel(),
        );
        self.report_notices();
        self.pending.attach("hook", judged.notes);
        if let Some(denial) = judged.denial {
            self.permissions.denials.push(denial);
        }
        self.tools.granted.insert(call.id.clone(), (judged.needs, judged.confinement));
        judged.ruling
    }
}

impl TurnHooks for AgentRuntime<'_> {
    fn check_prompt(&mut self, session: &mut Session, prompt: &Content) -> Result<(), String> {
        let said =
            self.hooks.prompt_submitted(session, prompt, self.permissions.mode, &self.inbox.handle.cancel());
        self.report_notices();
        let said = said?;
        self.pending.attach("hook", said);
        if self.project.attaches_mentions {
            self.attach_mentions(prompt);
        }
        Ok(())
    }

    fn before_request(&mut self, session: &mut Session, now: Timestamp) -> Result<(), EngineError> {
        let finished = self.tools.shell.take_finished();
        self.pending.attach("background", finished);
        if let Some(notice) = self.tools.limit_outputs(now) {
            self.events.notice(notice);
        }
        self.announce_mode();
        self.pending.append_usage(session, now)?;
        self.background.end_pause(session, &mut self.events)?;
        self.poll_servers(session);
        let changes = self.project.changes();
        self.pending.attach("instructions", changes);
        self.note_changed_files();
        self.refresh_definitions();
        self.remind_of_notes(session);
        if !self.switches.is_off(KillSwitch::Reminders) {
            self.pending.attachments.extend(self.pending.todo_reminder.due().map(|text| (REMINDER, text)));
        }
        self.pending.append_attachments(session, now)?;
        let is_off = self.switches.is_off(KillSwitch::Prefetch);
        if let Some(remembering) = self.memory.as_mut() {
            for file in self.inbox.handle.take_remembered() {
                remembering.deliver_new(session, &file, now)?;
            }
            match is_off {
                true => remembering.give_up(),
                false => remembering.before_request(session, &self.tools.workspace, now)?,
            }
        }
        if let Some(announced) =
            self.project.announcement(&session.view().state().announced, &self.tools.catalog)
        {
            session.announce(&announced, now)?;
        }
        Ok(())
    }

    fn take_compaction_request(&mut self) -> Option<Option<String>> {
        self.pending.compaction.take()
    }

    fn apply_switches(&mut self, config: &mut SessionConfig) {
        self.switches.apply(config);
        if let Some(fallback) = &self.model.fallback {
            config.max_tokens = fallback.output_limit(config.max_tokens);
        }
        for notice in self.switches.take_notices() {
            self.events.notice(notice);
        }
    }

    fn fall_back(&mut self, session: &mut Session, config: &mut SessionConfig) -> bool {
        self.fall_back_to_model(session, config)
    }

    fn check_stop(&mut self, _session: &mut Session, last: &str, is_repeated: bool) -> Result<(), String> {
        let stopping =
            self.hooks.stopping(last, is_repeated, self.permissions.mode, &self.inbox.handle.cancel());
        self.report_notices();
        stopping?;
        self.tools.output.as_mut().map_or(Ok(()), StructuredOutput::check_stop)
    }
}

impl RunInbox for AgentRuntime<'_> {
    fn wait(&mut self) -> RunInput {
        loop {
            if let Some(input) = self.inbox.ready.pop() {
                return input;
            }
            // The inbox holds a handle itself, so the channel does not close.
            let Ok(signal) = self.inbox.signals.recv() else { return RunInput::Interrupt };
            let Some(input) = self.handle_signal(signal) else { continue };
            // The model reads messages of the user together with the result of a call.
            if matches!(input, RunInput::CallReturned(_))
                && let Some(content) = self.inbox.handle.take_unread()
            {
                self.inbox.ready.push(input);
                return RunInput::Prompt(content);
            }
            return input;
        }
    }

    fn back_off(&mut self, wait: Duration) -> Option<RunInput> {
        let until = Instant::now() + wait;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(signal) = self.inbox.signals.recv_timeout(left) else { return None };
            if let Some(input) = self.handle_signal(signal) {
                return Some(input);
            }
            if let Some(content) = self.inbox.handle.take_unread() {
                return Some(RunInput::Prompt(content));
            }
        }
    }

    fn try_next(&mut self) -> Option<RunInput> {
        while let Ok(signal) = self.inbox.signals.try_recv() {
            if let Some(input) = self.handle_signal(signal) {
                return Some(input);
            }
        }
        self.inbox.handle.take_unread().map(RunInput::Prompt)
    }
}

impl RunObserver for AgentRuntime<'_> {
    fn observe(&mut self, heard: RunEvent<'_>) {
        let event = match heard {
            RunEvent::Message(entry) => {
                if let Some(mail) = self.subagents.mail() {
                    mail.recorded(entry);
                }
                if let Some(remembering) = &mut self.memory {
                    remembering.heard(entry);
                }
                AgentEvent::Message { entry: Box::new(entry.clone()), usage: None, cost: None }
            }
            RunEvent::Answer(entry, usage, cost) => {
                self.pending.todo_reminder.answered();
                if let Some(remembering) = &self.memory {
                    remembering.answered(entry);
                }
                let usage = Some(Box::new(usage.clone()));
                AgentEvent::Message { entry: Box::new(entry.clone()), usage, cost }
            }
            RunEvent::Void => AgentEvent::AnswerDiscarded {
                why: String::from("it was longer than asked for; a longer one is on its way"),
            },
            RunEvent::CacheBroke(found) => AgentEvent::CacheBroken(Box::new(found.clone())),
        };
        let alarm = match &event {
            AgentEvent::CacheBroken(found) => cache_break_alarm(found, self.model.alerts.cache_break),
            _ => None,
        };
        self.events.send(event);
        if let Some(alarm) = alarm {
            self.events.send(alarm);
        }
    }
}

/// Alarm about an unexpected cache break of at least this price; none for never.
fn cache_break_alarm(found: &CacheBreak, least: Option<f64>) -> Option<AgentEvent> {
    let cost = found.cost.filter(|cost| least.is_some_and(|least| *cost >= least))?;
    (!found.cause.is_expected()).then(|| AgentEvent::Alarm {
        kind: "cache_break",
        cost,
        text: format!(
            "cache break: {} tokens were paid again, ${cost:.2}: {}",
            short_tokens(found.tokens),
            found.reason()
        ),
    })
}

/// Returns whether a call starts a fork of the conversation.
fn is_fork_call(call: &ToolCall) -> bool {
    let input: Option<serde_json::Value> = serde_json::from_str(&call.input).ok();
    input.is_some_and(|input| input["subagent_type"].as_str().is_some_and(|kind| kind.trim() == "fork"))
}
