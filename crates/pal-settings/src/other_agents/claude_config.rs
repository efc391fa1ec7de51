//! `~/.claude.json`: the user's MCP servers and what Claude Code knows about projects.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};

use super::TakenSettings;
use super::claude_rules::{RuleEffect, RuleRoots, translate_rule};
use crate::sources::{SettingOrigin, SettingsSource};
use crate::text_file::text_up_to;
use crate::trust::real;

/// The file also holds prompts and statistics.
const BYTES_MAX: u64 = 64 << 20;

/// The parts of the file that are read.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ClaudeConfig {
    #[serde(skip)]
    path: PathBuf,
    mcp_servers: Option<Value>,
    projects: BTreeMap<PathBuf, ProjectRecord>,
}

/// Record of one project.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ProjectRecord {
    has_trust_dialog_accepted: bool,
    mcp_servers: Option<Value>,
    disabled_mcp_servers: Option<Value>,
    disabled_mcpjson_servers: Option<Value>,
    allowed_tools: Option<Value>,
}

impl ClaudeConfig {
    /// Reads the file; empty if there is none. The second part is a notice about a file that cannot be read.
    pub(crate) fn read(path: &Path) -> (ClaudeConfig, Option<String>) {
        let text = match text_up_to(path, BYTES_MAX) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return (ClaudeConfig::default(), None);
            }
            Err(error) => return (ClaudeConfig::default(), Some(unreadable(path, &error.to_string()))),
        };
        match serde_json::from_str::<ClaudeConfig>(&text) {
            Ok(config) => (ClaudeConfig { path: path.to_owned(), ..config }, None),
            Err(error) => (ClaudeConfig::default(), Some(unreadable(path, &error.to_string()))),
        }
    }

    /// Projects that the user trusted in Claude Code.
    pub(crate) fn trusted_projects(&self) -> impl Iterator<Item = PathBuf> {
        let trusted = self.projects.iter().filter(|(_, record)| record.has_trust_dialog_accepted);
        trusted.map(|(path, _)| path.clone())
    }

    /// Settings for all projects.
    pub(crate) fn user_settings(&self) -> TakenSettings {
        let mut taken = TakenSettings::default();
        let origin = SettingOrigin::new(SettingsSource::User, self.path.display().to_string());
        if let Some(servers) = filled(self.mcp_servers.as_ref()) {
            taken.push("mcp_servers", servers.clone(), &origin, "mcpServers");
        }
        taken
    }

    /// The user's own settings for one project. They are in the user's home, so they need no trust.
    pub(crate) fn project_settings(&self, project: &Path) -> TakenSettings {
        let mut taken = TakenSettings::default();
        let project = real(project);
        let found = self.projects.iter().find(|(path, _)| real(path) == project);
        let Some((_, record)) = found else { return taken };
        let origin = SettingOrigin::new(SettingsSource::Local, self.path.display().to_string());
        if let Some(servers) = filled(record.mcp_servers.as_ref()) {
            taken.push("mcp_servers", servers.clone(), &origin, "mcpServers");
        }
        for names in [&record.disabled_mcp_servers, &record.disabled_mcpjson_servers] {
            if let Some(names) = filled(names.as_ref()) {
                taken.push("mcp_disabled", names.clone(), &origin, "disabledMcpServers");
            }
        }
        if let Some(Value::Array(rules)) = filled(record.allowed_tools.as_ref()) {
            let rules = rules.iter().filter_map(Value::as_str);
            let roots = RuleRoots { project: Some(&project), settings: None };
            let rules: Vec<String> =
                rules.flat_map(|rule| translate_rule(rule, RuleEffect::Allow, roots).0).collect();
            taken.push("permissions.allow", json!(rules), &origin, "allowedTools");
        }
        taken
    }
}

fn unreadable(path: &Path, why: &str) -> String {
    format!("{}: its MCP servers and trusted projects are not used: {why}", path.display())
}

/// A list or table with content.
fn filled(value: Option<&Value>) -> Option<&Value> {
    value.filter(|value| match value {
        Value::Array(items) => !items.is_empty(),
        Value::Object(table) => !table.is_empty(),
        _ => false,
    })
}
