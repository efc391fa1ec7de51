//! `pal --teammate`: an agent that works for another pal process.

use std::io::{BufRead, BufReader};
use std::process::ExitCode;

use pal_agent::TeammateAssignment;
use pal_permissions::PermissionMode;

use super::agent_options::options;
use crate::arguments::{AgentArgs, ModelArgs, SessionArgs};
use crate::failure::Failure;
use crate::notices::Notices;
use crate::settings::Settings;

/// Works on the assignment that the lead process writes to standard input.
pub(crate) fn work_as_teammate(args: &AgentArgs, settings: &Settings) -> Result<ExitCode, Failure> {
    let wrong = |why: String| Failure::usage_error(why, "only the Agent tool of a session starts teammates");
    let mut input = BufReader::new(std::io::stdin());
    let mut line = String::new();
    input.read_line(&mut line).map_err(|error| wrong(format!("standard input: {error}")))?;
    let assignment: TeammateAssignment = serde_json::from_str(&line)
        .map_err(|error| wrong(format!("standard input has no assignment: {error}")))?;
    let mode: PermissionMode = assignment
        .mode
        .parse()
        .map_err(|error: pal_permissions::UnknownPermissionMode| wrong(error.to_string()))?;
    let args = AgentArgs {
        prompt: None,
        model: ModelArgs { model: Some(assignment.model.clone()), ..args.model.clone() },
        session: SessionArgs { resume: None, is_continued: false, session_id: None, ..args.session.clone() },
        ..args.clone()
    };
    let mut options = options(&args, settings, &Notices::to_stderr())?;
    options.permissions.mode = mode;
    let outcome = pal_agent::work_as_teammate(options, &assignment, input, Box::new(std::io::stdout()));
    outcome.map(|()| ExitCode::SUCCESS).map_err(|error| Failure::new(error.to_string()))
}
