//! Settings files of other agents, read as if their content stood in ours.
//!
//! Claude Code's files hold permissions and hooks, so a part of them that is not understood denies or asks; it is never
//! ignored. Of the other agents only the model, its provider and the MCP servers are read.

mod claude_code;
mod claude_config;
mod claude_plugins;
mod claude_rules;
mod codex;
mod json_servers;

use serde_json::Value;

use crate::setting_keys::SettingKey;
use crate::settings_file::{SettingValue, check_value};
use crate::sources::SettingOrigin;

pub(crate) use claude_code::{is_claude_form, parse_claude_settings, read_claude_settings};
pub(crate) use claude_config::ClaudeConfig;
pub use claude_plugins::ClaudePlugin;
pub(crate) use claude_plugins::{PluginChoices, load_plugins};
pub(crate) use codex::read_codex_config;
pub(crate) use json_servers::{read_gemini_settings, read_opencode_config, read_opencode_project};

/// Content of one file of another agent in our terms.
#[derive(Default)]
pub(crate) struct TakenSettings {
    pub(crate) values: Vec<SettingValue>,
    /// Parts that have no meaning here, each with a reason; the user is told once.
    pub(crate) unused: Vec<String>,
    /// Warnings about permissions and hooks; the user is told at every start.
    pub(crate) warnings: Vec<String>,
    /// Plugins of Claude Code that the file enables or disables.
    pub(crate) plugins: PluginChoices,
    /// The administrator's hooks are the only ones that run.
    pub(crate) is_only_source_of_hooks: bool,
    /// The administrator's permission rules are the only ones that allow.
    pub(crate) is_only_source_of_rules: bool,
}

impl TakenSettings {
    /// Adds a value if it is valid for the setting; else it counts as unused.
    fn push(&mut self, name: &'static str, value: Value, origin: &SettingOrigin, their_name: &str) {
        let Some(key) = SettingKey::find(name) else {
            return self.unused.push(their_name.to_owned());
        };
        match check_value(key, value, origin.clone()) {
            Ok(value) => self.values.push(value),
            Err(error) => self.unused.push(format!("{their_name} ({error})")),
        }
    }

    /// Adds a value whose type is known to be right.
    fn push_checked(&mut self, name: &'static str, value: Value, origin: &SettingOrigin) {
        if let Some(key) = SettingKey::find(name) {
            self.values.push(SettingValue::new(key, value, origin.clone()));
        }
    }

    /// Notice about the unused parts of a file, if there are any.
    pub(crate) fn notice(&self, file: &str) -> Option<String> {
        (!self.unused.is_empty()).then(|| format!("{file}: not used by pal: {}", self.unused.join(", ")))
    }
}
