//! `pal init`: finds what the user has, says what is used, writes a settings file and asks for trust.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use pal_model::text::count_noun;
use pal_settings::{SettingEntry, record_trust};
use serde_json::Value;

use super::config_change::{settings_path, write_new_settings};
use crate::agent::configured_servers;
use crate::arguments::{ConfigScopeArg, InitArgs, ProviderArg};
use crate::failure::Failure;
use crate::notices::Notices;
use crate::provider::has_access;
use crate::settings::{Settings, TypedSettings, from_environment};
use crate::setup::trust_question;

/// Session folders of other agents below the home directory.
const SESSION_FOLDERS: &[(&str, &str)] = &[
    ("Claude Code", ".claude/projects"),
    ("Codex", ".codex/sessions"),
    ("Gemini CLI", ".gemini/tmp"),
    ("pi", ".pi/agent/sessions"),
    ("Copilot CLI", ".copilot/session-state"),
];

/// Maximum files that are counted in a folder.
const FILES_MAX: usize = 100_000;

pub(crate) fn init(
    arguments: &InitArgs,
    settings: &Settings,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    write_keys(settings, out)?;
    write_imported(settings, out)?;
    write_servers(settings, out)?;
    write_sessions(settings, out)?;
    let path = settings_path(ConfigScopeArg::User)?;
    if path.exists() {
        writeln!(out, "Settings: {} exists and stays as it is.", path.display())?;
    } else {
        write_new_settings(&path)?;
        writeln!(out, "Settings: wrote {} with the main settings as comments.", path.display())?;
    }
    out.flush()?;
    ask_trust(arguments, settings, out)?;
    let next = match has_access(ProviderArg::Anthropic, settings) || has_access(ProviderArg::Openai, settings)
    {
        true => "Next: `pal` starts the agent here; `pal doctor` checks everything.",
        false => "Next: `pal login` stores an API key; `pal demo` shows a session without one.",
    };
    writeln!(out, "{next}")?;
    Ok(ExitCode::SUCCESS)
}

fn write_keys(settings: &Settings, out: &mut dyn Write) -> Result<(), Failure> {
    let is_key = |entry: &&SettingEntry| entry.is_set() && entry.value() == "set";
    let keys: Vec<String> = settings.entries().iter().filter(is_key).map(key_line).collect();
    match (keys.is_empty(), &settings.secrets.api_key_helper) {
        (false, _) => writeln!(out, "Keys: {}.", keys.join(", "))?,
        (true, Some(command)) => writeln!(out, "Keys: the command `{command}` prints the key for Claude.")?,
        (true, None) => {
            writeln!(out, "Keys: none. Set ANTHROPIC_API_KEY or OPENAI_API_KEY, or run `pal login`.")?
        }
    }
    Ok(())
}

fn key_line(entry: &SettingEntry) -> String {
    let from = entry.parts.last().map(|part| part.origin.to_string()).unwrap_or_default();
    format!("{} from {from}", entry.key.name)
}

/// Says for each file of another agent which settings are used and which are not.
fn write_imported(settings: &Settings, out: &mut dyn Write) -> Result<(), Failure> {
    if settings.imported.files.is_empty() {
        writeln!(out, "Other agents: no settings of Claude Code, Codex, Gemini CLI or opencode.")?;
    }
    for file in &settings.imported.files {
        writeln!(out, "{}", file.display())?;
        let used = used_settings(settings, file);
        if !used.is_empty() {
            writeln!(out, "  used: {}", used.join(", "))?;
        }
        let path = file.display().to_string();
        for unused in settings.imported.unused.iter().filter(|unused| unused.starts_with(&path)) {
            writeln!(out, "  {}", unused[path.len()..].trim_start_matches(": "))?;
        }
    }
    for warning in &settings.warnings {
        writeln!(out, "  note: {warning}")?;
    }
    Ok(())
}

/// Settings that a file gives, lists with their sizes.
fn used_settings(settings: &Settings, file: &Path) -> Vec<String> {
    let mut used = Vec::new();
    for entry in settings.entries() {
        let parts = entry.parts.iter().filter(|part| Path::new(&part.origin.source) == file);
        let n_items: usize = parts.clone().map(|part| n_items(&part.value)).sum();
        match (parts.count(), n_items) {
            (0, _) => {}
            (_, 0) => used.push(entry.key.name.to_owned()),
            (_, n_items) => used.push(format!("{} ({n_items})", entry.key.name)),
        }
    }
    used
}

/// Number of items of a list or a table.
fn n_items(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.len(),
        Value::Object(table) => table.len(),
        _ => 0,
    }
}

fn write_servers(settings: &Settings, out: &mut dyn Write) -> Result<(), Failure> {
    let notices = Notices::collected();
    let servers = configured_servers(settings, &notices)?;
    let names: Vec<String> = servers
        .iter()
        .map(|configured| {
            let off = if configured.is_disabled { " (off)" } else { "" };
            format!("{}{off}", configured.server.name)
        })
        .collect();
    match names.is_empty() {
        true => writeln!(out, "MCP servers: none.")?,
        false => writeln!(out, "MCP servers: {}.", names.join(", "))?,
    }
    for notice in notices.into_lines() {
        writeln!(out, "  note: {notice}")?;
    }
    Ok(())
}

fn write_sessions(settings: &Settings, out: &mut dyn Write) -> Result<(), Failure> {
    let Some(home) = &settings.user_home else { return Ok(()) };
    for (agent, folder) in SESSION_FOLDERS {
        let folder = home.join(folder);
        let n_sessions = count_sessions(&folder);
        if n_sessions > 0 {
            let sessions = count_noun(n_sessions, "session file");
            writeln!(
                out,
                "{agent}: {sessions} in {}; `pal import FILE` reads one, `pal cost FILE` prices it.",
                folder.display()
            )?;
        }
    }
    Ok(())
}

/// Number of session files below a folder.
fn count_sessions(folder: &Path) -> usize {
    let mut folders = vec![folder.to_owned()];
    let mut n_files = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            // Links are not followed: they may lead in circles.
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                Ok(kind) if kind.is_file() => {
                    let path = entry.path();
                    let extension = path.extension().and_then(|extension| extension.to_str());
                    n_files += usize::from(matches!(extension, Some("jsonl" | "json")));
                }
                _ => {}
            }
        }
        if n_files >= FILES_MAX {
            break;
        }
    }
    n_files
}

/// Asks whether the project is trusted, if it has files that need it.
fn ask_trust(arguments: &InitArgs, settings: &Settings, out: &mut dyn Write) -> Result<(), Failure> {
    // The settings file that was just written changes nothing about the project.
    let settings = &from_environment(TypedSettings::default()).unwrap_or_else(|_| settings.clone());
    let Some(project) = &settings.project.top else { return Ok(()) };
    if settings.project.is_trusted {
        writeln!(out, "Project: you trust {}.", project.display())?;
        return Ok(());
    }
    let Some(question) = trust_question(settings) else { return Ok(()) };
    if arguments.yes {
        let Some(home) = &settings.home else { return Ok(()) };
        record_trust(home, project).map_err(|error| Failure::of_file(home, &error))?;
        writeln!(out, "Project: trusted, with {}.", question.files.join(", "))?;
    } else if std::io::stdin().is_terminal() {
        question.ask(&mut std::io::stdin().lock(), out)?;
    } else {
        writeln!(out, "Project: not trusted; {} wait for `pal trust`.", question.files.join(", "))?;
    }
    Ok(())
}
