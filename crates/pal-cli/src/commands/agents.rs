//! `pal agents`: the sessions that run. `pal send`: a message to one of them.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use pal_agent::{Post, SendError, Sent};
use pal_messages::{Name, Presence, list};
use pal_model::IdSource;
use serde_json::{Value, json};

use crate::arguments::{Agents, Send};
use crate::aside;
use crate::failure::Failure;
use crate::settings::Settings;
use crate::stored::{chance, now};

pub(crate) fn agents(
    arguments: &Agents,
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
        writeln!(out, "No session runs.")?;
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

pub(crate) fn send(arguments: &Send, settings: &Settings, out: &mut dyn Write) -> Result<ExitCode, Failure> {
    let from: Name = name(&arguments.from)?;
    let mut ids = IdSource::seeded(chance());
    let said = pal_agent::send(home(settings)?, &from, &arguments.to, &arguments.text, (&mut ids, now()));
    let said = said.map_err(|error| match error {
        SendError::Unreadable(why) => Failure::new(why),
        SendError::NotOne(names) => Failure::with_hint(
            format!("`{}` is not the name of one session that runs", arguments.to),
            match names.iter().map(Name::as_str).collect::<Vec<_>>().as_slice() {
                [] => String::from("no session runs; `pal` and `pal -p` begin one"),
                names => format!("these run: {}", names.join(", ")),
            },
        ),
    })?;
    let mut code = ExitCode::SUCCESS;
    for Sent { to, outcome } in said {
        match outcome {
            Ok(()) => writeln!(out, "said to {to}")?,
            Err(error) => {
                aside::tell(error);
                code = ExitCode::FAILURE;
            }
        }
    }
    Ok(code)
}

fn running(settings: &Settings) -> Result<Vec<Presence>, Failure> {
    list(&Post::directory(home(settings)?)).map_err(|error| Failure::new(error.to_string()))
}

fn home(settings: &Settings) -> Result<&Path, Failure> {
    settings.home.as_deref().ok_or_else(|| {
        Failure::with_hint("no home is known", "set HOME, or PAL_HOME to where pal keeps its files")
    })
}

fn name(text: &str) -> Result<Name, Failure> {
    text.parse().map_err(|error: pal_messages::NameError| Failure::new(error.to_string()))
}

fn row(presence: &Presence) -> Value {
    json!({
        "name": presence.name.as_str(), "session": presence.session.as_str(), "process": presence.process.pid,
        "socket": presence.socket, "started_ms": presence.started.milliseconds(), "doing": presence.doing,
    })
}
