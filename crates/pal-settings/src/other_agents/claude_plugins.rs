//! Plugins of Claude Code that are installed and enabled: their hooks and MCP servers, and the folders of their commands,
//! agents and skills.
//!
//! `enabledPlugins` in settings names a plugin as `NAME@MARKETPLACE`; `plugins/installed_plugins.json` beside the user's
//! settings gives its directory. The user has installed it, so its files count as the user's.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::TakenSettings;
use super::claude_rules::{RuleEffect, RuleRoots, translate_rule};
use crate::sources::{SettingOrigin, SettingsSource};
use crate::text_file::text_of;

/// Variable with the directory of a plugin.
const ROOT_VARIABLE: &str = "CLAUDE_PLUGIN_ROOT";

/// An enabled plugin of Claude Code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClaudePlugin {
    /// Name, which prefixes its commands, agents and skills.
    pub name: String,
    /// Name with its marketplace.
    pub source: String,
    /// Directory.
    pub root: PathBuf,
    /// Folders and files of commands.
    pub commands: Vec<PathBuf>,
    /// Folders and files of agent definitions.
    pub agents: Vec<PathBuf>,
    /// Folders of skills.
    pub skills: Vec<PathBuf>,
}

/// Plugins by `NAME@MARKETPLACE`, true if enabled.
pub(crate) type PluginChoices = BTreeMap<String, bool>;

/// Loads the enabled plugins from the directory of Claude Code's user settings, each with its hooks and servers.
pub(crate) fn load_plugins(
    folder: &Path,
    choices: &PluginChoices,
    project: Option<&Path>,
) -> (Vec<ClaudePlugin>, Vec<(PathBuf, TakenSettings)>) {
    let list = folder.join("plugins/installed_plugins.json");
    let (mut plugins, mut files, mut about_choices) = (Vec::new(), Vec::new(), TakenSettings::default());
    let enabled: Vec<&String> =
        choices.iter().filter(|(_, is_enabled)| **is_enabled).map(|(name, _)| name).collect();
    if enabled.is_empty() {
        return (plugins, files);
    }
    let installed = read_object(&list).ok().flatten().unwrap_or_default();
    let marketplaces = read_object(&folder.join("plugins/known_marketplaces.json")).ok().flatten();
    let marketplaces = marketplaces.unwrap_or_default();
    for source in enabled {
        let root = installed_root(&installed, source, project);
        let root = root.map(|root| directory_root(&marketplaces, source).unwrap_or(root));
        let Some(root) = root.filter(|root| root.is_dir()) else {
            about_choices.unused.push(format!("the plugin {source} (it is enabled but not installed)"));
            continue;
        };
        let (plugin, taken) = load_plugin(source, &root);
        files.extend(taken);
        plugins.push(plugin);
    }
    files.push((folder.join("settings.json"), about_choices));
    (plugins, files)
}

/// Directory of a plugin: the installation for this project, else that for the user.
fn installed_root(installed: &Map<String, Value>, source: &str, project: Option<&Path>) -> Option<PathBuf> {
    let copies = installed.get("plugins")?.get(source)?;
    // The first version of the file has one copy of each plugin.
    let copies: Vec<&Value> =
        copies.as_array().map_or_else(|| vec![copies], |copies| copies.iter().collect());
    let is_here = |copy: &&&Value| match copy.get("projectPath").and_then(Value::as_str) {
        Some(path) => project.is_some_and(|project| project == Path::new(path)),
        None => false,
    };
    let is_users = |copy: &&&Value| copy.get("projectPath").is_none();
    let copy = copies.iter().find(is_here).or_else(|| copies.iter().find(is_users))?;
    copy.get("installPath")?.as_str().map(PathBuf::from)
}

/// Directory of a plugin in a marketplace that is a directory: Claude Code reads it there and not in its copy.
fn directory_root(marketplaces: &Map<String, Value>, source: &str) -> Option<PathBuf> {
    let (plugin, marketplace) = source.split_once('@')?;
    let marketplace = marketplaces.get(marketplace)?;
    let is_directory = marketplace.pointer("/source/source").and_then(Value::as_str) == Some("directory");
    let folder = Path::new(marketplace.get("installLocation")?.as_str().filter(|_| is_directory)?);
    let list = read_object(&folder.join(".claude-plugin/marketplace.json")).ok()??;
    let is_it = |entry: &&Value| entry.get("name").and_then(Value::as_str) == Some(plugin);
    let entry = list.get("plugins")?.as_array()?.iter().find(is_it)?;
    inside(folder, entry.get("source")?.as_str()?).filter(|root| root.is_dir())
}

fn load_plugin(source: &str, root: &Path) -> (ClaudePlugin, Vec<(PathBuf, TakenSettings)>) {
    let manifest_path = root.join(".claude-plugin/plugin.json");
    let mut about_manifest = TakenSettings::default();
    let manifest = match read_object(&manifest_path) {
        Ok(manifest) => manifest.unwrap_or_default(),
        Err(why) => {
            // It may name a file of hooks.
            about_manifest.guard(&manifest_path, &why);
            Map::new()
        }
    };
    let name = manifest.get("name").and_then(Value::as_str).or_else(|| source.split('@').next());
    let name = name.unwrap_or(source).to_owned();
    let folders = |key: &str| {
        let mut folders = vec![root.join(key)];
        folders.extend(paths_of(manifest.get(key)).iter().filter_map(|path| inside(root, path)));
        folders
    };
    let plugin = ClaudePlugin {
        commands: folders("commands"),
        agents: folders("agents"),
        skills: folders("skills"),
        source: source.to_owned(),
        root: root.to_owned(),
        name,
    };
    for key in ["lspServers", "outputStyles", "channels", "monitors"] {
        if manifest.contains_key(key) {
            about_manifest.unused.push(format!("{key} of the plugin {source}"));
        }
    }
    let mut files = Vec::new();
    for path in files_of(root, "hooks/hooks.json", manifest.get("hooks")) {
        let mut taken = TakenSettings::default();
        match read_object(&path) {
            Ok(Some(file)) => plugin.take_hooks(&file, &path, &mut taken),
            Ok(None) => continue,
            Err(why) => taken.guard(&path, &why),
        }
        files.push((path, taken));
    }
    if let Some(inline @ Value::Object(table)) = manifest.get("hooks") {
        let hooks = if table.contains_key("hooks") { inline.clone() } else { json!({ "hooks": inline }) };
        if let Some(hooks) = hooks.as_object() {
            plugin.take_hooks(hooks, &manifest_path, &mut about_manifest);
        }
    }
    for path in files_of(root, ".mcp.json", manifest.get("mcpServers")) {
        let mut taken = TakenSettings::default();
        match read_object(&path) {
            Ok(Some(file)) => plugin.take_servers(&file, &path, &mut taken),
            Ok(None) => continue,
            Err(why) => taken.unused.push(format!("the whole file ({why})")),
        }
        files.push((path, taken));
    }
    if let Some(Value::Object(servers)) = manifest.get("mcpServers") {
        plugin.take_servers(servers, &manifest_path, &mut about_manifest);
    }
    files.push((manifest_path, about_manifest));
    (plugin, files)
}

impl ClaudePlugin {
    /// Takes over hooks; each command gets the variable with the directory.
    fn take_hooks(&self, file: &Map<String, Value>, path: &Path, taken: &mut TakenSettings) {
        let Some(hooks) = file.get("hooks") else { return };
        let mut hooks = self.with_root(hooks);
        let groups =
            hooks.as_object_mut().into_iter().flat_map(Map::values_mut).filter_map(Value::as_array_mut);
        let entries = groups.flatten().filter_map(|group| group.get_mut("hooks")?.as_array_mut()).flatten();
        for command in entries.filter_map(|entry| entry.get_mut("command")) {
            if let Some(text) = command.as_str() {
                let root = self.root.display().to_string().replace('\'', "'\\''");
                *command = json!(format!("{ROOT_VARIABLE}='{root}'; export {ROOT_VARIABLE}; {text}"));
            }
        }
        let origin = SettingOrigin::new(SettingsSource::User, path.display().to_string());
        taken.push_checked("hooks", hooks, &origin);
    }

    /// Takes over MCP servers under the names that Claude Code gives them.
    fn take_servers(&self, file: &Map<String, Value>, path: &Path, taken: &mut TakenSettings) {
        let servers = file.get("mcpServers").and_then(Value::as_object).unwrap_or(file);
        let mut named = Map::new();
        for (name, server) in servers {
            let mut server = self.with_root(server);
            if let Some(fields) = server.as_object_mut().filter(|fields| fields.contains_key("command")) {
                let variables = fields.entry("env").or_insert_with(|| json!({}));
                if let Some(variables) = variables.as_object_mut() {
                    variables.insert(ROOT_VARIABLE.to_owned(), json!(self.root));
                }
            }
            named.insert(format!("plugin:{}:{name}", self.name), server);
        }
        let origin = SettingOrigin::new(SettingsSource::User, path.display().to_string());
        if !named.is_empty() {
            taken.push("mcp_servers", Value::Object(named), &origin, "mcpServers");
        }
    }

    /// A value with the directory in place of its variable.
    fn with_root(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::from(self.fill_in(text)),
            Value::Array(items) => items.iter().map(|item| self.with_root(item)).collect(),
            Value::Object(fields) => {
                let fields = fields.iter().map(|(name, value)| (name.clone(), self.with_root(value)));
                Value::Object(fields.collect())
            }
            other => other.clone(),
        }
    }

    /// A text with the directory in place of its variable.
    pub fn fill_in(&self, text: &str) -> String {
        text.replace(&format!("${{{ROOT_VARIABLE}}}"), &self.root.display().to_string())
    }
}

impl TakenSettings {
    /// Lets every tool call ask: hooks may stand in a file that cannot be read.
    fn guard(&mut self, path: &Path, why: &str) {
        let origin = SettingOrigin::new(SettingsSource::User, path.display().to_string());
        self.warnings.push(format!("{origin}: {why}; it may hold hooks, so every tool call asks"));
        let roots = RuleRoots { project: None, settings: None };
        self.push_checked("permissions.ask", json!(translate_rule("*", RuleEffect::Ask, roots).0), &origin);
    }
}

/// Files with one part of a plugin: the usual one, and those that its manifest names.
fn files_of(root: &Path, usual: &str, named: Option<&Value>) -> Vec<PathBuf> {
    let mut files = vec![root.join(usual)];
    for path in paths_of(named).iter().filter_map(|path| inside(root, path)) {
        if !files.contains(&path) {
            files.push(path);
        }
    }
    files
}

/// Paths in a field that is a path or a list of paths.
fn paths_of(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::String(path)) => vec![path.clone()],
        Some(Value::Array(paths)) => paths.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

/// A path of the manifest, which must not leave the directory of the plugin.
fn inside(root: &Path, path: &str) -> Option<PathBuf> {
    let path = path.strip_prefix("./").unwrap_or(path);
    let is_plain = Path::new(path).components().all(|part| matches!(part, std::path::Component::Normal(_)));
    is_plain.then(|| root.join(path))
}

/// Reads a JSON object; none if there is no such file.
fn read_object(path: &Path) -> Result<Option<Map<String, Value>>, String> {
    match text_of(path) {
        Ok(text) => serde_json::from_str(text.trim_start_matches('\u{feff}'))
            .map(Some)
            .map_err(|error| format!("not a JSON object: {error}")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}
