//! Commands that need the idle agent: they run on its thread.

use pal_agent::{Agent, AgentError};
use pal_report::clip_line;

use super::{SlashSession, pages};
use crate::commands;
use crate::failure::Failure;
use crate::open_session::find;

/// Lines of the summary that a preview shows.
const PREVIEW_LINES: usize = 16;

/// Columns of a pin in a list.
const PIN_COLUMNS: usize = 72;

pub(super) fn compact(session: &mut dyn SlashSession<'_>, arguments: &str) -> Result<String, Failure> {
    let agent = session.agent()?;
    if arguments.split_whitespace().next() == Some("--preview") {
        return preview(agent, arguments);
    }
    let instructions = Some(arguments.to_owned()).filter(|text| !text.is_empty());
    agent.compact(instructions).map_err(|error| failure(&error))?;
    Ok(String::new())
}

fn preview(agent: &mut Agent<'_>, arguments: &str) -> Result<String, Failure> {
    let is_all = arguments.split_whitespace().any(|word| word == "--all");
    let preview = agent.preview_compaction().map_err(|error| failure(&error))?;
    let mut out = Vec::new();
    commands::preview(&preview, if is_all { usize::MAX } else { PREVIEW_LINES }, &mut out)?;
    let mut text = String::from_utf8_lossy(&out).into_owned();
    text.push_str(
        "This summary is extracted from the log. /compact asks the model for a new one, so its size will differ.\n",
    );
    if !is_all {
        text.push_str("/compact --preview --all shows all of it.\n");
    }
    Ok(text)
}

pub(super) fn uncompact(session: &mut dyn SlashSession<'_>, _arguments: &str) -> Result<String, Failure> {
    session.agent()?.uncompact().map_err(|error| failure(&error))?;
    Ok(String::from("The last compaction is undone."))
}

pub(super) fn pin(session: &mut dyn SlashSession<'_>, arguments: &str) -> Result<String, Failure> {
    session.agent()?.pin(arguments).map_err(|error| failure(&error))?;
    pins(session, "")
}

pub(super) fn unpin(session: &mut dyn SlashSession<'_>, arguments: &str) -> Result<String, Failure> {
    let number = arguments.parse().unwrap_or(0);
    session.agent()?.unpin(number).map_err(|error| failure(&error))?;
    pins(session, "")
}

pub(super) fn pins(session: &mut dyn SlashSession<'_>, _arguments: &str) -> Result<String, Failure> {
    let pins = session.agent()?.pins();
    if pins.is_empty() {
        return Ok(String::from("Nothing is pinned. /pin TEXT pins a text."));
    }
    let line = |(at, text): (usize, &String)| format!("{:>3}  {}", at + 1, clip_line(text, PIN_COLUMNS));
    Ok(pins.iter().enumerate().map(line).collect::<Vec<_>>().join("\n"))
}

pub(super) fn memory(session: &mut dyn SlashSession<'_>, _arguments: &str) -> Result<String, Failure> {
    let color = session.color();
    Ok(pages::memory(color, session.agent()?))
}

pub(super) fn clear(session: &mut dyn SlashSession<'_>, _arguments: &str) -> Result<String, Failure> {
    session.reopen(None, None)?;
    Ok(String::new())
}

pub(super) fn resume(session: &mut dyn SlashSession<'_>, arguments: &str) -> Result<String, Failure> {
    let log = find(arguments, session.settings())?;
    session.reopen(Some(log), None)?;
    Ok(String::new())
}

pub(super) fn model(session: &mut dyn SlashSession<'_>, arguments: &str) -> Result<String, Failure> {
    let log = session.log();
    session.reopen(log, Some(arguments.to_owned()))?;
    Ok(String::new())
}

pub(super) fn rewind(session: &mut dyn SlashSession<'_>, arguments: &str) -> Result<String, Failure> {
    let prompt = session.agent()?.rewind(arguments).map_err(|error| failure(&error))?;
    session.fill_prompt(prompt);
    Ok(String::from("The conversation continues from before this prompt. Files stay as they are."))
}

fn failure(error: &AgentError) -> Failure {
    Failure::new(error.to_string())
}
