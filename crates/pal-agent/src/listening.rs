//! Hooks as the agent hears them (§8.7): what each of them means for the run.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pal_context::{Order, Trigger};
use pal_engine::{Session, summary_text};
use pal_hooks::{Call as HookCall, Config, EventName, Happening, Hooks, Moment, Permission, Place, Said};
use pal_model::{Block, Boundary, Content, Text};
use pal_process::Cancel;
use pal_session::{Call, Returned};
use pal_settings::{Switch, Switches};
use pal_tools::Workspace;
use serde_json::{Value, json};
use tracing::debug;

use crate::gate::Gate;

/// The hooks of a session.
pub(crate) struct Listening {
    hooks: Hooks,
    workspace: Arc<Workspace>,
    switches: Switches,
    model: String,
    /// Name and kind of the agent, if another one sent it, and its log.
    agent: Option<(String, String, PathBuf)>,
    /// What the user is to read.
    notices: Mutex<Vec<String>>,
}

/// What is around a call, for a thread of its own.
#[derive(Clone)]
pub(crate) struct Common {
    directory: PathBuf,
    mode: &'static str,
}

/// What hooks say before a call.
#[derive(Default)]
pub(crate) struct Spoken {
    /// The run shall stop, and why.
    pub(crate) stop: Option<String>,
    /// The call shall not happen, and why.
    pub(crate) denied: Option<String>,
    /// A person shall be asked, and why.
    pub(crate) asks: Option<String>,
    /// Nobody need be asked.
    pub(crate) allowed: bool,
    /// Another input.
    pub(crate) input: Option<Text>,
    /// What the model is to know.
    pub(crate) notes: Vec<String>,
}

/// What hooks say before a compaction.
#[derive(Default)]
pub(crate) struct BeforeSummary {
    pub(crate) blocked_by: Option<String>,
    pub(crate) instructions: Option<String>,
}

impl Listening {
    pub(crate) fn new(
        configs: Vec<Config>,
        place: Place,
        workspace: Arc<Workspace>,
        switches: Switches,
        model: &str,
    ) -> Listening {
        let hooks = Hooks::new(configs, place);
        let (model, notices) = (model.to_owned(), Mutex::default());
        Listening { hooks, workspace, switches, model, agent: None, notices }
    }

    /// The same for an agent that another one sent.
    pub(crate) fn of_agent(self, agent: Option<(String, String)>, log: &Path) -> Listening {
        Listening { agent: agent.map(|(name, kind)| (name, kind, log.to_owned())), ..self }
    }

    /// Whether any hook might run at an event. They can be switched off while the session runs.
    fn listens_to(&self, event: EventName) -> bool {
        self.hooks.listen_to(event) && !self.switches.is_off(Switch::Hooks)
    }

    /// What the user is to read, since it was asked last.
    pub(crate) fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut *self.notices.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn common(&self, directory: PathBuf, gate: &Gate) -> Common {
        Common { directory, mode: gate.mode.foreign_name() }
    }

    pub(crate) fn session_started(
        &self,
        session: &Session,
        source: &str,
        gate: &Gate,
        cancel: &Cancel,
    ) -> Vec<String> {
        if self.agent.is_some() || !self.listens_to(EventName::SessionStart) {
            return Vec::new();
        }
        let view = session.view();
        let happening = Happening::SessionStart {
            source,
            model: Some(&self.model),
            title: view.state().title.as_deref(),
            context_tokens: Some(view.size().tokens),
            since_last_response: None,
        };
        self.run(&happening, gate, cancel).context
    }

    /// What the model is told beside a prompt, or why the prompt is not worked on.
    pub(crate) fn prompt_submitted(
        &self,
        session: &Session,
        prompt: &Content,
        gate: &Gate,
        cancel: &Cancel,
    ) -> Result<Vec<String>, String> {
        if self.agent.is_some() || !self.listens_to(EventName::UserPromptSubmit) {
            return Ok(Vec::new());
        }
        let words: Vec<_> = prompt.blocks().iter().filter_map(|block| block.string("text")).collect();
        let title = session.view().state().title.as_deref();
        let happening = Happening::UserPromptSubmit { prompt: &words.join("\n"), title };
        let said = self.run(&happening, gate, cancel);
        match said.blocked.map(|blocked| blocked.reason).or(said.stop) {
            Some(why) => Err(format!("a hook does not want the prompt to be worked on: {why}")),
            None => Ok(said.context),
        }
    }

    pub(crate) fn tool_wanted(
        &self,
        call: &Call,
        fits: &(dyn Fn(&str) -> bool + Sync),
        gate: &Gate,
        cancel: &Cancel,
    ) -> Spoken {
        if !self.listens_to(EventName::PreToolUse) {
            return Spoken::default();
        }
        let directory = self.workspace.directory();
        let moment = Moment {
            fits: Some(fits),
            permission_mode: Some(gate.mode.foreign_name()),
            ..Moment::in_directory(&directory)
        };
        let said = self.heard(&Happening::PreToolUse(described(call)), &moment, cancel);
        let denied = said.blocked.map(|blocked| format!("a hook does not want it: {}", blocked.reason));
        let mut spoken = Spoken {
            stop: said.stop,
            denied,
            input: said.updated_input.map(|input| Text::from(input.to_string())),
            notes: said.context,
            ..Spoken::default()
        };
        match said.permission {
            Some((Permission::Deny, why)) => {
                spoken.denied = spoken.denied.or(Some(format!("a hook does not want it: {why}")));
            }
            Some((Permission::Ask, why)) => {
                spoken.asks = Some(format!("a hook wants somebody to be asked: {why}"))
            }
            Some((Permission::Allow, _)) => spoken.allowed = true,
            None => {}
        }
        spoken
    }

    /// Hears hooks about a call that returned, and changes what it returned as they say.
    pub(crate) fn tool_used(
        &self,
        call: &Call,
        returned: &mut Returned,
        took: Duration,
        common: &Common,
        cancel: &Cancel,
    ) {
        let event = if returned.is_error { EventName::PostToolUseFailure } else { EventName::PostToolUse };
        if !self.listens_to(event) {
            return;
        }
        let moment = Moment { permission_mode: Some(common.mode), ..Moment::in_directory(&common.directory) };
        let words: Vec<_> = returned.content.iter().filter_map(|block| block.string("text")).collect();
        let words = words.join("\n");
        let response = json!({ "content": words });
        let happening = match event {
            EventName::PostToolUse => {
                Happening::PostToolUse { call: described(call), response: &response, took }
            }
            _ => Happening::PostToolUseFailure { call: described(call), error: &words, is_interrupt: false },
        };
        let said = self.heard(&happening, &moment, cancel);
        if let Some(output) = said.updated_output {
            returned.content = vec![Block::text(&output_text(&output))];
        }
        let blocked =
            said.blocked.map(|blocked| format!("A hook objects to this result: {}", blocked.reason));
        returned.notes.extend(blocked.into_iter().chain(said.context).map(|text| ("hook", text)));
        returned.stop = said.stop;
    }

    pub(crate) fn compacting(&self, order: &Order, gate: &Gate, cancel: &Cancel) -> BeforeSummary {
        if !self.listens_to(EventName::PreCompact) {
            return BeforeSummary::default();
        }
        let instructions = order.instructions.as_deref().unwrap_or_default();
        let happening = Happening::PreCompact { trigger: trigger_name(order.trigger), instructions };
        let said = self.run(&happening, gate, cancel);
        let instructions = (!said.context.is_empty()).then(|| said.context.join("\n"));
        BeforeSummary { blocked_by: said.blocked.map(|blocked| blocked.hook), instructions }
    }

    pub(crate) fn compacted(&self, boundary: &Boundary, gate: &Gate, cancel: &Cancel) -> Vec<String> {
        if self.listens_to(EventName::PostCompact) {
            let summary = summary_text(boundary).unwrap_or_default();
            let trigger = if boundary.trigger == "manual" { "manual" } else { "auto" };
            self.run(&Happening::PostCompact { trigger, summary: &summary }, gate, cancel);
        }
        let happening = Happening::SessionStart {
            source: "compact",
            model: Some(&self.model),
            title: boundary.snapshot.title.as_deref(),
            context_tokens: boundary.tokens_after,
            since_last_response: None,
        };
        self.run(&happening, gate, cancel).context
    }

    /// Whether the agent may stop, or why it shall go on.
    pub(crate) fn stopping(
        &self,
        last: &str,
        is_repeated: bool,
        gate: &Gate,
        cancel: &Cancel,
    ) -> Result<(), String> {
        let last_message = (!last.is_empty()).then_some(last);
        let happening = match &self.agent {
            None => Happening::Stop { is_hook_active: is_repeated, last_message },
            Some((_, _, log)) => {
                Happening::SubagentStop { is_hook_active: is_repeated, last_message, transcript_path: log }
            }
        };
        if !self.listens_to(happening.event()) {
            return Ok(());
        }
        let said = self.run(&happening, gate, cancel);
        // Who wants everything to stop does not want it to go on.
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
        gate: &Gate,
        cancel: &Cancel,
    ) {
        let happening = Happening::InstructionsLoaded {
            file_path: path,
            memory_type: whose,
            load_reason: why,
            globs: &[],
        };
        self.run(&happening, gate, cancel);
    }

    pub(crate) fn session_ended(&self, reason: &str, gate: &Gate, cancel: &Cancel) {
        if self.agent.is_none() {
            self.run(&Happening::SessionEnd { reason }, gate, cancel);
        }
    }

    pub(crate) fn hears_instructions(&self) -> bool {
        self.listens_to(EventName::InstructionsLoaded)
    }

    fn run(&self, happening: &Happening<'_>, gate: &Gate, cancel: &Cancel) -> Said {
        let directory = self.workspace.directory();
        let moment =
            Moment { permission_mode: Some(gate.mode.foreign_name()), ..Moment::in_directory(&directory) };
        self.heard(happening, &moment, cancel)
    }

    /// Lets the hooks run that listen.
    fn heard(&self, happening: &Happening<'_>, moment: &Moment<'_>, cancel: &Cancel) -> Said {
        let event = happening.event();
        if !self.listens_to(event) {
            return Said::default();
        }
        let begun = Instant::now();
        let agent = self.agent.as_ref().map(|(id, kind, _)| pal_hooks::Agent { id, kind });
        let said = self.hooks.run(happening, &Moment { agent, ..*moment }, cancel);
        // What hooks are called and what they say is the user's business.
        debug!(
            event = event.name(),
            took_ms = begun.elapsed().as_millis() as u64,
            blocked = said.blocked.is_some(),
            failures = said.failures.len(),
            "hooks ran"
        );
        self.noted(said)
    }

    /// Keeps what is meant for the user.
    fn noted(&self, mut said: Said) -> Said {
        let failures =
            said.failures.iter().map(|failure| format!("hook `{}`: {}", failure.hook, failure.what));
        let mut notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        notices.extend(said.system_messages.drain(..).chain(failures));
        drop(notices);
        said
    }
}

fn described(call: &Call) -> HookCall<'_> {
    let server =
        call.name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__")).map(|(server, _)| server);
    HookCall { tool_name: &call.name, input: &call.input, tool_use_id: call.id.as_str(), mcp_server: server }
}

/// The words of a result that a hook puts in the place of another.
fn output_text(output: &Value) -> String {
    match output {
        Value::String(text) => text.clone(),
        Value::Object(object) => match object.get("content") {
            Some(Value::String(text)) => text.clone(),
            _ => output.to_string(),
        },
        other => other.to_string(),
    }
}

/// What set a compaction off, in the words that hooks know.
fn trigger_name(trigger: Trigger) -> &'static str {
    match trigger {
        Trigger::Manual => "manual",
        Trigger::Auto | Trigger::Reactive => "auto",
    }
}
