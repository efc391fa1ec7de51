//! Claude Code's `settings.json`, with the same meaning.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::TakenSettings;
use super::claude_rules::{RuleEffect, RuleRoots, translate_rule};
use crate::error::SettingsError;
use crate::setting_keys::SETTING_KEYS;
use crate::settings_file::{SettingsTree, parse_json};
use crate::sources::{SettingOrigin, SettingsSource};
use crate::text_file::text_of;

/// Settings that concern only how Claude Code itself looks, updates or logs in: nothing is lost without them.
const COSMETIC: &[&str] = &[
    "$schema",
    "autoUpdates",
    "autoUpdatesChannel",
    "autoScrollEnabled",
    "companyAnnouncements",
    "feedbackSurveyRate",
    "extraKnownMarketplaces",
    "fileSuggestion",
    "forceLoginMethod",
    "forceLoginOrgUUID",
    "hasCompletedOnboarding",
    "minimumVersion",
    "prefersReducedMotion",
    "respectGitignore",
    "showTurnDuration",
    "skipDangerousModePermissionPrompt",
    "spinnerTipsEnabled",
    "spinnerTipsOverride",
    "spinnerVerbs",
    "syntaxHighlightingDisabled",
    "terminalProgressBarEnabled",
    "tui",
];

/// Settings with a meaning that is missing here, each with what that means for the user.
const UNUSED: &[(&str, &str)] = &[
    ("agent", "choose an agent in the prompt"),
    ("allowedMcpServers", "list servers to leave out in `mcp_disabled`"),
    ("alwaysThinkingEnabled", "set `effort`"),
    ("attribution", ""),
    ("autoMemoryDirectory", "see `pal memory`"),
    ("availableModels", ""),
    ("awsAuthRefresh", "refresh your AWS credentials yourself"),
    ("awsCredentialExport", "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
    ("claudeMdExcludes", "all instruction files are read"),
    ("fastMode", ""),
    ("includeCoAuthoredBy", ""),
    ("otelHeadersHelper", "set OTEL_EXPORTER_OTLP_HEADERS"),
    ("plansDirectory", ""),
    ("pluginConfigs", "plugins get no options"),
    ("teammateMode", ""),
];

/// Reads a settings file of Claude Code; nothing if it does not exist.
pub(crate) fn read_claude_settings(
    source: SettingsSource,
    path: &Path,
    project: Option<&Path>,
) -> Result<TakenSettings, SettingsError> {
    match text_of(path) {
        Ok(text) => {
            let origin = SettingOrigin::new(source, path.display().to_string());
            parse_claude_settings(&text, &origin, project)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(TakenSettings::default()),
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => Ok(TakenSettings::default()),
        Err(error) => Err(SettingsError::Unreadable { path: path.to_owned(), error }),
    }
}

/// Parses the text of a settings file of Claude Code.
pub(crate) fn parse_claude_settings(
    text: &str,
    origin: &SettingOrigin,
    project: Option<&Path>,
) -> Result<TakenSettings, SettingsError> {
    let text = text.trim_start_matches('\u{feff}');
    if text.trim().is_empty() {
        return Ok(TakenSettings::default());
    }
    let tree = parse_json(text).map_err(|message| SettingsError::Syntax {
        origin: origin.clone(),
        message: format!("not valid JSON: {message}"),
    })?;
    let mut reader = ClaudeReader { taken: TakenSettings::default(), tree: &tree, origin, project };
    for (name, value) in &tree.values {
        reader.read(name, value);
    }
    Ok(reader.taken)
}

/// Returns whether a JSON text is in Claude Code's form and not in ours.
pub(crate) fn is_claude_form(text: &str) -> bool {
    let Ok(values) = serde_json::from_str::<Map<String, Value>>(text) else { return false };
    let is_ours = |name: &String| {
        SETTING_KEYS.iter().any(|key| key.name == name || key.name.split('.').next() == Some(name.as_str()))
    };
    let permissions = values.get("permissions").and_then(Value::as_object);
    let has_their_permissions = permissions.is_some_and(|table| {
        ["defaultMode", "additionalDirectories", "disableBypassPermissionsMode"]
            .iter()
            .any(|name| table.contains_key(*name))
    });
    values.contains_key("$schema")
        || has_their_permissions
        || values.keys().any(|name| !is_ours(name) && is_known(name))
}

/// Returns whether Claude Code has a setting of this name.
fn is_known(name: &str) -> bool {
    const READ: &[&str] = &[
        "apiKeyHelper",
        "autoCompactEnabled",
        "autoCompactWindow",
        "autoMemoryEnabled",
        "cleanupPeriodDays",
        "disableAllHooks",
        "deniedMcpServers",
        "disabledMcpjsonServers",
        "editorMode",
        "effortLevel",
        "enableAllProjectMcpServers",
        "enabledMcpjsonServers",
        "enabledPlugins",
        "outputStyle",
        "promptCacheTtl",
        "statusLine",
        "allowManagedHooksOnly",
        "allowManagedPermissionRulesOnly",
        "mcpServers",
    ];
    READ.contains(&name) || COSMETIC.contains(&name) || UNUSED.iter().any(|(known, _)| *known == name)
}

/// Reader of one file.
struct ClaudeReader<'a> {
    taken: TakenSettings,
    tree: &'a SettingsTree,
    origin: &'a SettingOrigin,
    project: Option<&'a Path>,
}

impl ClaudeReader<'_> {
    fn read(&mut self, name: &str, value: &Value) {
        match name {
            "permissions" => self.read_permissions(value),
            "hooks" => self.taken.push_checked("hooks", value.clone(), &self.at("hooks")),
            "env" => self.read_variables(value),
            "model" => self.push_text("model", value, name),
            "effortLevel" => self.push("effort", value.clone(), name),
            "language" => self.push_text("language", value, name),
            "outputStyle" => self.read_output_style(value),
            "statusLine" => {
                self.push("status_line", value.get("command").cloned().unwrap_or(Value::Null), name)
            }
            "apiKeyHelper" => self.push("api_key_helper", value.clone(), name),
            // There, 0 keeps no transcripts; here it keeps all.
            "cleanupPeriodDays" if value.as_u64() == Some(0) => {
                self.taken.unused.push(String::from("cleanupPeriodDays = 0 (sessions are saved)"));
            }
            "cleanupPeriodDays" => self.push("keep_sessions_days", value.clone(), name),
            "editorMode" => self.push_quietly("editor_mode", value, name),
            "theme" => self.push_quietly("theme", value, name),
            "autoCompactEnabled" => self.push("auto_compact", value.clone(), name),
            "autoCompactWindow" => self.push("max_context_tokens", value.clone(), name),
            "promptCacheTtl" => self.push("cache_ttl", value.clone(), name),
            "autoMemoryEnabled" => {
                if value == &Value::Bool(false) {
                    self.push("extraction", json!(false), name);
                    self.push("dreaming", json!(false), name);
                }
            }
            "disableAllHooks" => {
                if value == &Value::Bool(true) {
                    self.push("disabled", json!(["hooks"]), name);
                }
            }
            "enabledPlugins" => self.read_plugins(value),
            "disabledMcpjsonServers" => self.push("mcp_disabled", value.clone(), name),
            "deniedMcpServers" => self.read_denied_servers(value),
            "mcpServers" => self.push("mcp_servers", value.clone(), name),
            "sandbox" => self.read_sandbox(value),
            // Projects are trusted as a whole here, with all servers of their `.mcp.json`.
            "enableAllProjectMcpServers" | "enabledMcpjsonServers" => {}
            "allowManagedHooksOnly" => self.taken.is_only_source_of_hooks = value == &Value::Bool(true),
            "allowManagedPermissionRulesOnly" => {
                self.taken.is_only_source_of_rules = value == &Value::Bool(true)
            }
            name if COSMETIC.contains(&name) => {}
            name => {
                let why = UNUSED.iter().find(|(known, _)| *known == name).map_or("", |(_, why)| why);
                self.taken.unused.push(if why.is_empty() {
                    name.to_owned()
                } else {
                    format!("{name} ({why})")
                });
            }
        }
    }

    /// Directories that the file's path patterns start at.
    fn roots(&self) -> RuleRoots<'_> {
        let is_users = self.origin.place == SettingsSource::User;
        RuleRoots {
            project: self.project,
            settings: Path::new(&self.origin.source).parent().filter(|_| is_users),
        }
    }

    /// Position of a name in the file.
    fn at(&self, name: &str) -> SettingOrigin {
        SettingOrigin { line: self.tree.lines.get(name).copied(), ..self.origin.clone() }
    }

    fn push(&mut self, ours: &'static str, value: Value, theirs: &str) {
        let origin = self.at(theirs);
        self.taken.push(ours, value, &origin, theirs);
    }

    /// Pushes a text; an empty one or `default` means the default.
    fn push_text(&mut self, ours: &'static str, value: &Value, theirs: &str) {
        if !matches!(value.as_str(), Some("" | "default")) {
            self.push(ours, value.clone(), theirs);
        }
    }

    /// Pushes a value of the user interface; one that is unknown here is no loss.
    fn push_quietly(&mut self, ours: &'static str, value: &Value, theirs: &str) {
        let n_unused = self.taken.unused.len();
        self.push(ours, value.clone(), theirs);
        self.taken.unused.truncate(n_unused);
    }

    /// Plugins; a list of versions enables one, too.
    fn read_plugins(&mut self, value: &Value) {
        for (name, choice) in value.as_object().into_iter().flatten() {
            self.taken.plugins.insert(name.clone(), !matches!(choice, Value::Bool(false) | Value::Null));
        }
    }

    fn read_output_style(&mut self, value: &Value) {
        let is_default =
            value.as_str().is_some_and(|style| style.is_empty() || style.eq_ignore_ascii_case("default"));
        if !is_default {
            self.push("output_style", value.clone(), "outputStyle");
        }
    }

    /// Environment variables; numbers and switches count as texts.
    fn read_variables(&mut self, value: &Value) {
        let text = |value: &Value| match value {
            Value::String(text) => Some(Value::from(text.as_str())),
            Value::Number(_) | Value::Bool(_) => Some(Value::from(value.to_string())),
            _ => None,
        };
        let table = value.as_object().into_iter().flatten();
        let variables: Map<String, Value> =
            table.filter_map(|(name, value)| Some((name.clone(), text(value)?))).collect();
        self.push("env", Value::Object(variables), "env");
    }

    fn read_permissions(&mut self, value: &Value) {
        let Some(table) = value.as_object() else {
            let origin = self.at("permissions");
            self.taken
                .warnings
                .push(format!("{origin}: `permissions` is not a table, so every tool call asks"));
            let rules = translate_rule("*", RuleEffect::Ask, self.roots()).0;
            return self.taken.push_checked("permissions.ask", json!(rules), &origin);
        };
        for (name, value) in table {
            match name.as_str() {
                "allow" => self.read_rules("permissions.allow", RuleEffect::Allow, value),
                "ask" => self.read_rules("permissions.ask", RuleEffect::Ask, value),
                "deny" => self.read_rules("permissions.deny", RuleEffect::Deny, value),
                "defaultMode" => self.read_mode(value),
                "additionalDirectories" => self.read_directories(value),
                "disableBypassPermissionsMode" => {
                    if value.as_str() == Some("disable") || value == &Value::Bool(true) {
                        self.push(
                            "permissions.allow_bypass",
                            json!(false),
                            "permissions.disableBypassPermissionsMode",
                        );
                    }
                }
                "disableAutoMode" => {}
                name => self.taken.unused.push(format!("permissions.{name}")),
            }
        }
    }

    fn read_rules(&mut self, ours: &'static str, effect: RuleEffect, value: &Value) {
        let theirs = ours;
        let origin = self.at(theirs);
        let Some(items) = value.as_array() else {
            self.taken.warnings.push(format!("{origin}: `{theirs}` is not a list of rules"));
            if effect != RuleEffect::Allow {
                let rules = translate_rule("*", effect, self.roots()).0;
                self.taken.push_checked(ours, json!(rules), &origin);
            }
            return;
        };
        let mut rules: Vec<String> = Vec::new();
        for item in items {
            let text = item.as_str().map_or_else(|| item.to_string(), str::to_owned);
            let (translated, warning) = translate_rule(&text, effect, self.roots());
            match effect {
                // Without it there are more questions; that is no danger.
                RuleEffect::Allow => self.taken.unused.extend(warning),
                _ => self.taken.warnings.extend(warning.map(|warning| format!("{origin}: {warning}"))),
            }
            if text.trim_start().starts_with("mcp__*") && effect == RuleEffect::Deny {
                self.taken.push("disabled", json!(["mcp"]), &origin, theirs);
            }
            rules.extend(translated);
        }
        self.taken.push(ours, json!(rules), &origin, theirs);
    }

    fn read_mode(&mut self, value: &Value) {
        let ours = match value.as_str() {
            Some("default" | "manual") => "default",
            Some("acceptEdits") => "accept-edits",
            Some("plan") => "plan",
            Some("bypassPermissions") => "bypass",
            other => {
                let mode = other.map_or_else(|| value.to_string(), str::to_owned);
                self.taken
                    .unused
                    .push(format!("permissions.defaultMode = {mode} (the mode default asks instead)"));
                "default"
            }
        };
        self.push("permissions.mode", json!(ours), "permissions.defaultMode");
    }

    /// Directories; relative ones start at the project.
    fn read_directories(&mut self, value: &Value) {
        let absolute = |path: &str| match self.project {
            _ if path.starts_with(['/', '~']) => Some(path.to_owned()),
            Some(project) => Some(project.join(path).display().to_string()),
            None => None,
        };
        let items = value.as_array().into_iter().flatten().filter_map(Value::as_str);
        let paths: Vec<String> = items.filter_map(absolute).collect();
        self.push("permissions.directories", json!(paths), "permissions.additionalDirectories");
    }

    /// Servers that must not start. An entry that is not a name stops all of them.
    fn read_denied_servers(&mut self, value: &Value) {
        let origin = self.at("deniedMcpServers");
        let items: Vec<&Value> = value.as_array().into_iter().flatten().collect();
        let names: Vec<&str> = items.iter().filter_map(|item| item.get("serverName")?.as_str()).collect();
        if names.len() < items.len() || !value.is_array() {
            self.taken.warnings.push(format!(
                "{origin}: deniedMcpServers has an entry without a serverName, so no MCP server is started"
            ));
            self.taken.push("disabled", json!(["mcp"]), &origin, "deniedMcpServers");
        }
        self.taken.push("mcp_disabled", json!(names), &origin, "deniedMcpServers");
    }

    fn read_sandbox(&mut self, value: &Value) {
        if value.get("enabled") == Some(&Value::Bool(true)) {
            self.push("sandbox", json!("on"), "sandbox");
        }
        let origin = self.at("sandbox");
        for (theirs, tool) in [("denyRead", "Read"), ("denyWrite", "Edit")] {
            let paths = value.pointer(&format!("/filesystem/{theirs}")).and_then(Value::as_array);
            let mut rules: Vec<String> = Vec::new();
            for path in paths.into_iter().flatten().filter_map(Value::as_str) {
                let (translated, warning) =
                    translate_rule(&format!("{tool}({path})"), RuleEffect::Deny, self.roots());
                self.taken.warnings.extend(warning.map(|warning| format!("{origin}: {warning}")));
                rules.extend(translated);
            }
            if !rules.is_empty() {
                self.taken.push("permissions.deny", json!(rules), &origin, "sandbox");
            }
        }
        let fields = value.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
        let unused: Vec<String> = fields
            .filter(|name| {
                !["enabled", "autoAllowBashIfSandboxed", "allowUnsandboxedCommands"].contains(name)
            })
            .filter(|name| *name != "filesystem" || value.pointer("/filesystem/allowWrite").is_some())
            .map(|name| format!("sandbox.{name}"))
            .collect();
        self.taken.unused.extend(unused);
    }
}
