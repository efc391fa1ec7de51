//! The agent's thread of the terminal: opens sessions, works on prompts and runs commands that need the idle agent.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use pal_agent::{Agent, AgentError, CacheLifetime, SessionPresence};
use pal_events::{AgentEvent, PromptEnd};
use pal_model::{Content, EntryBody, LogEntry, MessageOrigin, UsageBasis};
use pal_tui::{ActiveSession, CacheClock, ColdTurnAnswer, UiEvent, UserAction};

use super::permission_prompt::permission_prompt;
use crate::agent::options;
use crate::arguments::{AgentArgs, ColorArg, ModelArgs, SessionArgs};
use crate::failure::Failure;
use crate::notices::Notices;
use crate::settings::{Settings, allowed_file};
use crate::slash::{LiveSessionCell, SessionReply, SlashSession, run_on_session};
use crate::telemetry::TelemetryExport;

/// Earlier messages that are shown of a resumed session.
const EARLIER_MESSAGES: usize = 12;

/// Serves the user's actions until the terminal leaves. If a session is to be chosen first, none is opened before the first
/// action.
pub(super) fn run(
    args: AgentArgs,
    settings: &Settings,
    live: &LiveSessionCell,
    wishes: &Receiver<UserAction>,
    events: &Sender<UiEvent>,
    is_chosen: bool,
) {
    let export = Rc::new(RefCell::new(TelemetryExport::begin(settings)));
    let mut thread = AgentThread {
        args,
        settings,
        live,
        events,
        export: Rc::clone(&export),
        agent: None,
        presence: None,
        shown: None,
    };
    let left = if is_chosen { Ok(()) } else { thread.open() };
    let left = left.and_then(|()| thread.serve(wishes));
    if let Some(agent) = thread.agent.take() {
        agent.finish("prompt_input_exit");
    }
    drop(thread);
    if let Ok(export) = Rc::try_unwrap(export) {
        let notices = Notices::collected();
        export.into_inner().finish(&notices);
        send_notices(events, notices);
    }
    // The terminal runs until it receives this.
    let _ = events.send(UiEvent::Closed(left.err().map(|failure| failure.message())));
}

struct AgentThread<'a> {
    args: AgentArgs,
    settings: &'a Settings,
    live: &'a LiveSessionCell,
    events: &'a Sender<UiEvent>,
    export: Rc<RefCell<TelemetryExport>>,
    agent: Option<Agent<'static>>,
    /// Lets other processes send messages to the session.
    presence: Option<SessionPresence>,
    /// Log of the session whose messages are on the screen.
    shown: Option<PathBuf>,
}

impl AgentThread<'_> {
    fn serve(&mut self, wishes: &Receiver<UserAction>) -> Result<(), Failure> {
        while let Some(wish) = self.next_action(wishes)? {
            match wish {
                UserAction::Leave => return Ok(()),
                UserAction::Prompt(content) => self.prompt(Some(content))?,
                UserAction::RunQueuedMessages => self.prompt(None)?,
                UserAction::Command { name, arguments } => self.command(&name, &arguments)?,
                UserAction::RunShell(command) => self.run_shell(&command)?,
            }
            self.send_context_size();
            self.send_event(UiEvent::ActionDone);
        }
        Ok(())
    }

    /// Waits for the next action of the user; none once the terminal has gone. In a long pause, the conversation may be
    /// compacted meanwhile.
    fn next_action(&mut self, wishes: &Receiver<UserAction>) -> Result<Option<UserAction>, Failure> {
        loop {
            let Some(time) = self.agent.as_ref().and_then(Agent::until_idle_compaction) else {
                return Ok(wishes.recv().ok());
            };
            match wishes.recv_timeout(time) {
                Ok(wish) => return Ok(Some(wish)),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if let Some(agent) = &mut self.agent {
                agent.compact_if_idle().map_err(|error| failure(&error))?;
                self.send_context_size();
            }
        }
    }

    fn send_event(&self, events: UiEvent) {
        // The terminal may have gone.
        let _ = self.events.send(events);
    }

    /// Reports the size that `/context` shows, too.
    fn send_context_size(&self) {
        if let Some(agent) = &self.agent {
            self.send_event(UiEvent::ContextMeasured(agent.session().view().size().tokens));
            self.send_event(UiEvent::CacheMeasured(agent.cache_lifetime().map(cache_clock)));
        }
    }

    /// Runs a shell command of the user.
    fn run_shell(&mut self, command: &str) -> Result<(), Failure> {
        let events = Mutex::new(self.events.clone());
        let progress = |text: &str| {
            let events = events.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = events.send(UiEvent::ShellPrinted(text.to_owned()));
        };
        let output = self.agent()?.run_user_command(command, &progress).map_err(|error| failure(&error))?;
        self.send_event(UiEvent::ShellEnded { text: output.text, is_error: output.is_error });
        Ok(())
    }

    /// Opens the session that the arguments name, or starts one.
    fn open(&mut self) -> Result<(), Failure> {
        if let Some(agent) = self.agent.take() {
            agent.finish("other");
        }
        let project = self.settings.home.as_deref().zip(std::env::current_dir().ok());
        let allowed = project.map(|(home, directory)| allowed_file(home, &directory));
        let notices = Notices::collected();
        let options = options(&self.args, self.settings, &notices);
        send_notices(self.events, notices);
        let mut options = options?;
        options.permissions.asker = Some(permission_prompt(self.events.clone(), allowed));
        let limits = options.model.limits;
        let (home, directory) = (options.home.clone(), options.sources.search.directory.clone());
        self.presence = None;
        let (events, export) = (self.events.clone(), Rc::clone(&self.export));
        let sink = Box::new(move |event: AgentEvent| {
            export.borrow_mut().event(&event);
            if let Some(trouble) = export.borrow_mut().trouble() {
                let _ = events.send(UiEvent::Event(AgentEvent::Notice(trouble)));
            }
            let _ = events.send(UiEvent::Event(event));
        });
        let agent = Agent::start(options, sink).map_err(|error| failure(&error))?;
        self.presence = SessionPresence::open(&home, &agent, &directory);
        let called = self.events.clone();
        agent.handle().on_message(move || {
            let _ = called.send(UiEvent::MessageReceived);
        });
        let suggested = self.events.clone();
        agent.handle().on_suggestion(move |text| {
            let _ = suggested.send(UiEvent::PromptSuggested(text));
        });
        let kept = self.events.clone();
        agent.handle().on_keepalive(move || {
            let _ = kept.send(UiEvent::CacheKept);
        });
        self.live.set(&agent);
        let live = self.live.clone();
        let view = agent.session().view();
        let log = pal_store::log_path(agent.session().directory());
        let is_shown = self.shown.as_ref() == Some(&log);
        self.send_event(UiEvent::SessionReady(Box::new(ActiveSession {
            handle: Box::new(agent.handle()),
            log: log.clone(),
            tokens: view.size().tokens,
            compaction_tokens: limits.auto_compact.unwrap_or(limits.effective),
            window: limits.window,
            cost: view.state().totals.cost,
            is_simulated: has_simulated_response(view.branch()),
            recent_entries: if is_shown { Vec::new() } else { earlier_messages(view.branch()) },
            background: Box::new(move || live.background_tasks()),
        })));
        self.send_event(UiEvent::CacheMeasured(agent.cache_lifetime().map(cache_clock)));
        self.agent = Some(agent);
        self.shown = Some(log);
        Ok(())
    }

    /// Works on a prompt, then on messages that arrived too late for it.
    fn prompt(&mut self, content: Option<Content>) -> Result<(), Failure> {
        if let Some(content) = &content
            && !self.confirm_price(content)?
        {
            return Ok(());
        }
        let agent = self.agent()?;
        if let Some(content) = content {
            let ended = agent.prompt(content).map_err(|error| failure(&error))?;
            // The user decides what becomes of the messages that wait.
            if ended.end == PromptEnd::Interrupted {
                agent.return_queued_messages();
                return Ok(());
            }
        }
        agent.run_queued_messages().map_err(|error| failure(&error))?;
        Ok(())
    }

    /// Asks about a prompt that exceeds the budget of the day or goes into an expired cache, and compacts the conversation first if the user
    /// wants that. Returns whether the prompt is to be sent.
    fn confirm_price(&mut self, content: &Content) -> Result<bool, Failure> {
        if let Some(question) = self.agent()?.budget_question() {
            let (sender, answer) = channel();
            self.send_event(UiEvent::BudgetAsked(question, sender));
            match answer.recv() {
                Ok(ColdTurnAnswer::Send) => self.agent()?.lift_day_budget(),
                _ => return Ok(false),
            }
        }
        let Some(turn) = self.agent()?.cold_turn().map_err(|error| failure(&error))? else { return Ok(true) };
        let (sender, answer) = channel();
        self.send_event(UiEvent::ColdTurnAsked(turn.line(), sender));
        match answer.recv() {
            Ok(ColdTurnAnswer::Send) => Ok(true),
            Ok(ColdTurnAnswer::CompactFirst) => match self.agent()?.compact(None) {
                Ok(()) => Ok(true),
                Err(error) => {
                    self.send_event(UiEvent::Failed(format!("the prompt was not sent: {error}")));
                    let texts: Vec<_> =
                        content.blocks().iter().filter_map(|block| block.string("text")).collect();
                    self.send_event(UiEvent::FillPrompt(texts.join("\n")));
                    Ok(false)
                }
            },
            Ok(ColdTurnAnswer::Edit) | Err(_) => Ok(false),
        }
    }

    /// Runs a command and reports its errors; only an error of a prompt ends the program.
    fn command(&mut self, name: &str, arguments: &str) -> Result<(), Failure> {
        match run_on_session(self, name, arguments) {
            Ok(SessionReply::Prompt(content)) => self.prompt(Some(content))?,
            Ok(SessionReply::Printed(text)) if text.is_empty() => {}
            Ok(SessionReply::Printed(text)) => self.send_event(UiEvent::CommandPrinted(text)),
            Err(failure) => self.send_event(UiEvent::Failed(failure.message())),
        }
        Ok(())
    }
}

impl SlashSession<'static> for AgentThread<'_> {
    fn agent(&mut self) -> Result<&mut Agent<'static>, Failure> {
        if self.agent.is_none() {
            self.open()?;
        }
        self.agent.as_mut().ok_or_else(|| Failure::new("no session is open"))
    }

    fn settings(&self) -> &Settings {
        self.settings
    }

    fn color(&self) -> ColorArg {
        ColorArg::Auto
    }

    fn log(&self) -> Option<PathBuf> {
        self.agent.as_ref().map(|agent| pal_store::log_path(agent.session().directory()))
    }

    fn reopen(&mut self, log: Option<PathBuf>, is_fork: bool, model: Option<String>) -> Result<(), Failure> {
        let before = self.args.clone();
        let open_log = self.log();
        let model = model.or_else(|| before.model.model.clone());
        self.args = AgentArgs {
            session: SessionArgs {
                resume: log.map(|log| log.display().to_string()),
                is_continued: false,
                fork_session: is_fork,
                session_id: None,
                directory: None,
            },
            model: ModelArgs { model, ..before.model.clone() },
            ..before.clone()
        };
        let Err(failure) = self.open() else {
            if let Some(agent) = self.agent.as_ref().filter(|_| is_fork) {
                let line = format!("the first prompt of this fork {}", agent.fork_price().line());
                self.send_event(UiEvent::Event(AgentEvent::Notice(line)));
            }
            return Ok(());
        };
        let resume = open_log.map(|log| log.display().to_string());
        // The open session may be a fork itself: opening it again must not fork it again.
        let session = SessionArgs { resume, fork_session: false, session_id: None, ..before.session.clone() };
        self.args = AgentArgs { session, ..before };
        self.open()?;
        Err(failure)
    }

    fn fill_prompt(&mut self, text: String) {
        self.send_event(UiEvent::FillPrompt(text));
    }

    fn notice(&mut self, text: &str) {
        self.send_event(UiEvent::Event(AgentEvent::Notice(text.to_owned())));
    }
}

fn cache_clock(life: CacheLifetime) -> CacheClock {
    CacheClock { expires: Instant::now() + life.left, ttl: life.ttl }
}

fn send_notices(events: &Sender<UiEvent>, notices: Notices) {
    for line in notices.into_lines() {
        let _ = events.send(UiEvent::Event(AgentEvent::Notice(line)));
    }
}

/// True if a simulator answered in a session, so that its cost is not spent.
fn has_simulated_response(branch: &[LogEntry]) -> bool {
    branch.iter().any(|entry| match &entry.body {
        EntryBody::Response(response) => response.usage.basis == UsageBasis::Simulated,
        _ => false,
    })
}

/// The last messages of a branch, in order.
fn earlier_messages(branch: &[LogEntry]) -> Vec<LogEntry> {
    let is_shown = |entry: &&LogEntry| match &entry.body {
        EntryBody::User(user) => user.origin == MessageOrigin::Person,
        EntryBody::Assistant(_) => true,
        _ => false,
    };
    let mut entries: Vec<LogEntry> =
        branch.iter().rev().filter(is_shown).take(EARLIER_MESSAGES).cloned().collect();
    entries.reverse();
    entries
}

fn failure(error: &AgentError) -> Failure {
    Failure::new(error.to_string())
}
