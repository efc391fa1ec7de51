//! Sessions to go on with, for choosing one.

use std::path::Path;

use pal_tui::Choice;

use crate::commands::{SessionRow, session_rows};
use crate::failure::Failure;
use crate::settings::Settings;

/// The sessions of this project, the newest first, without the one at hand.
pub(super) fn choices(settings: &Settings, log: Option<&Path>) -> Result<Vec<Choice>, Failure> {
    let rows = session_rows(settings)?;
    let others = rows.into_iter().filter(|row| Some(row.log.as_path()) != log);
    Ok(others.map(choice).collect())
}

fn choice(row: SessionRow) -> Choice {
    Choice {
        label: row.title,
        detail: format!("{} · {}", row.ago, row.facts),
        command: (String::from("resume"), row.id),
    }
}
