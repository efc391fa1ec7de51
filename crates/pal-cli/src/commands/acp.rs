//! `pal acp`: the agent in editors. How agents are made for them is said here; the rest is `pal-acp`'s.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use pal_acp::{Command, Host, KeptSession, Observer, Prepared, Refusal, Wanted, serve};
use pal_agent::{Agent, Event, Post};
use pal_permissions::Mode;

use super::session_rows_of;
use crate::agent::options_at;
use crate::arguments::{Acp, PermissionMode, Print};
use crate::failure::Failure;
use crate::kept;
use crate::leftovers::LeftoverGuard;
use crate::own::{self, Own};
use crate::provider::{has_access, usual_provider};
use crate::session::card;
use crate::settings::{Settings, allowed_file, settings_at};
use crate::telemetry::Export;

pub(crate) fn acp(arguments: &Acp, given: Option<String>, print: &Print) -> Result<ExitCode, Failure> {
    let print = Print {
        model: arguments.model.clone(),
        provider: arguments.provider,
        permission_mode: arguments.permission_mode,
        no_sandbox: arguments.no_sandbox,
        ..print.clone()
    };
    let _guard = LeftoverGuard::begin();
    serve(Arc::new(Editors { given, print })).map_err(|error| Failure::new(error.to_string()))?;
    Ok(ExitCode::SUCCESS)
}

/// Makes agents as the command line does, each with the settings of the directory that it works in.
struct Editors {
    /// What `--settings` says.
    given: Option<String>,
    print: Print,
}

impl Editors {
    fn settings(&self, directory: Option<&Path>, print: &Print) -> Result<Settings, Failure> {
        let directory = directory.map(Path::to_owned).or_else(|| std::env::current_dir().ok());
        settings_at(directory, self.given.clone(), print.settings())
    }

    fn prepared(&self, wanted: &Wanted) -> Result<Prepared, Failure> {
        let mut print = Print {
            model: wanted.model.clone().or_else(|| self.print.model.clone()),
            permission_mode: wanted.mode.map(permission_mode).or(self.print.permission_mode),
            added: wanted.added.clone(),
            ..self.print.clone()
        };
        let settings = self.settings(Some(&wanted.directory), &print)?;
        for warning in &settings.warnings {
            eprintln!("pal: {warning}");
        }
        print.resume = wanted.session.as_deref().map(|id| log(id, &settings)).transpose()?;
        let mut options = options_at(&wanted.directory, &print, &settings)?;
        // The flags of this program do not say how to start another one in the directory of a session.
        options.teammates = None;
        // Near over far: what the editor describes counts more than what is set.
        let is_named = |name: &str| wanted.servers.iter().any(|server| server.name == name);
        options.serving.servers.retain(|server| !is_named(&server.name));
        if !settings.switches.is_off(pal_settings::Switch::Mcp) {
            options.serving.servers.extend(wanted.servers.iter().cloned());
        }
        let own = own::found(&settings, &wanted.directory);
        let watcher = Watcher {
            export: Some(Export::begin(&settings)),
            post: None,
            home: options.home.clone(),
            directory: wanted.directory.clone(),
        };
        Ok(Prepared {
            commands: own.into_iter().map(command).collect(),
            models: models(&print, &settings),
            allowed: settings.home.as_deref().map(|home| allowed_file(home, &wanted.directory)),
            observer: Box::new(watcher),
            options,
        })
    }
}

impl Host for Editors {
    fn prepare(&self, wanted: &Wanted) -> Result<Prepared, Refusal> {
        self.prepared(wanted).map_err(|failure| refusal(&failure))
    }

    fn kept(&self, directory: Option<&Path>) -> Result<Vec<KeptSession>, Refusal> {
        let settings = self.settings(directory, &self.print);
        let rows = settings.and_then(|settings| session_rows_of(directory, &settings));
        let rows = rows.map_err(|failure| refusal(&failure))?.into_iter();
        let kept = rows.filter_map(|row| {
            let active = row.active.to_string();
            Some(KeptSession { id: row.id, directory: row.directory?, title: Some(row.title), active })
        });
        Ok(kept.collect())
    }

    fn version(&self) -> String {
        env!("CARGO_PKG_VERSION").to_owned()
    }
}

/// The log of a session that is kept, by its whole id: an editor must not get another one than it names.
fn log(id: &str, settings: &Settings) -> Result<String, Failure> {
    let sessions = settings.home.as_deref().map_or(Vec::new(), kept::all);
    let found = sessions.into_iter().find(|kept| kept.id == id);
    let found = found.ok_or_else(|| {
        Failure::with_hint(
            format!("no session {id} is kept here"),
            "`pal sessions --all` lists those that are",
        )
    })?;
    Ok(found.log.display().to_string())
}

/// The models that can be asked with the keys that are there.
fn models(print: &Print, settings: &Settings) -> Vec<String> {
    let is_there = |name: &&str| {
        let provider = print.provider.unwrap_or_else(|| usual_provider(&card(settings, name)));
        has_access(provider, settings)
    };
    settings.cards.names().filter(is_there).map(str::to_owned).collect()
}

fn command(own: Own) -> Command {
    let (name, about, arguments) = (own.name.clone(), own.about.clone(), own.arguments.clone());
    Command { name, about, arguments, prompt: Box::new(move |arguments| own.prompt(arguments)) }
}

fn permission_mode(mode: Mode) -> PermissionMode {
    match mode {
        Mode::Default => PermissionMode::Default,
        Mode::AcceptEdits => PermissionMode::AcceptEdits,
        Mode::Plan => PermissionMode::Plan,
        Mode::Bypass => PermissionMode::Bypass,
    }
}

fn refusal(failure: &Failure) -> Refusal {
    match failure {
        Failure::Said { what, hint } => Refusal { what: what.clone(), hint: hint.clone() },
        Failure::WrongUse { what, hint } => Refusal { what: what.clone(), hint: Some(hint.clone()) },
        Failure::ReaderLeft => Refusal::new("nobody reads the output"),
    }
}

/// Counts for the collector, and lets other processes find the session.
struct Watcher {
    export: Option<Export>,
    post: Option<Post>,
    home: PathBuf,
    directory: PathBuf,
}

impl Observer for Watcher {
    fn opened(&mut self, agent: &Agent<'_>) {
        self.post = Post::open(&self.home, agent, &self.directory);
    }

    fn event(&mut self, event: &Event) -> Option<String> {
        let export = self.export.as_mut()?;
        export.event(event);
        export.trouble()
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.post = None;
        if let Some(export) = self.export.take() {
            export.finish();
        }
    }
}
