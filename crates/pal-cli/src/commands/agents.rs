//! `pal agents`: lists the running sessions. `pal send`: sends a message to one of them.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use pal_agent::{SendError, SendReceipt, SessionPresence};
use pal_mailbox::{AgentName, Presence, list_presences};
use pal_model::IdSource;
use serde_json::{Value, json};

use crate::arguments::{AgentsArgs, SendArgs};
use crate::failure::Failure;
use crate::notices::print_notice;
use crate::open_session::{now, random_seed};
use crate::settings::Settings;

pub(crate) fn agents(
    arguments: &AgentsArgs,
    settings: &Settings,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    let running = running(settings)?;
    if arguments.json {
        let rows: Vec<Value> = running.iter().map(row).collect();
        writeln!(out, "{}", Value::from(rows))?;
        return Ok(ExitCode::SUCCESS);
    }
    if running.is_empty() {
        writeln!(out, "No sessions are running.")?;
    }
    for presence in &running {
        let since = (now().milliseconds() - presence.started.milliseconds()).max(0) / 1_000;
        writeln!(
            out,
            "{}  {}  for {} min  process {}",
            presence.name,
            presence.doing,
            since / 60,
            presence.process.pid
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn send(
    arguments: &SendArgs,
    settings: &Settings,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    let from: AgentName = name(&arguments.from)?;
    let mut ids = IdSource::seeded(random_seed());
    let said = pal_agent::send(home(settings)?, &from, &arguments.to, &arguments.text, (&mut ids, now()));
    let said = said.map_err(|error| match error {
        SendError::Unreadable(why) => Failure::new(why),
        SendError::NotOne(names) => Failure::with_hint(
            format!("`{}` does not name exactly one running session", arguments.to),
            match names.iter().map(AgentName::as_str).collect::<Vec<_>>().as_slice() {
                [] => String::from("no session is running; start one with `pal` or `pal -p`"),
                names => format!("running sessions: {}", names.join(", ")),
            },
        ),
    })?;
    let mut code = ExitCode::SUCCESS;
    for SendReceipt { to, outcome } in said {
        match outcome {
            Ok(()) => writeln!(out, "sent to {to}")?,
            Err(error) => {
                print_notice(error);
                code = ExitCode::from(crate::exit_codes::ERROR);
            }
        }
    }
    Ok(code)
}

fn running(settings: &Settings) -> Result<Vec<Presence>, Failure> {
    list_presences(&SessionPresence::directory(home(settings)?))
        .map_err(|error| Failure::new(error.to_string()))
}

fn home(settings: &Settings) -> Result<&Path, Failure> {
    settings.home.as_deref().ok_or_else(|| {
        Failure::with_hint(
            "no home directory is known",
            "set HOME, or set PAL_HOME to the directory for pal's files",
        )
    })
}

fn name(text: &str) -> Result<AgentName, Failure> {
    text.parse().map_err(|error: pal_mailbox::AgentNameError| Failure::new(error.to_string()))
}

fn row(presence: &Presence) -> Value {
    json!({
        "name": presence.name.as_str(), "session": presence.session.as_str(), "process": presence.process.pid,
        "socket": presence.socket, "started_ms": presence.started.milliseconds(), "doing": presence.doing,
    })
}
