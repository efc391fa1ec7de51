//! Slash commands: one registry for the terminal, for editors (ACP) and for `pal -p`.
//!
//! A built-in command is a row of `registry::COMMANDS`; its `run` calls a function of `view_commands` or
//! `session_commands`. Markdown files of the user and prompts of MCP servers are commands, too.

mod arguments;
mod live_session;
mod mcp_prompts;
mod pages;
mod registry;
mod session_choices;
mod session_commands;
mod user_commands;
mod view_commands;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use pal_agent::Agent;
use pal_model::Content;
use pal_report::sanitize;
use pal_tools::SkillInfo;
use pal_tui::{CommandHandler, CommandInfo, SlashOutcome};

use crate::arguments::ColorArg;
use crate::failure::Failure;
use crate::notices::Notices;
use crate::settings::Settings;
use live_session::LiveSession;
pub(crate) use live_session::LiveSessionCell;
use registry::COMMANDS;
use user_commands::UserCommand;

/// A built-in slash command.
pub(crate) struct SlashCommand {
    /// Name without the slash.
    name: &'static str,
    /// Other names that run it; they are not listed.
    aliases: &'static [&'static str],
    /// Arguments, as `/help` shows them.
    arguments: &'static str,
    /// One line for lists.
    help: &'static str,
    /// Where it can be run.
    scope: SlashScope,
    run: SlashRun,
}

/// Front ends that offer a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SlashScope {
    /// The terminal, editors and `pal -p`.
    Everywhere,
    /// The terminal only: it opens another session, fills the prompt or leaves.
    Terminal,
}

/// Function of a command that answers at once, even while the agent works.
type NowFn = fn(&SlashContext<'_>, &str) -> SlashOutcome;

/// Function of a command that needs the idle agent; returns the text to print.
type SessionFn = for<'s, 'a> fn(&'s mut (dyn SlashSession<'a> + 's), &str) -> Result<String, Failure>;

/// The function or functions of a command.
enum SlashRun {
    Now(NowFn),
    Session(SessionFn),
    /// The first answers, or returns [`SlashOutcome::NeedsSession`] to leave it to the second.
    NowOrSession(NowFn, SessionFn),
}

/// Inputs of a command that answers at once.
struct SlashContext<'a> {
    command: &'static SlashCommand,
    commands: &'a SlashCommands,
    settings: &'a Settings,
    /// Log of the open session.
    log: Option<&'a Path>,
}

/// The session that a command works on, on the agent's thread.
pub(crate) trait SlashSession<'a> {
    /// The idle agent; opens the session if it is not open yet.
    fn agent(&mut self) -> Result<&mut Agent<'a>, Failure>;

    /// Settings of the session's directory.
    fn settings(&self) -> &Settings;

    /// Use of colors in printed text.
    fn color(&self) -> ColorArg;

    /// Log of the open session.
    fn log(&self) -> Option<PathBuf>;

    /// Continues with another session (none: a new one) or a fork of it, or another model. On failure the session stays open.
    /// A front end that cannot do so keeps this function, and says why with [`SlashSession::fixed_session_reason`].
    fn reopen(
        &mut self,
        _log: Option<PathBuf>,
        _is_fork: bool,
        _model: Option<String>,
    ) -> Result<(), Failure> {
        Err(Failure::new(self.fixed_session_reason()))
    }

    /// Why the front end keeps its session and model.
    fn fixed_session_reason(&self) -> &'static str {
        "this command needs the terminal; run `pal` to use it"
    }

    /// Puts a text into the prompt line, to be edited and sent again, where there is one.
    fn fill_prompt(&mut self, _text: String) {}

    /// Shows one line to the user.
    fn notice(&mut self, text: &str);
}

/// Result of a command that ran on the session.
pub(crate) enum SessionReply {
    /// Text to print; may be empty.
    Printed(String),
    /// A prompt to work on.
    Prompt(Content),
}

/// The front end that runs commands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FrontEnd {
    Terminal,
    Editor,
    Print,
}

/// All commands of a session: built in, of the user, and of MCP servers.
pub(crate) struct SlashCommands {
    settings: Settings,
    user_commands: Vec<UserCommand>,
    skills: Vec<SkillInfo>,
    directory: PathBuf,
    live: LiveSessionCell,
    front_end: FrontEnd,
}

impl SlashCommands {
    /// Finds the commands for sessions in a directory.
    pub(crate) fn new(
        front_end: FrontEnd,
        settings: Settings,
        directory: &Path,
        live: LiveSessionCell,
    ) -> SlashCommands {
        let user_commands = user_commands::find_commands(&settings, directory);
        let skills = user_commands::find_skills(&settings, directory);
        SlashCommands { settings, user_commands, skills, directory: directory.to_owned(), live, front_end }
    }

    /// Lists the commands that this front end offers, built-in ones first.
    pub(crate) fn list(&self) -> Vec<CommandInfo> {
        let info = |command: &SlashCommand| CommandInfo {
            name: command.name.to_owned(),
            arguments: command.arguments.to_owned(),
            about: command.help.to_owned(),
        };
        let built_in = COMMANDS.iter().filter(|command| self.offers(command)).map(info);
        let of_servers = self.live.get().map_or(Vec::new(), |live| mcp_prompts::list(&live.servers));
        let skills =
            self.skills.iter().filter(|skill| !self.is_command(&skill.name)).map(|skill| CommandInfo {
                name: skill.name.clone(),
                arguments: String::new(),
                about: skill.description.clone(),
            });
        let own = self.user_commands.iter().map(UserCommand::info);
        built_in.chain(own).chain(skills).chain(of_servers).collect()
    }

    /// Whether a command is a prompt of the user, which takes any arguments.
    pub(crate) fn is_user_command(&self, name: &str) -> bool {
        self.user_commands.iter().any(|command| command.name == name)
            || self.skills.iter().any(|skill| skill.name == name)
    }

    /// Whether a command has this name, which a skill of the same name does not replace.
    fn is_command(&self, name: &str) -> bool {
        find(name).is_some() || self.user_commands.iter().any(|command| command.name == name)
    }

    fn offers(&self, command: &SlashCommand) -> bool {
        command.scope == SlashScope::Everywhere || self.front_end == FrontEnd::Terminal
    }

    /// Runs a command as far as it needs no idle agent; [`SlashOutcome::NeedsSession`] asks for
    /// [`run_on_session`].
    pub(crate) fn run(&self, name: &str, arguments: &str, log: Option<&Path>) -> SlashOutcome {
        if let Some(command) = find(name) {
            if !self.offers(command) {
                return SlashOutcome::Failed(format!(
                    "/{name} is a command of the terminal; run `pal` to use it"
                ));
            }
            let context = SlashContext { command, commands: self, settings: &self.settings, log };
            return match command.run {
                SlashRun::Now(run) | SlashRun::NowOrSession(run, _) => run(&context, arguments),
                SlashRun::Session(_) => SlashOutcome::NeedsSession,
            };
        }
        if let Some(command) = self.user_commands.iter().find(|command| command.name == name) {
            return match command.needs_session() {
                true => SlashOutcome::NeedsSession,
                false => SlashOutcome::Prompt(command.fill_in(arguments)),
            };
        }
        if self.skills.iter().any(|skill| skill.name == name)
            && let Some(prompt) =
                user_commands::skill_prompt(&self.settings, &self.directory, name, arguments)
        {
            return SlashOutcome::Prompt(prompt);
        }
        match self.live.get().and_then(|live| mcp_prompts::find(&live.servers, name)) {
            Some(prompt) => match mcp_prompts::arguments(&prompt, arguments) {
                Ok(_) => SlashOutcome::NeedsSession,
                Err(why) => SlashOutcome::Failed(format!("/{name}: {why}")),
            },
            None => SlashOutcome::Unknown,
        }
    }

    fn color(&self) -> ColorArg {
        match self.front_end {
            FrontEnd::Terminal => ColorArg::Auto,
            FrontEnd::Editor | FrontEnd::Print => ColorArg::Never,
        }
    }
}

impl CommandHandler for SlashCommands {
    fn list(&self) -> Vec<CommandInfo> {
        SlashCommands::list(self)
    }

    fn run(&mut self, name: &str, arguments: &str, log: Option<&Path>) -> SlashOutcome {
        SlashCommands::run(self, name, arguments, log)
    }
}

/// Runs a command that needs the idle agent.
pub(crate) fn run_on_session<'a>(
    session: &mut dyn SlashSession<'a>,
    name: &str,
    arguments: &str,
) -> Result<SessionReply, Failure> {
    match find(name).map(|command| &command.run) {
        Some(SlashRun::Session(run) | SlashRun::NowOrSession(_, run)) => {
            run(session, arguments).map(SessionReply::Printed)
        }
        Some(SlashRun::Now(_)) => Ok(SessionReply::Printed(String::new())),
        None => {
            if let Some(reply) = run_user_command(session, name, arguments)? {
                return Ok(reply);
            }
            let agent = session.agent()?;
            let prompt = mcp_prompts::find(&agent.servers(), name)
                .ok_or_else(|| Failure::new(format!("unknown command /{name}; /help lists all commands")))?;
            let arguments = mcp_prompts::arguments(&prompt, arguments).map_err(Failure::new)?;
            let content = agent.prompt_of_server(&prompt.server, &prompt.name, &arguments);
            content.map(SessionReply::Prompt).map_err(|error| Failure::new(error.to_string()))
        }
    }
}

/// Runs a command of the user whose prompt is made with the tools of the session; none if there is none of this name.
fn run_user_command<'a>(
    session: &mut dyn SlashSession<'a>,
    name: &str,
    arguments: &str,
) -> Result<Option<SessionReply>, Failure> {
    let directory = std::env::current_dir().and_then(|directory| directory.canonicalize());
    let directory = directory.map_err(|error| Failure::new(format!("the current directory: {error}")))?;
    let commands = user_commands::find_commands(session.settings(), &directory);
    let Some(command) = commands.into_iter().find(|command| command.name == name) else { return Ok(None) };
    let is_trusted = session.settings().project.is_trusted;
    if let Some(model) = &command.model {
        let log = session.log();
        // The prompt is worth more than its model.
        if let Err(failure) = session.reopen(log, false, Some(model.clone())) {
            session.notice(&format!("/{name}: the model stays: {}", failure.message()));
        }
    }
    let (prompt, notices) = command.expand(session.agent()?, arguments, is_trusted).map_err(Failure::new)?;
    notices.iter().for_each(|notice| session.notice(notice));
    Ok(Some(SessionReply::Prompt(Content::from_text(&prompt))))
}

/// Splits a typed line into a command's name and its arguments; none if it does not start with a slash.
pub(crate) fn parse_line(line: &str) -> Option<(&str, &str)> {
    let words = line.trim().strip_prefix('/')?;
    let (name, arguments) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
    Some((name, arguments.trim()))
}

fn find(name: &str) -> Option<&'static SlashCommand> {
    COMMANDS.iter().find(|command| command.name == name || command.aliases.contains(&name))
}

impl SlashContext<'_> {
    /// Runs a function of the command line and returns what it prints, after its notices.
    fn print(
        &self,
        write: impl FnOnce(&Notices, &mut dyn Write) -> Result<ExitCode, Failure>,
    ) -> SlashOutcome {
        let (notices, mut out) = (Notices::collected(), Vec::new());
        match write(&notices, &mut out) {
            Ok(_) => SlashOutcome::Print(with_notices(notices, &String::from_utf8_lossy(&out))),
            Err(failure) => SlashOutcome::Failed(failure.message()),
        }
    }

    /// The open session's log as an argument.
    fn session(&self) -> Result<String, SlashOutcome> {
        self.log.map(|log| log.display().to_string()).ok_or_else(no_session)
    }

    fn live(&self) -> Result<LiveSession, SlashOutcome> {
        self.commands.live.get().ok_or_else(no_session)
    }

    fn color(&self) -> ColorArg {
        self.commands.color()
    }

    /// Error for arguments that the command does not take.
    fn usage(&self, problem: &str) -> SlashOutcome {
        let SlashCommand { name, arguments, .. } = self.command;
        SlashOutcome::Failed(format!("{problem}; usage: {}", format!("/{name} {arguments}").trim_end()))
    }
}

/// Puts collected notices before a text, a line each.
fn with_notices(notices: Notices, text: &str) -> String {
    let lines = notices.into_lines().into_iter().map(|line| format!("{}\n", sanitize(&line)));
    lines.chain([text.to_owned()]).collect()
}

fn no_session() -> SlashOutcome {
    SlashOutcome::Failed(String::from("no session is open yet; send a prompt first"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_aliases_are_unique() {
        let mut names: Vec<&str> =
            COMMANDS.iter().flat_map(|command| [&[command.name], command.aliases].concat()).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn a_line_with_a_slash_is_a_command() {
        assert_eq!(parse_line(" /pin  keep this "), Some(("pin", "keep this")));
        assert_eq!(parse_line("/help"), Some(("help", "")));
        assert_eq!(parse_line("help"), None);
    }
}
