//! Commands that need the idle agent: they run on its thread.

use pal_agent::{Agent, AgentError, RewindReport, RewindScope};
use pal_context::CompactionRange;
use pal_report::{clip_line, sanitize};

use super::{SlashSession, pages};
use crate::commands;
use crate::compaction_range::find_range;
use crate::failure::Failure;
use crate::session_lookup::find;

/// Lines of the summary that a preview shows.
const PREVIEW_LINES: usize = 16;

/// Columns of a pin in a list.
const PIN_COLUMNS: usize = 72;

pub(super) fn compact(session: &mut dyn SlashSession<'_>, arguments: &str) -> Result<String, Failure> {
    let agent = session.agent()?;
    let options = CompactOptions::parse(arguments)?;
    let range = find_range(options.from, options.up_to, agent.session().view())?;
    if options.is_preview {
        return preview(agent, range, options.is_all);
    }
    let instructions = Some(options.instructions.to_owned()).filter(|text| !text.is_empty());
    agent.compact_range(range, instructions).map_err(|error| failure(&error))?;
    Ok(String::new())
}

/// Arguments of `/compact`: options first, then the instructions.
#[derive(Default)]
struct CompactOptions<'a> {
    is_preview: bool,
    is_all: bool,
    from: Option<&'a str>,
    up_to: Option<&'a str>,
    instructions: &'a str,
}

impl<'a> CompactOptions<'a> {
    fn parse(arguments: &'a str) -> Result<CompactOptions<'a>, Failure> {
        let mut options = CompactOptions { instructions: arguments.trim(), ..CompactOptions::default() };
        while options.instructions.starts_with("--") {
            let (word, rest) = first_word(options.instructions);
            let (name, value) =
                word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
            let takes_value = matches!(name, "--from" | "--up-to");
            let (value, rest) = match value {
                None if takes_value => first_word(rest),
                value => (value.unwrap_or_default(), rest),
            };
            match name {
                "--preview" => options.is_preview = true,
                "--all" => options.is_all = true,
                "--from" | "--up-to" if value.is_empty() => {
                    return Err(Failure::new(format!(
                        "{name} needs the number of a message; /view shows them"
                    )));
                }
                "--from" => options.from = Some(value),
                "--up-to" => options.up_to = Some(value),
                _ => {
                    return Err(Failure::with_hint(
                        format!("/compact has no option {}", sanitize(name)),
                        "it has --preview, --from N and --up-to N",
                    ));
                }
            }
            options.instructions = rest;
        }
        Ok(options)
    }
}

/// Splits off the first word.
fn first_word(text: &str) -> (&str, &str) {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim_start())
}

fn preview(agent: &mut Agent<'_>, range: CompactionRange, is_all: bool) -> Result<String, Failure> {
    let preview = agent.preview_compaction(range).map_err(|error| failure(&error))?;
    let mut out = Vec::new();
    commands::preview(&preview, range, if is_all { usize::MAX } else { PREVIEW_LINES }, &mut out)?;
    let mut text = String::from_utf8_lossy(&out).into_owned();
    text.push_str(
        "This summary is extracted from the log. /compact asks the model for a new one, so its size will differ.\n",
    );
    if !is_all {
        text.push_str("/compact --preview --all shows all of it.\n");
    }
    Ok(text)
}

/// Makes the next request miss the cache, to see how a break is reported.
pub(super) fn break_cache(session: &mut dyn SlashSession<'_>, _: &str) -> Result<String, Failure> {
    session.agent()?.break_cache().map_err(|error| failure(&error))?;
    Ok(String::from(
        "The next request has another system prompt and misses the cache; /breaks then shows the break.",
    ))
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
    session.reopen(None, false, None)?;
    Ok(String::new())
}

/// Session of `/resume SESSION [--fork]`, and whether it is forked.
pub(super) fn resume_arguments(arguments: &str) -> (&str, bool) {
    match arguments.trim().strip_suffix("--fork") {
        Some(name) => (name.trim_end(), true),
        None => (arguments.trim(), false),
    }
}

pub(super) fn resume(session: &mut dyn SlashSession<'_>, arguments: &str) -> Result<String, Failure> {
    let (name, is_fork) = resume_arguments(arguments);
    let log = find(name, session.settings())?;
    session.reopen(Some(log), is_fork, None)?;
    Ok(String::new())
}

pub(super) fn model(session: &mut dyn SlashSession<'_>, arguments: &str) -> Result<String, Failure> {
    let log = session.log();
    session.reopen(log, false, Some(arguments.to_owned()))?;
    Ok(String::new())
}

/// Rewinds: `ID`, `ID --conversation`, `ID --files`, or `undo`.
pub(super) fn rewind(session: &mut dyn SlashSession<'_>, arguments: &str) -> Result<String, Failure> {
    let (id, option) = first_word(arguments);
    if id == "undo" {
        let report = session.agent()?.undo_rewind().map_err(|error| failure(&error))?;
        return Ok(rewind_text("The rewind is undone.", &report));
    }
    let scope = match option.trim() {
        "" | "--both" => RewindScope::Both,
        "--conversation" => RewindScope::Conversation,
        "--files" => RewindScope::Files,
        other => {
            return Err(Failure::with_hint(
                format!("/rewind has no option {}", sanitize(other)),
                "it has --conversation, --files and undo",
            ));
        }
    };
    let mut report = session.agent()?.rewind(id, scope).map_err(|error| failure(&error))?;
    let text = match scope {
        RewindScope::Files => "The conversation stays.",
        RewindScope::Both => "The conversation continues from before this prompt.",
        RewindScope::Conversation => {
            "The conversation continues from before this prompt. Files stay as they are."
        }
    };
    if let Some(prompt) = report.prompt.take() {
        session.fill_prompt(prompt);
    }
    Ok(rewind_text(text, &report) + "\n/rewind undo takes it back.")
}

/// Result of a rewind, with the restored files.
fn rewind_text(text: &str, report: &RewindReport) -> String {
    let mut lines = vec![text.to_owned()];
    lines.extend(
        report.restored.iter().map(|path| format!("restored {}", sanitize(&path.display().to_string()))),
    );
    lines.extend(report.problems.iter().map(|problem| sanitize(problem)));
    lines.join("\n")
}

pub(super) fn output_style(session: &mut dyn SlashSession<'_>, arguments: &str) -> Result<String, Failure> {
    let name = Some(arguments.trim()).filter(|name| *name != "default");
    session.agent()?.choose_output_style(name).map_err(|error| failure(&error))?;
    let chosen =
        name.map_or(String::from("The default style"), |name| format!("The style {}", sanitize(name)));
    Ok(format!(
        "{chosen} holds for this session from the next request on, which misses the cache. The setting `output_style` holds for \
         every session."
    ))
}

fn failure(error: &AgentError) -> Failure {
    Failure::new(error.to_string())
}
