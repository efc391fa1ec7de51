//! An agent: a session, its run and its runtime.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use pal_background::{DreamScheduler, DreamTask};
use pal_engine::{Session, SessionConfig, drive};
use pal_events::{AgentEvent, NO_STRUCTURED_OUTPUT, PromptEnd, PromptResult};
use pal_mcp::ServerPool;
use pal_model::{Content, MessageOrigin, Timestamp, UsageTotals};
use pal_run::{IncomingMessage, Run, RunEnd, RunInput};
use pal_tools::Shell;

use crate::AgentError;
use crate::agent_handle::{AgentHandle, AgentSignal};
use crate::agent_runtime::AgentRuntime;
use crate::pause_recorder::PauseRecorder;
use crate::rewind_mark::RewindMark;
use crate::session_presence::{PublishedSession, SessionPresence};
use crate::session_tools::structured_output::StructuredOutput;
use crate::subagents::{RunningAgent, SubagentsHandle};

/// An agent with its session.
pub struct Agent<'a> {
    pub(crate) session: Session,
    pub(crate) config: SessionConfig,
    pub(crate) run: Run,
    pub(crate) runtime: AgentRuntime<'a>,
    /// Messages received while idle.
    pub(crate) unheard: VecDeque<IncomingMessage>,
    pub(crate) id: String,
    /// Usage that the results of prompts have reported.
    pub(crate) reported: UsageTotals,
    /// The last rewind, until the next prompt.
    pub(crate) last_rewind: Option<RewindMark>,
    /// Home directory of the program.
    pub(crate) home: PathBuf,
    /// Due time of a compaction in a pause that was judged already.
    pub(crate) idle_judged: Option<Timestamp>,
    /// Counts pauses over all sessions; none without a person.
    pub(crate) pauses: Option<PauseRecorder>,
}

impl<'a> Agent<'a> {
    /// Runs a prompt to its end. The log is complete in every case.
    pub fn prompt(&mut self, content: Content) -> Result<PromptResult, AgentError> {
        self.work(RunInput::Prompt(content), false)
    }

    fn work(&mut self, input: RunInput, is_given_up: bool) -> Result<PromptResult, AgentError> {
        let begun = Instant::now();
        // After a rewind, the last request in view is older than the pause.
        let is_rewound = self.last_rewind.take().is_some();
        let span = tracing::info_span!("invoke_agent", session = %self.id);
        let within = span.entered();
        self.forget_rewound();
        self.runtime.background.end_suggestion();
        self.runtime.begin_prompt();
        if let Some(notice) = self.runtime.background.take_written_memories() {
            self.runtime.events.notice(notice);
        }
        let before = self.session.view().state().activity.clone();
        if let Some(pauses) = &self.pauses {
            pauses.expect(&mut self.config, &self.runtime.switches, self.runtime.clock.now());
        }
        if matches!(input, RunInput::Prompt(_)) && !is_given_up {
            self.report_cold_turn()?;
        }
        self.run.limit_day(self.day_budget());
        self.run.handle(input);
        if is_given_up {
            self.run.handle(RunInput::Interrupt);
        }
        let end = drive(&mut self.session, &mut self.config, &mut self.run, &mut self.runtime);
        self.runtime.permissions.rules.end_prompt();
        if let Some(pauses) = self.pauses.as_ref().filter(|_| !is_rewound) {
            let activity = &self.session.view().state().activity;
            pauses.record(&before, activity, &self.runtime.switches, self.runtime.clock.now());
        }
        let end = end?;
        self.runtime.return_from_fallback(&mut self.session, &mut self.config)?;
        let now = self.runtime.clock.now();
        self.runtime.update_notes(&self.session, &self.config, now);
        if end == RunEnd::Done {
            self.runtime.start_memory_work(&self.session, &self.config, now);
            self.runtime.background.suggest(&self.session, &self.config, now);
        }
        self.runtime.pending.append_usage(&mut self.session, now)?;
        self.runtime.background.pause(&self.session, &self.config, now);
        let wants_output = self.runtime.tools.output.is_some();
        let structured_output = self.runtime.tools.output.as_ref().and_then(StructuredOutput::output);
        let ended = PromptResult {
            end: match end {
                RunEnd::Done if wants_output && structured_output.is_none() => {
                    PromptEnd::Failed(String::from(NO_STRUCTURED_OUTPUT))
                }
                RunEnd::Done => PromptEnd::Done,
                RunEnd::Refused => {
                    PromptEnd::Refused(String::from("the model refused to answer; its words are not reused"))
                }
                RunEnd::Limit(which) => PromptEnd::Limit(which),
                RunEnd::Interrupted => PromptEnd::Interrupted,
                RunEnd::Failed(why) => PromptEnd::Failed(why),
            },
            text: self.run.last_text().to_owned(),
            turns: self.run.turns(),
            took: begun.elapsed(),
            took_provider: self.runtime.model.time_waited,
            spent: self.take_spent(),
            denials: std::mem::take(&mut self.runtime.permissions.denials),
            structured_output,
        };
        tracing::info!(
            end = ended.end.name(),
            turns = ended.turns,
            took_ms = ended.took.as_millis() as u64,
            provider_ms = ended.took_provider.as_millis() as u64,
            denials = ended.denials.len(),
            "ended"
        );
        drop(within);
        self.runtime.events.send(AgentEvent::Ended(ended.clone()));
        Ok(ended)
    }

    /// Usage since the last report. Background work between two prompts is reported with the second.
    fn take_spent(&mut self) -> UsageTotals {
        self.forget_rewound();
        let totals = self.session.view().state().totals;
        let spent = totals.since(&self.reported);
        self.reported = totals;
        spent
    }

    /// Forgets reports about responses that a rewind has left behind.
    fn forget_rewound(&mut self) {
        let totals = self.session.view().state().totals;
        if totals.responses < self.reported.responses {
            self.reported = totals;
        }
    }

    /// Runs messages that arrived too late for the last prompt, until none is left. Returns the last result.
    pub fn run_queued_messages(&mut self) -> Result<Option<PromptResult>, AgentError> {
        self.run_queued(false)
    }

    /// Returns unread messages of the user to the handle, which can take them back. Messages of other agents stay.
    pub fn return_queued_messages(&mut self) {
        if self.has_queued_messages() {
            let (of_user, others) = std::mem::take(&mut self.unheard)
                .into_iter()
                .partition(|message| message.origin == MessageOrigin::Person);
            self.unheard = others;
            let of_user: VecDeque<IncomingMessage> = of_user;
            let contents = of_user.into_iter().map(|message| message.content);
            self.runtime.inbox.handle.return_unread(contents.collect());
        }
    }

    /// Records late messages without running them, after an interrupt.
    pub fn record_queued_messages(&mut self) -> Result<Option<PromptResult>, AgentError> {
        self.run_queued(true)
    }

    fn run_queued(&mut self, is_given_up: bool) -> Result<Option<PromptResult>, AgentError> {
        let mut last = None;
        while !self.runtime.inbox.handle.is_closed() && self.has_queued_messages() {
            let Some(IncomingMessage { origin, content }) = self.unheard.pop_front() else { break };
            let input = match origin {
                MessageOrigin::Person => RunInput::Prompt(content),
                _ => RunInput::Message(content),
            };
            last = Some(self.work(input, is_given_up)?);
        }
        Ok(last)
    }

    /// Returns whether unread messages are waiting.
    pub fn has_queued_messages(&mut self) -> bool {
        self.unheard.extend(self.run.take_queued_messages());
        while let Ok(signal) = self.runtime.inbox.signals.try_recv() {
            self.keep(signal);
        }
        while let Some(content) = self.runtime.inbox.handle.take_unread() {
            self.unheard.push_back(IncomingMessage { origin: MessageOrigin::Person, content });
        }
        !self.unheard.is_empty()
    }

    /// Returns whether subagents are running and will report.
    pub fn has_running_subagents(&self) -> bool {
        self.runtime.subagents.is_at_work()
    }

    /// Waits until a message arrives or a subagent has ended; false if the user interrupts the wait.
    pub fn wait_for_message(&mut self) -> Result<bool, AgentError> {
        while self.unheard.is_empty() {
            // The runtime holds a handle itself, so the channel does not close.
            let Ok(signal) = self.runtime.inbox.signals.recv() else { return Ok(false) };
            if matches!(signal, AgentSignal::Said(RunInput::Interrupt)) {
                return Ok(false);
            }
            if matches!(signal, AgentSignal::AgentLeft | AgentSignal::Steered) {
                return Ok(true);
            }
            self.keep(signal);
            self.runtime.pending.append_usage(&mut self.session, self.runtime.clock.now())?;
        }
        Ok(true)
    }

    /// Handles a signal while idle.
    fn keep(&mut self, signal: AgentSignal) {
        match self.runtime.handle_signal(signal) {
            Some(RunInput::Prompt(content)) => {
                self.unheard.push_back(IncomingMessage { origin: MessageOrigin::Person, content })
            }
            Some(RunInput::Message(content)) => {
                self.unheard.push_back(IncomingMessage { origin: MessageOrigin::Agent, content })
            }
            // Results of abandoned calls are ignored.
            _ => {}
        }
    }

    /// Records a prompt that was cancelled before it started.
    pub fn record_cancelled_prompt(&mut self, content: Content) -> Result<PromptResult, AgentError> {
        self.work(RunInput::Prompt(content), true)
    }

    /// Handle for other threads.
    pub fn handle(&self) -> AgentHandle {
        self.runtime.inbox.handle.clone()
    }

    /// The shell. End its background commands if the program exits without [`Agent::finish`].
    pub fn shell(&self) -> Arc<Shell> {
        Arc::clone(&self.runtime.tools.shell)
    }

    /// The MCP servers. Stop them if the program exits without [`Agent::finish`].
    pub fn servers(&self) -> Arc<ServerPool> {
        Arc::clone(&self.runtime.mcp.servers)
    }

    /// Subagents and agent definitions.
    pub fn agents(&self) -> SubagentsHandle {
        SubagentsHandle(Arc::clone(&self.runtime.subagents))
    }

    /// Session id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Waits for memory extraction until `limit` or cancellation.
    pub fn wait_for_memories(&mut self, limit: Duration) -> Result<(), AgentError> {
        const POLL_INTERVAL: Duration = Duration::from_millis(50);
        let until = Instant::now() + limit;
        let cancel = self.runtime.inbox.handle.cancel();
        while let Some(extraction) = &self.runtime.background.extraction
            && !extraction.wait(until.min(Instant::now() + POLL_INTERVAL))
            && Instant::now() < until
            && !cancel.is_cancelled()
        {}
        while let Ok(signal) = self.runtime.inbox.signals.try_recv() {
            self.keep(signal);
        }
        self.runtime.pending.append_usage(&mut self.session, self.runtime.clock.now())?;
        Ok(())
    }

    /// Access to the last dream of this session.
    pub fn dream(&self) -> impl Fn() -> Option<DreamTask> + Send + Sync + 'static {
        let task = self.runtime.background.dreams.as_ref().map(DreamScheduler::task);
        move || task.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends all background work and runs the end hooks. Returns the usage since the result of the last prompt.
    pub fn finish(mut self, reason: &str) -> UsageTotals {
        // An earlier interrupt must not cancel the end hooks.
        self.runtime.inbox.handle.renew();
        let cancel = self.runtime.inbox.handle.cancel();
        self.runtime.hooks.session_ended(reason, self.runtime.permissions.mode, &cancel);
        self.runtime.report_notices();
        // Usage that is not in the log is in the background ledger.
        if let Err(error) = self.runtime.background.end_pause(&mut self.session, &mut self.runtime.events) {
            tracing::warn!(%error, "pings are not in the log");
        }
        self.runtime.background.end_suggestion();
        self.runtime.background.end_notes();
        if let Some(remembering) = &mut self.runtime.memory {
            remembering.end();
        }
        self.runtime.background.end_memory_work();
        self.runtime.subagents.end();
        // What ended work has used up to now belongs to the session.
        while let Ok(signal) = self.runtime.inbox.signals.try_recv() {
            self.keep(signal);
        }
        let now = self.runtime.clock.now();
        if let Err(error) = self.runtime.pending.append_usage(&mut self.session, now) {
            tracing::warn!(%error, "usage of background work is not in the log");
        }
        self.runtime.mcp.stop();
        self.runtime.tools.shell.shut_down();
        self.take_spent()
    }
}

impl RunningAgent for Agent<'_> {
    fn handle(&self) -> AgentHandle {
        Agent::handle(self)
    }

    fn prompt(&mut self, content: Content) -> Result<PromptResult, AgentError> {
        Agent::prompt(self, content)
    }

    fn finish(self: Box<Self>, reason: &str) {
        Agent::finish(*self, reason);
    }
}

impl SessionPresence {
    /// Lets others find the session of an agent. A failure is logged only: the session works without it.
    pub fn open(home: &Path, agent: &Agent<'_>, project: &Path) -> Option<SessionPresence> {
        let runtime = &agent.runtime;
        let session = PublishedSession {
            id: &agent.id,
            log: &runtime.project.log,
            agent: runtime.permissions.agent.as_deref(),
            handle: agent.handle(),
            servers: agent.servers(),
            started: runtime.clock.now(),
        };
        SessionPresence::publish(home, &session, project)
    }
}
