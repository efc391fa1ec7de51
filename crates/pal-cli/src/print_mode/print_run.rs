//! A run of `pal -p`: starts the agent, gives it prompts and slash commands, and shows what happens.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use pal_agent::{Agent, AgentError, AgentHandle, AgentOptions, SessionPresence};
use pal_events::{AgentEvent, PromptEnd, PromptResult};
use pal_model::{Content, UsageTotals};
use pal_tui::SlashOutcome;

use super::interrupts::interrupt_on_signals;
use super::output_format::Show;
use super::stdin_prompts::{PromptProgress, RunStep, read_stdin};
use crate::agent::options;
use crate::arguments::{AgentArgs, ColorArg};
use crate::failure::Failure;
use crate::notices::Notices;
use crate::settings::Settings;
use crate::slash::{self, FrontEnd, LiveSessionCell, SessionReply, SlashCommands, SlashSession};
use crate::telemetry::TelemetryExport;

/// The prompts of a run.
pub(crate) enum PromptSource {
    /// One prompt.
    Prompt(String),
    /// Messages on standard input until it closes.
    Stdin,
}

/// Runs the agent on prompts and shows every event. The exit code follows from the last [`PromptResult`] that was shown.
pub(crate) fn run_prompts(
    source: &PromptSource,
    args: &AgentArgs,
    settings: &Settings,
    show: &mut dyn Show,
) -> Result<(), Failure> {
    let options = options(args, settings, &Notices::to_stderr())?;
    let show = RefCell::new(show);
    let failed = RefCell::new(None);
    let handle: RefCell<Option<AgentHandle>> = RefCell::new(None);
    let export = RefCell::new(TelemetryExport::begin(settings));
    // The first output error interrupts the agent: its work would cost money and reach no reader.
    let show_event = |event: &AgentEvent| {
        if failed.borrow().is_none()
            && let Err(failure) = show.borrow_mut().event(event)
        {
            *failed.borrow_mut() = Some(failure);
            if let Some(handle) = &*handle.borrow() {
                handle.interrupt();
            }
        }
    };
    let sink = Box::new(|event: AgentEvent| {
        export.borrow_mut().event(&event);
        // Before the event, since nothing follows the last one.
        if let Some(trouble) = export.borrow_mut().trouble() {
            show_event(&AgentEvent::Notice(trouble));
        }
        show_event(&event);
    });
    let run = PrintRun { settings, show: &show, failed: &failed, handle: &handle };
    let outcome = run.run(source, options, sink);
    export.into_inner().finish(&Notices::to_stderr());
    outcome
}

/// A run under way, and what it shares with the event sink.
struct PrintRun<'r, 's> {
    settings: &'r Settings,
    show: &'r RefCell<&'s mut dyn Show>,
    /// First failure to show something.
    failed: &'r RefCell<Option<Failure>>,
    handle: &'r RefCell<Option<AgentHandle>>,
}

impl PrintRun<'_, '_> {
    fn run<'a>(
        &self,
        source: &PromptSource,
        options: AgentOptions,
        sink: Box<dyn FnMut(AgentEvent) + 'a>,
    ) -> Result<(), Failure> {
        let (home, project) = (options.home.clone(), options.sources.search.directory.clone());
        let mut agent = Agent::start(options, sink).map_err(|error| agent_failure(&error))?;
        let presence = SessionPresence::open(&home, &agent, &project);
        *self.handle.borrow_mut() = Some(agent.handle());
        let live = LiveSessionCell::default();
        live.set(&agent);
        let commands = SlashCommands::new(FrontEnd::Print, self.settings.clone(), &project, live);
        let (sender, steps) = mpsc::channel();
        let progress = Arc::new(PromptProgress::default());
        interrupt_on_signals(
            agent.handle(),
            (agent.shell(), agent.servers()),
            Arc::clone(&progress),
            sender.clone(),
        );
        match source {
            PromptSource::Prompt(prompt) => {
                let prompt = RunStep::Prompt { number: 1, content: Content::from_text(prompt) };
                // The receiver is in this function.
                let _ = sender.send(prompt).and_then(|()| sender.send(RunStep::End));
            }
            PromptSource::Stdin => read_stdin(agent.handle(), &progress, sender),
        }
        let mut outcome = Ok(());
        for step in steps {
            match step {
                RunStep::End => break,
                RunStep::BadLine { number, why } => {
                    let shown = self.show.borrow_mut().bad_line(number, &why);
                    self.note_failure(shown);
                }
                RunStep::Prompt { number, content } => {
                    progress.set_working(true);
                    outcome = self.step(&mut agent, &commands, progress.is_given_up(number), content);
                    progress.set_working(false);
                }
            }
            if outcome.is_err() || self.failed.borrow().is_some() {
                break;
            }
        }
        drop(presence);
        if outcome.is_ok() && self.failed.borrow().is_none() {
            let limit: Duration = self.settings.memory.wait_at_exit;
            outcome = agent.wait_for_memories(limit).map_err(|error| agent_failure(&error));
        }
        let background = agent.finish("other");
        if background.responses > 0 {
            let shown = self.show.borrow_mut().background(&background);
            self.note_failure(shown);
        }
        match self.failed.borrow_mut().take() {
            Some(failure) => Err(failure),
            None => outcome,
        }
    }

    fn note_failure(&self, shown: Result<(), Failure>) {
        if let Err(failure) = shown {
            self.failed.borrow_mut().get_or_insert(failure);
        }
    }

    /// Works on a prompt or a slash command, then on messages that arrived too late for it.
    fn step(
        &self,
        agent: &mut Agent<'_>,
        commands: &SlashCommands,
        is_given_up: bool,
        content: Content,
    ) -> Result<(), Failure> {
        let Some(content) = self.expand(agent, commands, content) else { return Ok(()) };
        let ended = if is_given_up { agent.record_cancelled_prompt(content) } else { agent.prompt(content) };
        ended.and_then(|_| work_on_messages(agent)).map_err(|error| agent_failure(&error))
    }

    /// Runs a slash command. Returns the prompt to work on; none if the command has done its work.
    fn expand(&self, agent: &mut Agent<'_>, commands: &SlashCommands, content: Content) -> Option<Content> {
        let text = only_text(&content);
        let Some((name, arguments)) = text.as_deref().and_then(slash::parse_line) else {
            return Some(content);
        };
        let log = pal_store::log_path(agent.session().directory());
        let printed = match commands.run(name, arguments, Some(&log)) {
            SlashOutcome::Unknown | SlashOutcome::Pick { .. } | SlashOutcome::Leave => return Some(content),
            SlashOutcome::Prompt(prompt) => return Some(Content::from_text(&prompt)),
            SlashOutcome::Print(text) => Ok(text),
            SlashOutcome::Notes(lines) => Ok(lines.join("\n")),
            SlashOutcome::Failed(why) => Err(why),
            SlashOutcome::NeedsSession => {
                let mut session = PrintSession { agent, settings: self.settings };
                match slash::run_on_session(&mut session, name, arguments) {
                    Ok(SessionReply::Prompt(content)) => return Some(content),
                    Ok(SessionReply::Printed(text)) => Ok(text),
                    Err(failure) => Err(failure.message()),
                }
            }
        };
        let shown = self.show.borrow_mut().event(&AgentEvent::Ended(command_end(printed)));
        self.note_failure(shown);
        None
    }
}

/// The session of a run, for slash commands.
struct PrintSession<'s, 'a> {
    agent: &'s mut Agent<'a>,
    settings: &'s Settings,
}

impl<'a> SlashSession<'a> for PrintSession<'_, 'a> {
    fn agent(&mut self) -> Result<&mut Agent<'a>, Failure> {
        Ok(&mut *self.agent)
    }

    fn settings(&self) -> &Settings {
        self.settings
    }

    fn color(&self) -> ColorArg {
        ColorArg::Never
    }

    fn log(&self) -> Option<PathBuf> {
        Some(pal_store::log_path(self.agent.session().directory()))
    }

    fn reopen(
        &mut self,
        _log: Option<PathBuf>,
        _is_fork: bool,
        _model: Option<String>,
    ) -> Result<(), Failure> {
        Err(Failure::new("this command needs the terminal; run `pal` to use it"))
    }

    fn fill_prompt(&mut self, _text: String) {}
}

/// The text of a prompt that is nothing but text.
fn only_text(content: &Content) -> Option<String> {
    match content.blocks() {
        [block] => block.string("text").map(|text| text.to_string()),
        _ => None,
    }
}

/// The end of a slash command that printed a text, or failed, without asking the model.
fn command_end(printed: Result<String, String>) -> PromptResult {
    let (end, text) = match printed {
        Ok(text) => (PromptEnd::Done, text),
        Err(why) => (PromptEnd::Failed(why), String::new()),
    };
    PromptResult {
        end,
        text,
        turns: 0,
        took: Duration::ZERO,
        took_provider: Duration::ZERO,
        spent: UsageTotals::default(),
        denials: Vec::new(),
    }
}

/// Works on late messages, and waits for subagents that still run: no other process waits for them.
fn work_on_messages(agent: &mut Agent<'_>) -> Result<(), AgentError> {
    loop {
        agent.run_queued_messages()?;
        // A subagent that has just ended has sent its message before.
        if !agent.has_running_subagents() {
            return agent.run_queued_messages().map(|_| ());
        }
        if !agent.wait_for_message()? {
            return Ok(());
        }
    }
}

fn agent_failure(error: &AgentError) -> Failure {
    Failure::new(error.to_string())
}
