//! `pal mcp`: serves memory and recall to other agents, and changes the servers of the settings.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use pal_agent::{SendError, SendReceipt};
use pal_mailbox::AgentName;
use pal_mcp::server::MemoryService;
use pal_memory::MemoryLocation;
use pal_model::IdSource;
use pal_project::find_project;
use pal_recall::project_and_session;

use super::mcp_configuration;
use crate::arguments::{McpArgs, McpCommand};
use crate::failure::Failure;
use crate::notices::Notices;
use crate::open_session::{now, random_seed};
use crate::session_start::with_embeddings;
use crate::settings::Settings;
use pal_report::stored_sessions;

/// Sender of messages from the command line.
const COMMAND_LINE: &str = "command-line";

pub(crate) fn mcp(
    arguments: &McpArgs,
    settings: &Settings,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    match &arguments.command {
        None => serve(arguments, settings),
        Some(McpCommand::Add(arguments)) => mcp_configuration::add(arguments, out),
        Some(McpCommand::List(arguments)) => mcp_configuration::list(arguments, settings, out),
        Some(McpCommand::Remove(arguments)) => mcp_configuration::remove(arguments, settings, out),
        Some(McpCommand::Restart(arguments)) => restart(&arguments.name, settings, out),
    }
}

/// Restarts a server in the running sessions that have it.
fn restart(name: &str, settings: &Settings, out: &mut dyn Write) -> Result<ExitCode, Failure> {
    let from: AgentName = COMMAND_LINE.parse().map_err(|error| Failure::new(format!("{error}")))?;
    let mut ids = IdSource::seeded(random_seed());
    let receipts = pal_agent::restart_server(home_of(settings)?, &from, name, (&mut ids, now()));
    let receipts = receipts.map_err(|error| match error {
        SendError::Unreadable(why) => Failure::new(why),
        SendError::NotOne(_) => Failure::new("no session is running"),
    })?;
    let restarting = receipts.iter().filter(|receipt| receipt.outcome.is_ok());
    let count = restarting.clone().count();
    for SendReceipt { to, .. } in restarting {
        writeln!(out, "{name} is restarting in {to}")?;
    }
    if count > 0 {
        return Ok(ExitCode::SUCCESS);
    }
    let (what, hint) = match receipts.as_slice() {
        [] => (
            String::from("no session is running, so no MCP server runs"),
            String::from("servers start with a session: `pal`; `pal mcp list` lists them"),
        ),
        receipts => {
            let why = |SendReceipt { to, outcome }: &SendReceipt| {
                format!("{to}: {}", outcome.as_ref().err().map_or("", String::as_str))
            };
            let sessions: Vec<String> = receipts.iter().map(why).collect();
            (
                format!("no running session restarts the MCP server {name} ({})", sessions.join("; ")),
                String::from("`pal mcp list` lists the servers of this directory, /mcp those of a session"),
            )
        }
    };
    Err(Failure::with_hint(what, hint))
}

fn home_of(settings: &Settings) -> Result<&Path, Failure> {
    settings.home.as_deref().ok_or_else(|| {
        Failure::with_hint(
            "no home directory is known",
            "set HOME, or set PAL_HOME to the directory for pal's files",
        )
    })
}

fn serve(arguments: &McpArgs, settings: &Settings) -> Result<ExitCode, Failure> {
    let home = home_of(settings)?;
    let directory = match &arguments.project {
        Some(given) => given.canonicalize().map_err(|error| Failure::of_file(given, &error))?,
        None => std::env::current_dir().map_err(|error| Failure::of_file(Path::new("."), &error))?,
    };
    let project = find_project(&directory);
    let (_, sessions) = stored_sessions::project_sessions(home, &directory);
    let mut projects: BTreeSet<PathBuf> =
        sessions.iter().filter_map(|kept| Some(project_and_session(&kept.log)?.0)).collect();
    // The project may not have a session yet.
    projects.insert(pal_store::project_directory(home, &project));
    let offer = MemoryService {
        memory: with_embeddings(MemoryLocation::of_project(home, &project), settings, &Notices::to_stderr()),
        projects: projects.into_iter().collect(),
        is_read_only: arguments.read_only,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    pal_mcp::server::serve_stdio(offer).map_err(|why| {
        Failure::with_hint(
            why,
            "other agents start this server; `pal mcp --help` shows how to configure them",
        )
    })?;
    Ok(ExitCode::SUCCESS)
}
