//! `pal rm`: moves sessions to the trash, and restores them.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use pal_recall::project_and_session;
use pal_report::{SessionDigest, clip_line, format_age, format_bytes};
use pal_store::{TrashedSession, list_trash, remove_session, restore_session};
use serde_json::json;

use crate::arguments::RmArgs;
use crate::failure::Failure;
use crate::open_session::now;
use crate::session_lookup::find;
use crate::settings::Settings;
use crate::terminal_style::columns;

/// Characters of an id that are shown.
const ID_CHARACTERS: usize = 13;

pub(crate) fn rm(arguments: &RmArgs, settings: &Settings, out: &mut dyn Write) -> Result<ExitCode, Failure> {
    let Some(home) = settings.home.as_deref() else {
        return Err(Failure::with_hint(
            "no home directory is known",
            "set HOME, or set PAL_HOME to the directory for pal's files",
        ));
    };
    if arguments.list {
        return list(arguments, home, settings, out);
    }
    if arguments.undo {
        return restore(arguments, home, out);
    }
    // All names are checked before anything is moved.
    let sessions = arguments
        .sessions
        .iter()
        .map(|name| stored_session(name, settings))
        .collect::<Result<Vec<_>, Failure>>()?;
    for session in &sessions {
        let removed = remove_session(home, session, now()).map_err(|error| {
            Failure::with_hint(error.to_string(), "end that session first, then remove it")
        })?;
        if arguments.json {
            writeln!(out, "{}", object(&removed))?;
        } else {
            writeln!(out, "Removed {0}; `pal rm --undo {0}` restores it.", short(&removed.id))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Directory of a stored session; files elsewhere are not removed.
fn stored_session(name: &str, settings: &Settings) -> Result<std::path::PathBuf, Failure> {
    let log = find(name, settings)?;
    let log = log.canonicalize().map_err(|error| Failure::of_file(&log, &error))?;
    let home = settings.home.as_deref().and_then(|home| home.canonicalize().ok());
    let is_session = home.is_some_and(|home| log.starts_with(home.join("projects")))
        && project_and_session(&log)
            .is_some_and(|(project, id)| log == pal_store::log_path(&project.join("sessions").join(id)));
    match log.parent().filter(|_| is_session) {
        Some(session) => Ok(session.to_owned()),
        None => Err(Failure::with_hint(
            format!("{}: not a session that pal stores", log.display()),
            "`pal sessions --all` lists the sessions; delete other files with `rm`",
        )),
    }
}

fn restore(arguments: &RmArgs, home: &Path, out: &mut dyn Write) -> Result<ExitCode, Failure> {
    let trash = list_trash(home);
    let mut chosen: Vec<&TrashedSession> = Vec::new();
    for name in &arguments.sessions {
        let found: Vec<&TrashedSession> =
            trash.iter().filter(|kept| kept.id.starts_with(name.as_str())).collect();
        match found.as_slice() {
            [] => {
                return Err(Failure::with_hint(
                    format!("no session in the trash has an id that starts with `{name}`"),
                    "`pal rm --list` lists them",
                ));
            }
            // The newest first: an id may have been removed twice.
            [newest, rest @ ..] if rest.iter().all(|other| other.id == newest.id) => chosen.push(newest),
            several => {
                return Err(Failure::with_hint(
                    format!("{} sessions in the trash start with `{name}`", several.len()),
                    "use more characters of the id",
                ));
            }
        }
    }
    if arguments.sessions.is_empty() {
        chosen.extend(trash.first());
    }
    if chosen.is_empty() {
        return Err(Failure::with_hint("the trash is empty", "`pal sessions --all` lists all sessions"));
    }
    for trashed in chosen {
        restore_session(trashed).map_err(|error| Failure::new(error.to_string()))?;
        match arguments.json {
            true => writeln!(out, "{}", object(trashed))?,
            false => writeln!(out, "Restored {}: {}", short(&trashed.id), trashed.origin.display())?,
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn list(
    arguments: &RmArgs,
    home: &Path,
    settings: &Settings,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    let trash = list_trash(home);
    if arguments.json {
        for trashed in &trash {
            writeln!(out, "{}", object(trashed))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if trash.is_empty() {
        writeln!(out, "The trash is empty.")?;
        return Ok(ExitCode::SUCCESS);
    }
    for trashed in &trash {
        let digest = SessionDigest::read(&pal_store::log_path(&trashed.directory()), &settings.cards);
        let title = digest.title.as_deref().unwrap_or("(no prompt yet)");
        let facts = format!(
            "removed {} · {}",
            format_age(trashed.removed, now()),
            format_bytes(pal_store::directory_bytes(&trashed.directory()))
        );
        let room = columns().saturating_sub(ID_CHARACTERS + facts.chars().count() + 4).max(20);
        writeln!(out, "{}  {}  {facts}", short(&trashed.id), clip_line(title, room))?;
    }
    let days = settings.retention.trash_days;
    writeln!(
        out,
        "`pal rm --undo ID` restores a session; `pal gc` deletes it {days} days after its removal."
    )?;
    Ok(ExitCode::SUCCESS)
}

fn object(trashed: &TrashedSession) -> serde_json::Value {
    json!({
        "id": trashed.id, "path": trashed.origin.to_string_lossy(), "removed": trashed.removed,
        "trash": trashed.directory().to_string_lossy(),
    })
}

fn short(id: &str) -> String {
    id.chars().take(ID_CHARACTERS).collect()
}
