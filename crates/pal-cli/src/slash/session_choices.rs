//! Choices of `/resume`.

use std::path::Path;

use pal_tui::PickerChoice;

use super::session_commands::resume_arguments;
use crate::commands::{SessionRow, session_rows};
use crate::failure::Failure;
use crate::resume_directory::find_mismatch;
use crate::session_lookup::find;
use crate::settings::Settings;

/// Sessions of this project, newest first, without the open one.
pub(super) fn list(settings: &Settings, log: Option<&Path>) -> Result<Vec<PickerChoice>, Failure> {
    let rows = session_rows(settings)?;
    let others = rows.into_iter().filter(|row| Some(row.log.as_path()) != log);
    Ok(others.map(choice).collect())
}

/// Question and choices if the session that `/resume` names belongs to another directory. A running terminal stays in its
/// directory, so it can only fork such a session.
pub(super) fn directory_choices(settings: &Settings, arguments: &str) -> Option<(String, Vec<PickerChoice>)> {
    let (name, is_fork) = resume_arguments(arguments);
    let log = find(name, settings).ok().filter(|_| !is_fork)?;
    let mismatch = find_mismatch(&log, &std::env::current_dir().ok()?)?;
    let elsewhere =
        mismatch.command().map(|command| format!("to continue it there, leave and run: {command}"));
    let fork = PickerChoice {
        label: String::from("Fork it: continue here in a new session"),
        detail: elsewhere.unwrap_or_default(),
        command: (String::from("resume"), format!("{name} --fork")),
    };
    Some((format!("The session belongs to {}", mismatch.session.display()), vec![fork]))
}

fn choice(row: SessionRow) -> PickerChoice {
    PickerChoice {
        label: row.title,
        detail: format!("{} · {}", row.ago, row.facts),
        command: (String::from("resume"), row.id),
    }
}
