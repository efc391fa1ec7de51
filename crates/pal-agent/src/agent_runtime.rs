//! The runtime of an agent: everything outside of its session, as named parts.

mod changes_on_disk;
mod compaction;
mod model_switch;
mod run_roles;
mod session_roles;
mod session_tool_calls;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use pal_background::{Clock, MemoryPrefetch, NOTES_ATTACHMENT};
use pal_engine::{Session, SessionConfig};
use pal_events::{AgentEvent, PermissionAnswer, PermissionQuestion, SessionInfo};
use pal_model::{ContentBlock, Timestamp, ToolUseId};
use pal_prompt::{InstructionFile, InstructionScope};
use pal_run::RunInput;
use pal_settings::KillSwitch;
use smol_str::SmolStr;

pub(crate) use session_tool_calls::all_tools;

use crate::agent_handle::AgentSignal;
use crate::agent_inbox::AgentInbox;
use crate::background_tasks::BackgroundTasks;
use crate::conversation_model::ConversationModel;
use crate::event_sink::EventSink;
use crate::hook_runner::HookRunner;
use crate::pending_entries::PendingEntries;
use crate::permission_checker::PermissionChecker;
use crate::project_context::ProjectContext;
use crate::session_mcp::McpServers;
use crate::session_open::PERMISSIONS;
use crate::session_switches::SessionSwitches;
use crate::subagents::Subagents;
use crate::tool_runner::ToolRunner;

/// Reason for which hooks hear of the first instruction files.
pub(crate) const SESSION_START: &str = "session_start";

/// Maximum number of damaged places reported when a session starts.
const DAMAGE_SHOWN_MAX: usize = 5;

/// Everything an agent works with, made of named parts.
pub(crate) struct AgentRuntime<'a> {
    pub(crate) model: ConversationModel,
    pub(crate) clock: Clock,
    pub(crate) inbox: AgentInbox,
    pub(crate) events: EventSink<'a>,
    pub(crate) tools: ToolRunner,
    pub(crate) permissions: PermissionChecker,
    pub(crate) hooks: Arc<HookRunner>,
    pub(crate) project: ProjectContext,
    /// Prefetch of memories; none if nothing is remembered.
    pub(crate) memory: Option<MemoryPrefetch>,
    pub(crate) background: BackgroundTasks,
    pub(crate) subagents: Arc<Subagents>,
    pub(crate) pending: PendingEntries,
    pub(crate) mcp: McpServers,
    pub(crate) switches: SessionSwitches,
}

impl AgentRuntime<'_> {
    /// Reports the session and damage to its log.
    pub(crate) fn report_session(&mut self, session: &Session, id: &str, is_resumed: bool, version: &str) {
        self.events.send(AgentEvent::SessionStarted(Box::new(SessionInfo {
            session_id: id.to_owned(),
            transcript_path: self.project.log.display().to_string(),
            cwd: self.tools.workspace.directory().display().to_string(),
            model: self.model.card.model.clone(),
            tools: self.tools.catalog.tools().iter().map(|tool| tool.wire_name.clone()).collect(),
            permission_mode: SmolStr::new_static(self.permissions.mode.name()),
            is_resumed,
            version: version.to_owned(),
            mcp_servers: self.mcp.describe(),
            agents: self.project.agents.iter().map(|agent| agent.name.to_string()).collect(),
            skills: self.project.skills.iter().map(|skill| skill.name.to_string()).collect(),
            output_style: self.project.prompt.output_style().map(str::to_owned),
        })));
        for warning in damage_warnings(session.problems(), id) {
            self.events.warning(warning);
        }
        if let Some(left_out) = session.left_out() {
            self.events.warning(left_out.to_string());
        }
    }

    /// Forgets everything about the last prompt.
    pub(crate) fn begin_prompt(&mut self) {
        self.inbox.begin_prompt();
        self.tools.granted.clear();
        self.model.time_waited = Duration::ZERO;
        self.permissions.denials.clear();
        if let Some(output) = &mut self.tools.output {
            output.begin_prompt();
        }
        self.ask_about_includes();
    }

    /// Handles a signal and returns the input for the run, if it has one.
    pub(crate) fn handle_signal(&mut self, signal: AgentSignal) -> Option<RunInput> {
        match signal {
            AgentSignal::Said(input) => Some(input),
            AgentSignal::Printed(call, text) => {
                self.events.send(AgentEvent::ToolPrinted { call, text });
                None
            }
            AgentSignal::AgentLeft | AgentSignal::Steered => None,
            AgentSignal::Doing { agent, doing } => {
                self.events.send(AgentEvent::SubagentActivity { agent, doing });
                None
            }
            AgentSignal::Exchanged(exchanged) => {
                self.pending.usage.extend(exchanged.response_record());
                self.events.send(AgentEvent::ExchangeEnded(exchanged));
                None
            }
            AgentSignal::Returned(mut returned, touched) => {
                self.report_notices();
                self.apply_notes(Some((&returned.call, returned.is_error)));
                for path in &touched {
                    for file in self.project.touched(path) {
                        self.announce_instruction(&file, "nested_traversal");
                        returned.notes.push(("instructions", pal_project::render_joining_text(&file)));
                    }
                }
                self.report_refused_includes();
                self.report_ended_call(&returned.call, returned.is_error, &returned.content);
                if let Some(directory) = &returned.effects.directory {
                    let moved = self.project.moved(directory.as_ref());
                    returned.notes.extend(moved.into_iter().map(|text| ("instructions", text)));
                }
                if let Some(mode) = &returned.effects.mode {
                    self.permissions.set_mode(mode);
                    // The tool result announces the new mode.
                    self.permissions.announced_mode = self.permissions.mode;
                    self.events.send(AgentEvent::Mode(SmolStr::new_static(self.permissions.mode.name())));
                }
                Some(RunInput::CallReturned(*returned))
            }
        }
    }

    /// Reports that a call has ended.
    fn report_ended_call(&mut self, call: &ToolUseId, is_error: bool, content: &[ContentBlock]) {
        if let Some(event) = self.tools.end_call(call, is_error, content) {
            self.events.send(event);
        }
    }

    /// Shows the messages of hooks to the user.
    pub(crate) fn report_notices(&mut self) {
        let messages = self.hooks.take_messages();
        messages.notices.into_iter().for_each(|line| self.events.notice(line));
        messages.warnings.into_iter().for_each(|line| self.events.warning(line));
    }

    /// Starts memory work when the conversation has come to rest.
    pub(crate) fn start_memory_work(&mut self, session: &Session, config: &SessionConfig, now: Timestamp) {
        for line in self.background.start_memory_work(session, config, now, &self.switches) {
            self.events.notice(line);
        }
    }

    /// Updates the session notes if they are due.
    pub(crate) fn update_notes(&mut self, session: &Session, config: &SessionConfig, now: Timestamp) {
        if let Some(failed) = self.background.update_notes(session, config, now, &self.switches) {
            self.events.notice(failed);
        }
    }

    /// Updates the notes after the agent edited them: with this call, or with all calls if `call` is none.
    fn apply_notes(&mut self, call: Option<(&ToolUseId, bool)>) {
        let returned = self.background.notes.as_mut().and_then(|keeping| keeping.returned(call));
        match (returned, &self.permissions.notes) {
            (Some(Err(why)), _) => self.events.notice(why),
            // The agent may keep editing although the file was repaired.
            (Some(Ok(true)), Some(file)) => {
                if let Some(seen) = pal_tools::file_seen(file) {
                    self.tools.workspace.record_seen(file, seen);
                }
            }
            _ => {}
        }
    }

    /// Reminds the agent of its notes, if it writes them itself and they are due.
    fn remind_of_notes(&mut self, session: &Session) {
        self.apply_notes(None);
        let Some(keeping) =
            self.background.notes.as_mut().filter(|_| !self.switches.is_off(KillSwitch::Notes))
        else {
            return;
        };
        match keeping.reminder(session) {
            None => {}
            Some(Err(why)) => self.events.notice(why),
            Some(Ok(reminder)) => {
                // The file exists only now.
                self.permissions.notes = keeping.own_file();
                if let Some((file, seen)) = reminder.seen {
                    self.tools.workspace.record_seen(&file, seen);
                }
                self.pending.attachments.push((NOTES_ATTACHMENT, reminder.text));
            }
        }
    }

    /// Reports all instruction files to hooks; included ones as such at the start of a session.
    pub(crate) fn announce_instructions(&mut self, reason: &str) {
        if !self.hooks.listens_for_instructions() {
            return;
        }
        for file in self.project.instructions.files.clone() {
            let is_included = file.included_by.is_some() && reason == SESSION_START;
            self.announce_instruction(&file, if is_included { "include" } else { reason });
        }
    }

    /// Warns about refused includes of instruction files.
    /// Reports includes that are not read, and instruction files that are too large. Where a user can be asked about
    /// an include, [`AgentRuntime::ask_about_includes`] does so instead.
    pub(crate) fn report_refused_includes(&mut self) {
        let instructions = &mut self.project.instructions;
        let mut lines = instructions.take_refusals();
        lines.extend(instructions.take_warnings());
        if !self.can_ask_about_includes() {
            for question in self.project.open_includes() {
                lines.push(question.refusal());
                self.project.asked_includes.insert(question.path);
            }
        }
        lines.into_iter().for_each(|line| self.events.warning(line));
    }

    fn can_ask_about_includes(&self) -> bool {
        self.permissions.asking.is_some() && self.permissions.agent.is_none()
    }

    /// Asks the user about files outside of the project that instruction files include. What they allow joins the
    /// session with the next request; answers are stored for the project.
    pub(crate) fn ask_about_includes(&mut self) {
        if !self.can_ask_about_includes() {
            return;
        }
        let Some(asking) = self.permissions.asking.clone() else { return };
        let mut questions = VecDeque::from(self.project.open_includes());
        while let Some(question) = questions.pop_front() {
            if !self.project.asked_includes.insert(question.path.clone()) {
                continue;
            }
            let asked = PermissionQuestion {
                agent: None,
                call: ToolUseId::from("include"),
                tool: String::from("Read"),
                input: serde_json::json!({ "file_path": question.path }).to_string(),
                why: format!(
                    "{} includes it, and it lies outside of the project; your answer is remembered",
                    question.asked_by
                ),
                rule: String::new(),
                marks: Vec::new(),
                directory: String::new(),
            };
            let is_allowed = match asking(&asked) {
                PermissionAnswer::Once | PermissionAnswer::Session | PermissionAnswer::Approved(_) => true,
                PermissionAnswer::No(_) => false,
                // Answers are for questions of the model, and this is none.
                PermissionAnswer::Refused(_)
                | PermissionAnswer::Unavailable
                | PermissionAnswer::Answered(_) => {
                    self.events.warning(question.refusal());
                    continue;
                }
            };
            let (joined, problem) = self.project.answer_include(&question.path, is_allowed);
            self.pending.attach("instructions", joined);
            // Allowing one file reads all files again, so others may be asked for.
            questions.extend(self.project.open_includes());
            problem.into_iter().for_each(|line| self.events.warning(line));
        }
    }

    pub(crate) fn announce_instruction(&mut self, file: &InstructionFile, why: &str) {
        let whose = match file.scope {
            InstructionScope::Managed => "Managed",
            InstructionScope::User => "User",
            InstructionScope::Local => "Local",
            InstructionScope::Project | InstructionScope::Added => "Project",
        };
        self.hooks.instructions_loaded(
            file.path.as_ref(),
            whose,
            why,
            self.permissions.mode,
            &self.inbox.handle.cancel(),
        );
        self.report_notices();
    }

    /// Applies the mode that the user chose.
    pub(crate) fn apply_chosen_mode(&mut self) {
        if let Some(mode) = self.inbox.handle.take_mode() {
            self.permissions.choose_mode(mode);
        }
    }

    /// Announces a changed mode with the next request.
    pub(crate) fn announce_mode(&mut self) {
        self.apply_chosen_mode();
        if self.permissions.announced_mode != self.permissions.mode {
            self.permissions.announced_mode = self.permissions.mode;
            self.pending
                .attachments
                .push((PERMISSIONS, self.project.prompt.choose_mode(self.permissions.mode)));
        }
    }
}

/// Warnings about damage to the log: the first places, and how to see all.
fn damage_warnings(problems: &[pal_store::LogProblem], id: &str) -> Vec<String> {
    let mut warnings: Vec<String> =
        problems.iter().take(DAMAGE_SHOWN_MAX).map(|problem| format!("damaged log: {problem}")).collect();
    if !problems.is_empty() {
        let more = match problems.len().saturating_sub(DAMAGE_SHOWN_MAX) {
            0 => String::new(),
            more => format!("{more} more; "),
        };
        warnings.push(format!(
            "damaged log: {more}everything that is intact was read; `pal check {id}` lists the damage, \
             `pal check {id} --repair` repairs it by appending"
        ));
    }
    warnings
}
