//! Choices of `/resume`.

use std::path::Path;

use pal_tui::PickerChoice;

use crate::commands::{SessionRow, session_rows};
use crate::failure::Failure;
use crate::settings::Settings;

/// Sessions of this project, newest first, without the open one.
pub(super) fn list(settings: &Settings, log: Option<&Path>) -> Result<Vec<PickerChoice>, Failure> {
    let rows = session_rows(settings)?;
    let others = rows.into_iter().filter(|row| Some(row.log.as_path()) != log);
    Ok(others.map(choice).collect())
}

fn choice(row: SessionRow) -> PickerChoice {
    PickerChoice {
        label: row.title,
        detail: format!("{} · {}", row.ago, row.facts),
        command: (String::from("resume"), row.id),
    }
}
