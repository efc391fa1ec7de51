//! MCP servers of Gemini CLI and opencode, and the instruction files of opencode.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::TakenSettings;
use crate::sources::{SettingOrigin, SettingsSource};
use crate::text_file::text_of;

/// Reads the MCP servers of Gemini CLI's `settings.json`.
pub(crate) fn read_gemini_settings(path: &Path) -> TakenSettings {
    read_servers(path, "mcpServers", |server| {
        let mut fields = Map::new();
        for (name, value) in server {
            match name.as_str() {
                "command" | "args" | "env" | "cwd" | "timeout" | "headers" => {
                    fields.insert(name.clone(), value.clone());
                }
                "httpUrl" | "url" => {
                    fields.insert(String::from("url"), value.clone());
                    fields.insert(String::from("type"), json!(if name == "url" { "sse" } else { "http" }));
                }
                _ => {}
            }
        }
        Some(fields)
    })
}

/// Reads the MCP servers and the instruction files of the user's `opencode.json`.
pub(crate) fn read_opencode_config(path: &Path) -> TakenSettings {
    let mut taken = read_opencode_servers(path);
    read_instructions(path, SettingsSource::User, &mut taken);
    taken
}

/// Reads the instruction files of a project's `opencode.json`.
pub(crate) fn read_opencode_project(path: &Path) -> TakenSettings {
    let mut taken = TakenSettings::default();
    read_instructions(path, SettingsSource::Project, &mut taken);
    taken
}

/// Reads the list of instruction files. Pages of the web are not fetched.
fn read_instructions(path: &Path, source: SettingsSource, taken: &mut TakenSettings) {
    let Some(value) = text_of(path).ok().and_then(|text| serde_json::from_str::<Value>(&text).ok()) else {
        return;
    };
    let Some(items) = value.get("instructions").and_then(Value::as_array) else { return };
    let is_page = |item: &&str| item.starts_with("http://") || item.starts_with("https://");
    let (pages, files): (Vec<&str>, Vec<&str>) = items.iter().filter_map(Value::as_str).partition(is_page);
    taken.unused.extend(pages.iter().map(|page| format!("the instructions at {page}")));
    if !files.is_empty() {
        let origin = SettingOrigin::new(source, path.display().to_string());
        taken.push("instruction_files", json!(files), &origin, "instructions");
    }
}

fn read_opencode_servers(path: &Path) -> TakenSettings {
    read_servers(path, "mcp", |server| {
        let mut fields = Map::new();
        match server.get("command") {
            Some(Value::Array(words)) => {
                let (command, arguments) = words.split_first()?;
                fields.insert(String::from("command"), command.clone());
                fields.insert(String::from("args"), Value::from(arguments.to_vec()));
            }
            Some(command) => drop(fields.insert(String::from("command"), command.clone())),
            None => {
                fields.insert(String::from("url"), server.get("url")?.clone());
                fields.insert(String::from("type"), json!("http"));
            }
        }
        fields.extend(server.get("headers").map(|headers| (String::from("headers"), headers.clone())));
        fields.extend(server.get("environment").map(|variables| (String::from("env"), variables.clone())));
        fields.extend(server.get("timeout").map(|limit| (String::from("timeout"), limit.clone())));
        let is_off = server.get("enabled") == Some(&Value::Bool(false));
        fields.extend(is_off.then(|| (String::from("disabled"), json!(true))));
        Some(fields)
    })
}

/// Reads servers by name and rewrites each; one that cannot be rewritten counts as unused.
fn read_servers(
    path: &Path,
    table: &str,
    rewrite: impl Fn(&Map<String, Value>) -> Option<Map<String, Value>>,
) -> TakenSettings {
    let mut taken = TakenSettings::default();
    let Ok(text) = text_of(path) else { return taken };
    let value: Value = match serde_json::from_str(&text) {
        Ok(value) => value,
        Err(error) => {
            taken.unused.push(format!("the whole file ({error})"));
            return taken;
        }
    };
    let Some(servers) = value.get(table).and_then(Value::as_object) else { return taken };
    let mut rewritten = Map::new();
    for (name, server) in servers {
        match server.as_object().and_then(&rewrite) {
            Some(fields) => drop(rewritten.insert(name.clone(), Value::Object(fields))),
            None => taken.unused.push(format!("the MCP server {name}")),
        }
    }
    if !rewritten.is_empty() {
        let origin = SettingOrigin::new(SettingsSource::User, path.display().to_string());
        taken.push("mcp_servers", Value::Object(rewritten), &origin, table);
    }
    taken
}
