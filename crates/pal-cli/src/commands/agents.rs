//! `pal agents`: the sessions that run. `pal send`: a message to one of them.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use pal_messages::{Draft, Name, Presence, Socket, list};
use pal_model::IdSource;
use serde_json::{Value, json};

use crate::agent::post::directory;
use crate::arguments::{Agents, Send};
use crate::aside;
use crate::failure::Failure;
use crate::settings::Settings;
use crate::stored::{chance, now};

/// How long a session may take to acknowledge a message.
const PATIENCE: Duration = Duration::from_secs(5);

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
    let running = running(settings)?;
    let from: Name = name(&arguments.from)?;
    let wanted: Vec<&Presence> = match arguments.to.as_str() {
        "*" => running.iter().collect(),
        to => match running.iter().find(|presence| presence.name.as_str() == to) {
            Some(exact) => vec![exact],
            None => running.iter().filter(|presence| presence.name.as_str().starts_with(to)).collect(),
        },
    };
    if wanted.is_empty() || (arguments.to != "*" && wanted.len() > 1) {
        let among = if wanted.is_empty() { running.iter().collect() } else { wanted };
        let names: Vec<&str> = among.iter().map(|presence| presence.name.as_str()).collect();
        return Err(Failure::with_hint(
            format!("`{}` is not the name of one session that runs", arguments.to),
            if names.is_empty() {
                String::from("no session runs; `pal` and `pal -p` begin one")
            } else {
                format!("these run: {}", names.join(", "))
            },
        ));
    }
    let mut ids = IdSource::seeded(chance());
    let mut code = ExitCode::SUCCESS;
    for presence in wanted {
        let draft = Draft::text(from.clone(), presence.name.clone(), "", &arguments.text);
        let message =
            draft.seal(ids.next_id(now()).into(), now()).map_err(|error| Failure::new(error.to_string()))?;
        let Some(socket) = &presence.socket else { continue };
        match Socket::post(socket, &message, PATIENCE) {
            Ok(()) => writeln!(out, "said to {}", presence.name)?,
            Err(error) => {
                aside::tell(error);
                code = ExitCode::FAILURE;
            }
        }
    }
    Ok(code)
}

fn running(settings: &Settings) -> Result<Vec<Presence>, Failure> {
    let home: &PathBuf = settings.home.as_ref().ok_or_else(|| {
        Failure::with_hint("no home is known", "set HOME, or PAL_HOME to where pal keeps its files")
    })?;
    list(&directory(home)).map_err(|error| Failure::new(error.to_string()))
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
