//! `pal` on a terminal: the agent runs on a thread of its own, the terminal on this one.

mod agent_thread;
mod permission_prompt;
mod signals;
mod status_program;
mod text_editor;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::mpsc::{Sender, channel};

use pal_report::stored_sessions;
use pal_tui::{NotificationProtocol, TerminalOptions, Theme, UiChannels, UiEvent, run, run_plain};

use crate::arguments::{AgentArgs, SessionArgs};
use crate::failure::Failure;
use crate::settings::Settings;
use crate::slash::{FrontEnd, LiveSessionCell, SlashCommands};
use crate::terminal_style::auto_style;

/// Whether standard input and output are a terminal.
pub(crate) fn is_interactive() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// Reports a crash to the terminal when the agent's thread unwinds.
struct CrashReport {
    event_sender: Sender<UiEvent>,
    live: LiveSessionCell,
}

impl Drop for CrashReport {
    fn drop(&mut self) {
        // After an orderly end the terminal has left and ignores this.
        let why = match self.live.session_id() {
            Some(id) => format!("the agent thread crashed; your session is saved: `pal --resume {id}`"),
            None => String::from("the agent thread crashed before a session was open"),
        };
        let _ = self.event_sender.send(UiEvent::Closed(Some(why)));
    }
}

/// Runs the terminal until the user leaves.
pub(crate) fn run_terminal(args: &AgentArgs, settings: &Settings) -> Result<ExitCode, Failure> {
    let directory = std::env::current_dir().and_then(|directory| directory.canonicalize());
    let directory = directory.map_err(|error| Failure::new(format!("the current directory: {error}")))?;
    // `--resume` without an id: the session is chosen from a list before one is opened.
    let is_chosen = args.session.resume.as_deref() == Some("");
    if is_chosen && !has_sessions(settings, &directory) {
        return Err(Failure::with_hint(
            "this project has no session to resume",
            "`pal sessions --all` lists those of other directories; `pal` starts a new one",
        ));
    }
    let (event_sender, event_receiver) = channel();
    signals::forward(event_sender.clone());
    let (wishes, wished) = channel();
    let live = LiveSessionCell::default();
    // Each project has its own history.
    let project = pal_project::find_project(&directory);
    let project = settings.home.as_ref().map(|home| pal_store::project_directory(home, &project));
    let history = project.map(|project| project.join("prompts.jsonl"));
    let start = TerminalOptions {
        is_colored: auto_style().is_on(),
        theme: Theme::named(&settings.terminal.theme).unwrap_or_default(),
        has_vi_keys: settings.terminal.has_vi_keys,
        edit_text: text_editor::text_editor(settings),
        wake_reader: signals::wake_reader,
        status_command: status_program::status_command(settings, &directory),
        directory: directory.clone(),
        history,
        prompt: args.prompt.clone(),
        command: is_chosen.then(|| String::from("resume")),
        commands: Box::new(SlashCommands::new(
            FrontEnd::Terminal,
            settings.clone(),
            &directory,
            live.clone(),
        )),
        notifications: NotificationProtocol::detect(|name| std::env::var(name).ok()),
        suspend: signals::suspend,
    };
    let resume = args.session.resume.clone().filter(|name| !name.is_empty());
    let first_args = AgentArgs { session: SessionArgs { resume, ..args.session.clone() }, ..args.clone() };
    let left = std::thread::scope(|scope| {
        let crash_report = CrashReport { event_sender: event_sender.clone(), live: live.clone() };
        let worker = scope.spawn(move || {
            let _crash_report = crash_report;
            agent_thread::run(first_args, settings, &live, &wished, &event_sender, is_chosen);
        });
        let run = if args.plain { run_plain } else { run };
        let left = run(start, UiChannels { events: event_receiver, actions: wishes });
        // The agent is stopping; wait until its log is written.
        drop(worker.join());
        left
    });
    match left {
        Ok(None) => Ok(ExitCode::SUCCESS),
        Ok(Some(why)) => Err(Failure::new(why)),
        Err(error) => Err(Failure::new(format!("the terminal: {error}"))),
    }
}

/// True if the project of a directory has a stored session.
fn has_sessions(settings: &Settings, directory: &std::path::Path) -> bool {
    let home = settings.home.as_deref();
    home.is_some_and(|home| !stored_sessions::project_sessions(home, directory).1.is_empty())
}
