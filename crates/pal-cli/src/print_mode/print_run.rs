//! A run of `pal -p`: starts the agent, gives it prompts and slash commands, and shows what happens.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use pal_agent::{Agent, AgentError, AgentOptions, SessionPresence};
use pal_events::{AgentEvent, PromptEnd, PromptResult};
use pal_model::{Content, UsageTotals};
use pal_permissions::PermissionMode;
use pal_report::sanitize;
use pal_tui::SlashOutcome;

use super::control_channel::ControlChannel;
use super::control_requests::RequestHandler;
use super::host_setup::{HostReplyFacts, HostSetup, connect_host, output_schema};
use super::interrupts::interrupt_on_signals;
use super::output_format::Show;
use super::program_permissions::{DRIVING_PROGRAM, ask_driving_program, ask_permission_tool};
use super::run_step::{PromptProgress, RunStep};
use super::stdin_prompts::read_stdin;
use super::stream_input::{InputLine, InputMessage, read_messages};
use crate::agent::options;
use crate::arguments::{AgentArgs, ColorArg};
use crate::failure::Failure;
use crate::notices::{Notices, print_notice};
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
    let control = ControlChannel::on_stdout();
    let mut input = InputLines::open(source);
    let setup = input.take_setup();
    let args = setup.as_ref().map_or_else(|| args.clone(), |setup| setup.arguments(args));
    let show = RefCell::new(show);
    if setup.is_some() {
        show.borrow_mut().set_driven();
    }
    let export = RefCell::new(TelemetryExport::begin(settings));
    let (failed, live) = (RefCell::new(None), LiveSessionCell::default());
    let run =
        PrintRun { settings, show: &show, failed: &failed, export: &export, live: &live, control: &control };
    let outcome = run.run(source, input, &args, setup.as_ref());
    if let (Some(setup), Err(failure)) = (&setup, &outcome)
        && live.session_id().is_none()
    {
        control.respond(&setup.request_id, Err(failure.message()));
    }
    control.close();
    export.into_inner().finish(&Notices::to_stderr());
    outcome
}

/// Lines of standard input, and the first of them: it decides about the options of the session.
struct InputLines {
    first: Option<InputLine>,
    rest: Option<mpsc::Receiver<InputLine>>,
}

impl InputLines {
    /// Waits for the first line of standard input, if prompts come from there.
    fn open(source: &PromptSource) -> InputLines {
        match source {
            PromptSource::Prompt(_) => InputLines { first: None, rest: None },
            PromptSource::Stdin => {
                let rest = read_messages(std::io::BufReader::new(std::io::stdin()));
                InputLines { first: rest.recv().ok(), rest: Some(rest) }
            }
        }
    }

    /// Takes the first line if it is the `initialize` request of a driving program.
    fn take_setup(&mut self) -> Option<HostSetup> {
        let first = self.first.take()?;
        match first.message {
            Ok(InputMessage::Request { id, subtype, request }) if subtype == "initialize" => {
                Some(HostSetup::new(id, request))
            }
            message => {
                self.first = Some(InputLine { message, ..first });
                None
            }
        }
    }
}

/// A run under way, and what it shares with the event sink.
struct PrintRun<'r, 's> {
    settings: &'r Settings,
    show: &'r RefCell<&'s mut dyn Show>,
    /// First failure to show something.
    failed: &'r RefCell<Option<Failure>>,
    export: &'r RefCell<TelemetryExport>,
    live: &'r LiveSessionCell,
    control: &'r Arc<ControlChannel>,
}

impl<'r, 's: 'r> PrintRun<'r, 's> {
    fn run(
        &self,
        source: &PromptSource,
        input: InputLines,
        args: &AgentArgs,
        setup: Option<&HostSetup>,
    ) -> Result<(), Failure> {
        let options = self.options(args, setup)?;
        let (home, project) = (options.home.clone(), options.sources.search.directory.clone());
        let commands =
            SlashCommands::new(FrontEnd::Print, self.settings.clone(), &project, self.live.clone());
        let names = commands.list().into_iter().map(|command| command.name).collect();
        self.show.borrow_mut().set_commands(names);
        let may_bypass = options.permissions.mode == PermissionMode::Bypass;
        let (sender, steps) = mpsc::channel();
        let progress = Arc::new(PromptProgress::default());
        interrupt_on_signals(
            self.live.clone(),
            Arc::clone(self.control),
            Arc::clone(&progress),
            sender.clone(),
        );
        match (source, input.rest) {
            (PromptSource::Prompt(prompt), _) => {
                let prompt = RunStep::Prompt { number: 1, content: Content::from_text(prompt) };
                // The receiver is in this function.
                let _ = sender.send(prompt).and_then(|()| sender.send(RunStep::End));
            }
            (PromptSource::Stdin, rest) => {
                let (control, live) = (Arc::clone(self.control), self.live.clone());
                let requests = RequestHandler { control, live, steps: sender, may_bypass };
                let lines = input.first.into_iter().chain(rest.into_iter().flatten());
                read_stdin(lines, &progress, requests);
            }
        }
        // The input is read already: the servers of a driving program answer while the agent starts.
        let mut agent = self.start(options)?;
        let mut presence = SessionPresence::open(&home, &agent, &project);
        if let Some(setup) = setup {
            self.control.respond(&setup.request_id, Ok(setup.reply(&commands, &reply_facts(&agent))));
        }
        let mut outcome = Ok(());
        for step in steps {
            match step {
                RunStep::End => break,
                RunStep::BadLine { number, why } => {
                    let shown = self.show.borrow_mut().bad_line(number, &why);
                    self.note_failure(shown);
                }
                RunStep::SetModel(model) => {
                    drop(presence.take());
                    agent = self.reopen(agent, args, setup, model)?;
                    presence = SessionPresence::open(&home, &agent, &project);
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
        self.finish(agent);
        match self.failed.borrow_mut().take() {
            Some(failure) => Err(failure),
            None => outcome,
        }
    }

    /// Options of the session, with what the driving program adds.
    fn options(&self, args: &AgentArgs, setup: Option<&HostSetup>) -> Result<AgentOptions, Failure> {
        let mut options = options(args, self.settings, &Notices::to_stderr())?;
        connect_host(&mut options, self.control);
        if let Some(schema) = &args.output.json_schema {
            options.tools.output_schema = Some(output_schema(schema, "--json-schema")?);
        }
        // A program that answers permission questions has a person to ask.
        options.background.pauses.is_person_driving =
            args.permissions.permission_prompt_tool.as_deref() == Some(DRIVING_PROGRAM);
        let asker = match args.permissions.permission_prompt_tool.as_deref() {
            None => None,
            Some(DRIVING_PROGRAM) => Some(ask_driving_program(self.control, self.live)),
            Some(tool) => Some(ask_permission_tool(tool, self.live)),
        };
        options.permissions.is_asking_program = asker.is_some();
        options.permissions.asker = asker;
        if let Some(setup) = setup {
            for notice in setup.apply(&mut options, self.control)? {
                let shown = self.show.borrow_mut().event(&AgentEvent::Notice(notice));
                self.note_failure(shown);
            }
        }
        Ok(options)
    }

    /// Starts the agent; its events are shown and exported.
    fn start(&self, options: AgentOptions) -> Result<Agent<'r>, Failure> {
        let (show, failed, export, live) = (self.show, self.failed, self.export, self.live);
        // The first output error interrupts the agent: its work would cost money and reach no reader.
        let show_event = move |event: &AgentEvent| {
            if failed.borrow().is_none()
                && let Err(failure) = show.borrow_mut().event(event)
            {
                *failed.borrow_mut() = Some(failure);
                live.interrupt();
            }
        };
        let sink = Box::new(move |event: AgentEvent| {
            export.borrow_mut().event(&event);
            // Before the event, since nothing follows the last one.
            if let Some(trouble) = export.borrow_mut().trouble() {
                show_event(&AgentEvent::Notice(trouble));
            }
            show_event(&event);
        });
        let agent = Agent::start(options, sink).map_err(|error| agent_failure(&error))?;
        live.set(&agent);
        Ok(agent)
    }

    /// Continues the session with another model. If that fails, the session goes on with the model it had.
    fn reopen(
        &self,
        agent: Agent<'r>,
        args: &AgentArgs,
        setup: Option<&HostSetup>,
        model: Option<String>,
    ) -> Result<Agent<'r>, Failure> {
        let log = pal_store::log_path(agent.session().directory());
        let before = agent.session().view().lens().card.model.to_string();
        self.finish(agent);
        let with = |model: Option<String>| {
            let mut args = args.clone();
            args.session.resume = Some(log.display().to_string());
            (args.session.is_continued, args.session.fork_session, args.session.session_id) =
                (false, false, None);
            (args.model.system_prompt, args.model.append_system_prompt) = (None, None);
            args.model.model = model;
            self.options(&args, setup).and_then(|options| self.start(options))
        };
        let model = model.or_else(|| self.settings.model.as_ref().map(ToString::to_string));
        let model = model.unwrap_or_else(|| String::from(pal_settings::DEFAULT_MODEL));
        with(Some(model)).or_else(|failure| {
            let warning = format!("the model stays {before}: {}", failure.message());
            let shown = self.show.borrow_mut().event(&AgentEvent::Warning(warning));
            self.note_failure(shown);
            with(Some(before))
        })
    }

    /// Ends an agent and shows the usage of its background work.
    fn finish(&self, agent: Agent<'_>) {
        let background = agent.finish("other");
        if background.responses > 0 {
            let shown = self.show.borrow_mut().background(&background);
            self.note_failure(shown);
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
            SlashOutcome::Print(text) | SlashOutcome::Restyle { text, .. } => Ok(text),
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

    fn notice(&mut self, text: &str) {
        print_notice(sanitize(text));
    }
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
        structured_output: None,
    }
}

/// Facts of an open session for the driving program.
fn reply_facts(agent: &Agent<'_>) -> HostReplyFacts {
    HostReplyFacts {
        model: agent.session().view().lens().card.model.to_string(),
        agents: agent.agents().known().into_iter().map(|agent| agent.name).collect(),
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
