//! The program as a teammate of another process of it.

use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode};
use std::sync::Arc;

use pal_agent::{Assignment, Starting};
use pal_permissions::Mode;

use super::seam::options;
use crate::arguments::Print;
use crate::failure::Failure;
use crate::settings::Settings;

/// The command that starts the program once more, with the flags that it was started with itself.
pub(super) fn starting() -> Starting {
    Arc::new(|| {
        // A program that does not find itself cannot be started, which is told.
        let mut command = Command::new(std::env::current_exe().unwrap_or_else(|_| "pal".into()));
        command.arg("--teammate").args(std::env::args_os().skip(1));
        command
    })
}

/// Works as a teammate of whoever writes to standard input.
pub(crate) fn work_as_teammate(print: &Print, settings: &Settings) -> Result<ExitCode, Failure> {
    let wrong = |why: String| Failure::wrong_use(why, "teammates are started by the tool Agent of a session");
    let mut input = BufReader::new(std::io::stdin());
    let mut line = String::new();
    input.read_line(&mut line).map_err(|error| wrong(format!("standard input: {error}")))?;
    let assignment: Assignment = serde_json::from_str(&line)
        .map_err(|error| wrong(format!("no assignment on standard input: {error}")))?;
    let mode: Mode =
        assignment.mode.parse().map_err(|error: pal_permissions::UnknownMode| wrong(error.to_string()))?;
    let print = Print {
        model: Some(assignment.model.clone()),
        prompt: None,
        resume: None,
        is_continued: false,
        session_id: None,
        ..print.clone()
    };
    let mut options = options(&print, settings)?;
    options.mode = mode;
    let worked = pal_agent::work_as_teammate(options, &assignment, input, Box::new(std::io::stdout()));
    worked.map(|()| ExitCode::SUCCESS).map_err(|error| Failure::new(error.to_string()))
}
