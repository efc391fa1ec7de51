//! `pal acp`: creates agents and slash commands for editors; `pal-acp` speaks the protocol.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use pal_acp::{
    AgentHost, CommandReply, EditorCommand, EditorCommands, EventObserver, HostError, ListedSession,
    SessionRequest, SessionSetup, serve,
};
use pal_agent::{Agent, SessionPresence};
use pal_events::AgentEvent;
use pal_model::Content;
use pal_permissions::PermissionMode;
use pal_report::stored_sessions;
use pal_tui::{CommandInfo, SlashOutcome};

use crate::agent::options_at;
use crate::arguments::{
    AcpArgs, AgentArgs, ColorArg, ModelArgs, PermissionArgs, PermissionModeArg, SessionArgs,
};
use crate::commands::session_rows_of;
use crate::failure::Failure;
use crate::leftover_processes::LeftoverGuard;
use crate::loaded_session::card;
use crate::notices::{Notices, print_notice};
use crate::provider::{has_access, usual_provider};
use crate::settings::{Settings, TypedSettings, allowed_file, settings_at};
use crate::slash::{FrontEnd, LiveSessionCell, SessionReply, SlashCommands, SlashSession, run_on_session};
use crate::telemetry::TelemetryExport;

/// Serves an editor until it disconnects.
pub(crate) fn run(arguments: &AcpArgs, typed: TypedSettings, args: &AgentArgs) -> Result<ExitCode, Failure> {
    let args = AgentArgs {
        model: ModelArgs {
            model: arguments.model.clone(),
            provider: arguments.provider,
            ..args.model.clone()
        },
        permissions: PermissionArgs {
            permission_mode: arguments.permission_mode,
            no_sandbox: arguments.no_sandbox,
            ..args.permissions.clone()
        },
        ..args.clone()
    };
    let _guard = LeftoverGuard::begin();
    let host = EditorHost { typed, args };
    serve(Arc::new(host)).map_err(|error| Failure::new(error.to_string()))?;
    Ok(ExitCode::SUCCESS)
}

/// Creates agents like the command line, each with the settings of its directory.
struct EditorHost {
    /// Settings of the command line, except those of flags that a session may change.
    typed: TypedSettings,
    args: AgentArgs,
}

impl EditorHost {
    fn settings(&self, directory: Option<&Path>, args: &AgentArgs) -> Result<Settings, Failure> {
        let directory = directory.map(Path::to_owned).or_else(|| std::env::current_dir().ok());
        settings_at(directory, TypedSettings { flags: args.settings(), ..self.typed.clone() })
    }

    fn prepare_session(&self, wanted: &SessionRequest) -> Result<SessionSetup, Failure> {
        let mut args = AgentArgs {
            model: ModelArgs {
                model: wanted.model.clone().or_else(|| self.args.model.model.clone()),
                ..self.args.model.clone()
            },
            permissions: PermissionArgs {
                permission_mode: wanted.mode.map(permission_mode).or(self.args.permissions.permission_mode),
                added: wanted.additional_directories.clone(),
                ..self.args.permissions.clone()
            },
            ..self.args.clone()
        };
        let settings = self.settings(Some(&wanted.directory), &args)?;
        settings.warnings.iter().for_each(print_notice);
        let resume = wanted.session.as_deref().map(|id| find_log(id, &settings)).transpose()?;
        args.session = SessionArgs { resume, ..args.session };
        let mut options = options_at(&wanted.directory, &args, &settings, &Notices::to_stderr())?;
        // The flags of this process do not fit the directories of its sessions.
        options.subagent.teammate_command = None;
        // An editor sends mentioned files itself.
        options.prompt.attaches_mentions = false;
        // Servers of the editor override those of the settings.
        let is_named = |name: &str| wanted.servers.iter().any(|server| server.name == name);
        options.mcp.servers.retain(|server| !is_named(&server.name));
        if !settings.switches.is_off(pal_settings::KillSwitch::Mcp) {
            options.mcp.servers.extend(wanted.servers.iter().cloned());
        }
        let live = LiveSessionCell::default();
        let observer = SessionObserver {
            export: Some(TelemetryExport::begin(&settings)),
            presence: None,
            live: live.clone(),
            home: options.home.clone(),
            directory: wanted.directory.clone(),
        };
        let commands = SlashCommands::new(FrontEnd::Editor, settings.clone(), &wanted.directory, live);
        Ok(SessionSetup {
            models: models(&args, &settings),
            permissions_file: settings.home.as_deref().map(|home| allowed_file(home, &wanted.directory)),
            commands: Box::new(EditorSlashCommands { commands, settings }),
            observer: Box::new(observer),
            options,
        })
    }
}

impl AgentHost for EditorHost {
    fn prepare(&self, wanted: &SessionRequest) -> Result<SessionSetup, HostError> {
        self.prepare_session(wanted).map_err(|failure| refusal(&failure))
    }

    fn list_sessions(&self, directory: Option<&Path>) -> Result<Vec<ListedSession>, HostError> {
        let settings = self.settings(directory, &self.args);
        let rows = settings.and_then(|settings| session_rows_of(directory, &settings));
        let rows = rows.map_err(|failure| refusal(&failure))?.into_iter();
        let kept = rows.filter_map(|row| {
            let active = row.active.to_string();
            Some(ListedSession {
                id: row.id,
                directory: row.directory?,
                title: Some(row.title),
                updated_at: active,
            })
        });
        Ok(kept.collect())
    }

    fn version(&self) -> String {
        env!("CARGO_PKG_VERSION").to_owned()
    }
}

/// The registry of slash commands for a session of an editor.
struct EditorSlashCommands {
    commands: SlashCommands,
    settings: Settings,
}

impl EditorCommands for EditorSlashCommands {
    fn list(&self) -> Vec<EditorCommand> {
        let command = |info: CommandInfo| {
            let takes_any = info.arguments.is_empty() && self.commands.is_user_command(&info.name);
            let arguments = if takes_any { String::from("arguments") } else { info.arguments };
            EditorCommand { name: info.name, about: info.about, arguments }
        };
        self.commands.list().into_iter().map(command).collect()
    }

    fn run(&mut self, name: &str, arguments: &str, agent: &mut Agent<'static>) -> CommandReply {
        let log = pal_store::log_path(agent.session().directory());
        match self.commands.run(name, arguments, Some(&log)) {
            SlashOutcome::Unknown | SlashOutcome::Pick { .. } | SlashOutcome::Leave => CommandReply::Unknown,
            SlashOutcome::Print(text) | SlashOutcome::Restyle { text, .. } => CommandReply::Text(text),
            SlashOutcome::Notes(lines) => CommandReply::Text(lines.join("\n")),
            SlashOutcome::Prompt(prompt) => CommandReply::Prompt(Content::from_text(&prompt)),
            SlashOutcome::Failed(why) => CommandReply::Failed(why),
            SlashOutcome::NeedsSession => {
                let mut session = EditorSession { agent, settings: &self.settings };
                match run_on_session(&mut session, name, arguments) {
                    Ok(SessionReply::Printed(text)) => CommandReply::Text(text),
                    Ok(SessionReply::Prompt(content)) => CommandReply::Prompt(content),
                    Err(failure) => CommandReply::Failed(failure.message()),
                }
            }
        }
    }
}

/// The session of an editor, for slash commands.
struct EditorSession<'s> {
    agent: &'s mut Agent<'static>,
    settings: &'s Settings,
}

impl SlashSession<'static> for EditorSession<'_> {
    fn agent(&mut self) -> Result<&mut Agent<'static>, Failure> {
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

    fn fixed_session_reason(&self) -> &'static str {
        "sessions and models are chosen in the editor"
    }

    // Editors have no place for it: a refused file is missing from the prompt, and the model says so.
    fn notice(&mut self, _text: &str) {}
}

/// Finds the log of a session by its whole id: an editor must not get another session than it names.
fn find_log(id: &str, settings: &Settings) -> Result<String, Failure> {
    let sessions = settings.home.as_deref().map_or(Vec::new(), stored_sessions::list_sessions);
    let found = sessions.into_iter().find(|session| session.id == id);
    let found = found.ok_or_else(|| {
        Failure::with_hint(format!("no session has the id `{id}`"), "`pal sessions --all` lists all sessions")
    })?;
    Ok(found.log.display().to_string())
}

/// Models that the available API keys give access to.
fn models(args: &AgentArgs, settings: &Settings) -> Vec<String> {
    let is_available = |name: &&str| {
        let provider = || usual_provider(&card(settings, name, &Notices::to_stderr()));
        has_access(args.model.provider.unwrap_or_else(provider), settings)
    };
    settings.cards.names().filter(is_available).map(str::to_owned).collect()
}

fn permission_mode(mode: PermissionMode) -> PermissionModeArg {
    match mode {
        PermissionMode::Default => PermissionModeArg::Default,
        PermissionMode::AcceptEdits => PermissionModeArg::AcceptEdits,
        PermissionMode::Plan => PermissionModeArg::Plan,
        PermissionMode::Bypass => PermissionModeArg::Bypass,
    }
}

fn refusal(failure: &Failure) -> HostError {
    match failure {
        Failure::Error { what, hint } => HostError { what: what.clone(), hint: hint.clone() },
        Failure::Usage { what, hint } => HostError { what: what.clone(), hint: Some(hint.clone()) },
        Failure::OutputClosed => HostError::new("the output is closed"),
    }
}

/// Exports metrics of a session, and makes it reachable for other processes.
struct SessionObserver {
    export: Option<TelemetryExport>,
    presence: Option<SessionPresence>,
    live: LiveSessionCell,
    home: PathBuf,
    directory: PathBuf,
}

impl EventObserver for SessionObserver {
    fn opened(&mut self, agent: &Agent<'_>) {
        self.presence = SessionPresence::open(&self.home, agent, &self.directory);
        self.live.set(agent);
    }

    fn event(&mut self, event: &AgentEvent) -> Option<String> {
        let export = self.export.as_mut()?;
        export.event(event);
        export.trouble()
    }
}

impl Drop for SessionObserver {
    fn drop(&mut self) {
        self.presence = None;
        if let Some(export) = self.export.take() {
            export.finish(&Notices::to_stderr());
        }
    }
}
