//! Environment variables of the settings: the program restarts itself with them, so that commands, hooks and servers get them.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::failure::Failure;
use crate::settings::{Settings, variable};

/// Holds the id of a process that has restarted itself. Processes that it starts inherit the variable, but not the id.
const MARK: &str = "PAL_SETTINGS_ENV";

/// Returns whether this program has restarted itself: its directory has been entered already.
pub(crate) fn has_restarted() -> bool {
    variable(MARK).is_some_and(|id| id == std::process::id().to_string())
}

/// Restarts the program if the settings have variables that its environment lacks. Returns only if they have none.
pub(crate) fn apply_variables(settings: &Settings) -> Result<(), Failure> {
    let missing: BTreeMap<&String, &String> =
        settings.variables.iter().filter(|(name, value)| variable(name).as_ref() != Some(*value)).collect();
    if missing.is_empty() || has_restarted() {
        return Ok(());
    }
    let program = std::env::current_exe()
        .map_err(|error| Failure::new(format!("cannot apply `env` of the settings: {error}")))?;
    let mut command = Command::new(program);
    command.args(std::env::args_os().skip(1)).envs(missing).env(MARK, std::process::id().to_string());
    if let Some(name) = std::env::args_os().next() {
        command.arg0(name);
    }
    let error = command.exec();
    Err(Failure::new(format!("cannot apply `env` of the settings: {error}")))
}
