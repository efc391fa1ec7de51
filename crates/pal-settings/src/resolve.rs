//! Resolution: the nearest source wins, or all sources are combined.

use std::path::{Path, PathBuf};

use pal_model::did_you_mean;
use serde_json::Value;

use crate::error::SettingsError;
use crate::kill_switches::KillSwitch;
use crate::other_agents::{
    ClaudeConfig, ClaudePlugin, PluginChoices, TakenSettings, is_claude_form, load_plugins,
    parse_claude_settings, read_claude_settings, read_codex_config, read_gemini_settings,
    read_opencode_config, read_opencode_project,
};
use crate::setting_keys::{SETTING_KEYS, SettingKey};
use crate::setting_kind::SettingKind;
use crate::settings_file::{SettingValue, check_value, parse_text, read_inline, read_settings_file, renamed};
use crate::sources::{ResolvedSetting, SettingOrigin, SettingsInput, SettingsSource, absolute};
use crate::trust::{ProjectTrust, notice, trust_of};

/// Resolved value of one setting.
#[derive(Clone, Debug)]
pub struct SettingEntry {
    /// Setting.
    pub key: &'static SettingKey,
    /// Values that count, in increasing precedence: one, or several if the setting accumulates. For a secret only
    /// "set" or "not set".
    pub parts: Vec<ResolvedSetting<Value>>,
}

impl SettingEntry {
    /// Value of the one source that counts, or all values combined.
    pub fn value(&self) -> Value {
        let mut values = self.parts.iter().map(|part| part.value.clone());
        let first = values.next().unwrap_or(Value::Null);
        values.fold(first, merge_values)
    }

    /// True unless it has its default.
    pub fn is_set(&self) -> bool {
        self.parts.iter().any(|part| part.origin.place != SettingsSource::Default)
    }
}

/// Combines two values: lists are concatenated, tables merged.
fn merge_values(first: Value, second: Value) -> Value {
    match (first, second) {
        (Value::Array(mut items), Value::Array(more)) => {
            items.extend(more);
            Value::Array(items)
        }
        (Value::Object(mut table), Value::Object(more)) => {
            for (name, value) in more {
                let value = match table.get(&name) {
                    Some(held) => merge_values(held.clone(), value),
                    None => value,
                };
                table.insert(name, value);
            }
            Value::Object(table)
        }
        (_, second) => second,
    }
}

/// All settings, with what the user is told about them.
pub(crate) struct Resolution {
    pub(crate) entries: Vec<SettingEntry>,
    /// Warnings about what was ignored or renamed.
    pub(crate) warnings: Vec<String>,
    /// Notices about parts of other agents' files that have no effect, one for each file.
    pub(crate) unused: Vec<String>,
    /// Files of other agents that were read.
    pub(crate) imported: Vec<PathBuf>,
    /// Plugins of Claude Code that are loaded.
    pub(crate) plugins: Vec<ClaudePlugin>,
    /// The user's trust in the project.
    pub(crate) trust: ProjectTrust,
    /// Plugins of Claude Code that settings enable or disable.
    plugin_choices: PluginChoices,
    /// The same in `--settings`, which wins over the files of user and project.
    given_plugins: PluginChoices,
}

impl Resolution {
    fn new() -> Resolution {
        let entry = |key| SettingEntry { key, parts: vec![default_of(key)] };
        Resolution {
            entries: SETTING_KEYS.iter().map(entry).collect(),
            warnings: Vec::new(),
            unused: Vec::new(),
            imported: Vec::new(),
            plugins: Vec::new(),
            trust: ProjectTrust::No,
            plugin_choices: PluginChoices::new(),
            given_plugins: PluginChoices::new(),
        }
    }

    fn apply(&mut self, settings: impl IntoIterator<Item = SettingValue>) {
        for setting in settings {
            apply_value(&mut self.entries, setting, &mut self.warnings);
        }
    }

    /// Reports on a file of another agent and returns its settings.
    fn take(&mut self, path: &Path, taken: TakenSettings) -> Vec<SettingValue> {
        self.unused.extend(taken.notice(&path.display().to_string()));
        self.warnings.extend(taken.warnings);
        if path.is_file() && !self.imported.iter().any(|known| known == path) {
            self.imported.push(path.to_owned());
        }
        taken.values
    }

    /// Applies the settings of a project's file as far as the user trusts the project.
    fn apply_project(&mut self, project: &Path, settings: Vec<SettingValue>) {
        let is_own = |setting: &SettingValue| !["trusted", "import_settings"].contains(&setting.key.name);
        let settings = if self.trust == ProjectTrust::Yes {
            settings.into_iter().filter(is_own).collect()
        } else {
            let trust = self.trust.clone();
            drop_untrusted(settings, &self.entries, (project, &trust), &mut self.warnings)
        };
        self.apply(settings);
    }

    /// Enables and disables plugins as a project's file says, if the user trusts the project: a plugin may be a guard.
    fn choose_project_plugins(&mut self, project: &Path, path: &Path, choices: &PluginChoices) {
        let is_trusted = self.trust == ProjectTrust::Yes;
        let changes = |(name, is_enabled): &(&String, &bool)| {
            self.plugin_choices.get(*name).copied().unwrap_or_default() != **is_enabled
        };
        let changed: Vec<(&String, &bool)> = choices.iter().filter(changes).collect();
        match is_trusted {
            true => self.plugin_choices.extend(choices.clone()),
            false if changed.is_empty() => {}
            false => self.warnings.push(format!(
                "{}: enabledPlugins is ignored: {} is not trusted (`pal trust`)",
                path.display(),
                project.display()
            )),
        }
    }

    /// Loads the enabled plugins of Claude Code.
    fn load_plugins(&mut self, folder: &Path, project: Option<&Path>) {
        let (plugins, files) = load_plugins(folder, &self.plugin_choices, project);
        self.plugins = plugins;
        for (path, taken) in files {
            let values = self.take(&path, taken);
            self.apply(values);
        }
    }

    /// Removes values of a setting that do not come from the administrator.
    fn keep_managed(&mut self, name: &str) {
        for entry in self.entries.iter_mut().filter(|entry| entry.key.name == name) {
            entry.parts.retain(|part| part.origin.place == SettingsSource::Managed);
            if entry.parts.is_empty() {
                entry.parts.push(default_of(entry.key));
            }
        }
    }
}

/// Resolves all settings.
pub(crate) fn resolve(sources: &SettingsInput) -> Result<Resolution, SettingsError> {
    let mut resolution = Resolution::new();
    let managed = sources
        .managed
        .as_deref()
        .map_or(Ok(Vec::new()), |path| read_settings_file(SettingsSource::Managed, path))?;
    let is_read =
        |source: SettingsSource| sources.sources.as_ref().is_none_or(|listed| listed.contains(&source));
    let user_file = sources.home.as_ref().map(|home| home.join("settings.toml"));
    let user_file = user_file.filter(|_| is_read(SettingsSource::User));
    let user =
        user_file.as_deref().map_or(Ok(Vec::new()), |path| read_settings_file(SettingsSource::User, path))?;
    let given = given_values(sources, &mut resolution)?;
    let agents = imported_agents([&user, &given, &managed], sources);
    let claude = if agents.claude { ClaudeFiles::find(sources) } else { ClaudeFiles::default() };
    let (claude_config, trouble) = claude.config.as_deref().map(ClaudeConfig::read).unwrap_or_default();
    resolution.unused.extend(trouble);
    if is_read(SettingsSource::User) {
        for (path, taken) in agents.other_files(sources) {
            let values = resolution.take(&path, taken);
            resolution.apply(values);
        }
        let project = sources.project.as_deref();
        if let Some(path) = &claude.user {
            let taken = read_claude_settings(SettingsSource::User, path, project)?;
            resolution.plugin_choices.extend(taken.plugins.clone());
            let values = resolution.take(path, taken);
            resolution.apply(values);
        }
        if let Some(path) = &claude.config {
            let values = resolution.take(path, claude_config.user_settings());
            resolution.apply(values);
        }
    }
    let mut trusted: Vec<PathBuf> = trusted_folders([&user, &given, &managed], sources);
    resolution.apply(user);
    if let Some(project) = &sources.project {
        let must_be_listed = managed.iter().any(|setting| setting.key.name == "trusted");
        if !must_be_listed {
            trusted.extend(claude_config.trusted_projects());
        }
        resolution.trust = trust_of(project, &trusted, must_be_listed, sources.home.as_deref());
        if agents.opencode && is_read(SettingsSource::Project) {
            let path = project.join("opencode.json");
            let values = resolution.take(&path, read_opencode_project(&path));
            resolution.apply_project(project, values);
        }
        for (place, ours, theirs) in [
            (SettingsSource::Project, "settings.toml", "settings.json"),
            (SettingsSource::Local, "settings.local.toml", "settings.local.json"),
        ] {
            if !is_read(place) {
                continue;
            }
            let path = project.join(".claude").join(theirs);
            // In the home directory the project's file is the user's.
            if agents.claude && claude.user.as_ref() != Some(&path) {
                let taken = read_claude_settings(place, &path, Some(project))?;
                resolution.choose_project_plugins(project, &path, &taken.plugins);
                let values = resolution.take(&path, taken);
                resolution.apply_project(project, values);
            }
            let settings = read_settings_file(place, &project.join(".pal").join(ours))?;
            resolution.apply_project(project, settings);
        }
        if is_read(SettingsSource::Local) {
            resolution.apply(claude_config.project_settings(project).values);
        }
    }
    resolution.plugin_choices.append(&mut resolution.given_plugins);
    let mut managed_files = Vec::new();
    for path in claude.managed {
        let taken = read_claude_settings(SettingsSource::Managed, &path, sources.project.as_deref())?;
        resolution.plugin_choices.extend(taken.plugins.clone());
        managed_files.push((path, taken));
    }
    if let Some(folder) = claude.user.as_deref().and_then(Path::parent) {
        resolution.load_plugins(folder, sources.project.as_deref());
    }
    if let Some(allowed) = &sources.allowed {
        resolution.apply(read_settings_file(SettingsSource::Allowed, allowed)?);
    }
    resolution.apply(given);
    let variables = variable_values(sources, &mut resolution.warnings);
    resolution.apply(variables);
    resolution.apply(flag_values(sources)?);
    for (path, taken) in managed_files {
        let (hooks_only, rules_only) = (taken.is_only_source_of_hooks, taken.is_only_source_of_rules);
        let values = resolution.take(&path, taken);
        resolution.apply(values);
        if hooks_only {
            resolution.keep_managed("hooks");
        }
        if rules_only {
            resolution.keep_managed("permissions.allow");
        }
    }
    resolution.apply(managed);
    Ok(resolution)
}

/// Settings of `--settings`, in our form or in Claude Code's.
fn given_values(
    sources: &SettingsInput,
    resolution: &mut Resolution,
) -> Result<Vec<SettingValue>, SettingsError> {
    let Some(given) = &sources.given else { return Ok(Vec::new()) };
    let (text, origin) = read_inline(given)?;
    if !is_claude_form(&text) {
        return parse_text(&text, &origin);
    }
    let taken = parse_claude_settings(&text, &origin, sources.project.as_deref())?;
    resolution.given_plugins = taken.plugins.clone();
    // The user has just written it, so what is not used is said every time.
    resolution.warnings.extend(taken.notice(&origin.to_string()));
    resolution.warnings.extend(taken.warnings);
    Ok(taken.values)
}

/// Files of Claude Code.
#[derive(Default)]
struct ClaudeFiles {
    user: Option<PathBuf>,
    config: Option<PathBuf>,
    managed: Vec<PathBuf>,
}

impl ClaudeFiles {
    fn find(sources: &SettingsInput) -> ClaudeFiles {
        let moved = sources.variable("CLAUDE_CONFIG_DIR").map(PathBuf::from);
        let home = sources.user_home();
        let folder = moved.clone().or_else(|| home.as_ref().map(|home| home.join(".claude")));
        let config = moved.or(home).map(|folder| folder.join(".claude.json"));
        let managed = sources.claude_managed.as_ref().map_or(Vec::new(), |folder| {
            let dropped =
                std::fs::read_dir(folder.join("managed-settings.d")).into_iter().flatten().flatten();
            let mut dropped: Vec<PathBuf> = dropped.map(|entry| entry.path()).collect();
            dropped.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
            dropped.sort();
            let main = folder.join("managed-settings.json");
            std::iter::once(main).chain(dropped).filter(|path| path.is_file()).collect()
        });
        ClaudeFiles { user: folder.map(|folder| folder.join("settings.json")), config, managed }
    }
}

/// Agents whose files are read.
struct ImportedAgents {
    claude: bool,
    codex: bool,
    gemini: bool,
    opencode: bool,
}

impl ImportedAgents {
    /// Files of the agents other than Claude Code.
    fn other_files(&self, sources: &SettingsInput) -> Vec<(PathBuf, TakenSettings)> {
        let Some(home) = sources.user_home() else { return Vec::new() };
        let folder = |variable: &str, below: &str| {
            sources.variable(variable).map_or_else(|| home.join(below), PathBuf::from)
        };
        let mut files = Vec::new();
        if self.opencode {
            let path = folder("XDG_CONFIG_HOME", ".config").join("opencode/opencode.json");
            files.push((path.clone(), read_opencode_config(&path)));
        }
        if self.gemini {
            let path = home.join(".gemini/settings.json");
            files.push((path.clone(), read_gemini_settings(&path)));
        }
        if self.codex {
            let path = folder("CODEX_HOME", ".codex").join("config.toml");
            files.push((path.clone(), read_codex_config(&path, &sources.variables)));
        }
        files
    }
}

/// Agents of `import_settings`, from the nearest source that may name them.
fn imported_agents(places: [&Vec<SettingValue>; 3], sources: &SettingsInput) -> ImportedAgents {
    let key = SettingKey::find("import_settings");
    let variable = key.and_then(|key| key.variables.iter().find_map(|name| sources.variable(name)));
    let of_variable = variable.zip(key).and_then(|(text, key)| key.kind.read(text).ok());
    let of_place = |place: &&Vec<SettingValue>| {
        Some(place.iter().find(|setting| setting.key.name == "import_settings")?.value.clone())
    };
    let [user, given, managed] = places;
    let listed = [managed]
        .iter()
        .find_map(of_place)
        .or(of_variable)
        .or_else(|| [given, user].iter().find_map(of_place));
    let reads = |name: &str| match &listed {
        Some(listed) => listed.as_array().is_some_and(|items| items.iter().any(|item| item == name)),
        None => true,
    };
    ImportedAgents {
        claude: reads("claude-code"),
        codex: reads("codex"),
        gemini: reads("gemini"),
        opencode: reads("opencode"),
    }
}

fn default_of(key: &'static SettingKey) -> ResolvedSetting<Value> {
    let value = if key.kind == SettingKind::Secret { Value::from("not set") } else { key.default_value() };
    ResolvedSetting { value, origin: SettingOrigin::built_in() }
}

/// Gives a setting the value of a nearer source.
fn apply_value(entries: &mut [SettingEntry], setting: SettingValue, notices: &mut Vec<String>) {
    notices.extend(setting.deprecation);
    let Some(entry) = entries.iter_mut().find(|entry| entry.key.name == setting.key.name) else { return };
    if !entry.key.accumulates || !entry.is_set() {
        entry.parts.clear();
    }
    let value = if setting.key.kind == SettingKind::Secret { Value::from("set") } else { setting.value };
    entry.parts.push(ResolvedSetting { value, origin: setting.origin });
}

/// Trusted projects, from the nearest source that may name them.
fn trusted_folders(places: [&Vec<SettingValue>; 3], sources: &SettingsInput) -> Vec<PathBuf> {
    let setting =
        places.iter().rev().find_map(|place| place.iter().find(|setting| setting.key.name == "trusted"));
    let home = sources.user_home();
    let folders = setting.and_then(|setting| setting.value.as_array()).into_iter().flatten();
    folders.filter_map(|folder| absolute(folder.as_str()?, home.as_deref())).collect()
}

/// Keeps the settings that a project may set without the user's trust, and reports the others.
fn drop_untrusted(
    settings: Vec<SettingValue>,
    entries: &[SettingEntry],
    (project, trust): (&Path, &ProjectTrust),
    notices: &mut Vec<String>,
) -> Vec<SettingValue> {
    let held = |key: &SettingKey| {
        entries.iter().find(|entry| entry.key.name == key.name).map_or(Value::Null, SettingEntry::value)
    };
    let (refused, kept): (Vec<SettingValue>, Vec<SettingValue>) = settings
        .into_iter()
        .partition(|setting| setting.key.trust.is_needed(&setting.value, &held(setting.key)));
    if let Some(first) = refused.first() {
        let keys: Vec<&str> = refused.iter().map(|setting| setting.key.name).collect();
        notices.push(notice(&first.origin.source, &keys, project, trust));
    }
    kept
}

/// Settings of environment variables. Invalid ones are ignored with a warning, since the environment is shared.
fn variable_values(sources: &SettingsInput, notices: &mut Vec<String>) -> Vec<SettingValue> {
    let mut found = Vec::new();
    for key in SETTING_KEYS {
        let mut names = key.variables.iter().chain(key.former.variables);
        let Some((&name, text)) = names.find_map(|name| Some((name, sources.variable(name)?))) else {
            continue;
        };
        let origin = SettingOrigin::new(SettingsSource::Environment, name);
        if key.kind == SettingKind::Secret {
            found.push(SettingValue::new(key, Value::Null, origin));
            continue;
        }
        if let (true, Some(current)) = (key.former.variables.contains(&name), key.variables.first()) {
            notices.push(renamed(&origin, name, current));
        }
        let former = Value::from(text.trim());
        let value = if key.current_value(&former).is_some() { Ok(former) } else { key.kind.read(text) };
        match value {
            Ok(value) => found.push(SettingValue::new(key, value, origin)),
            // A request to the provider's own address instead would give it the key of a gateway.
            Err(_) if key.name.ends_with(".base_url") => {
                found.push(SettingValue::new(key, Value::from(text.trim()), origin));
            }
            Err(expected) => notices.push(format!("{name}={text} is ignored: expected {expected}")),
        }
    }
    found.extend(cloud_provider(sources));
    found.extend(switch_values(sources, notices));
    found
}

/// The provider that variables of Claude Code choose.
fn cloud_provider(sources: &SettingsInput) -> Option<SettingValue> {
    let chosen = [("CLAUDE_CODE_USE_BEDROCK", "bedrock"), ("CLAUDE_CODE_USE_VERTEX", "vertex")];
    let is_on =
        |name: &str| sources.variable(name).is_some_and(|value| !matches!(value.trim(), "0" | "false"));
    let (name, provider) = chosen.into_iter().find(|(name, _)| is_on(name))?;
    let key = SettingKey::find("provider").filter(|_| sources.variable("PAL_PROVIDER").is_none())?;
    Some(SettingValue::new(key, Value::from(provider), SettingOrigin::new(SettingsSource::Environment, name)))
}

/// Kill switches of `PAL_DISABLE_<NAME>` variables.
fn switch_values(sources: &SettingsInput, notices: &mut Vec<String>) -> Vec<SettingValue> {
    let Some(key) = SettingKey::find("disabled") else { return Vec::new() };
    let mut found = Vec::new();
    let known: Vec<String> = KillSwitch::ALL.iter().map(|switch| switch.variable()).collect();
    for (name, value) in sources.variables.iter().filter(|(name, _)| name.starts_with(KillSwitch::PREFIX)) {
        if value.is_empty() || value == "0" {
            continue;
        }
        let switch_name = name[KillSwitch::PREFIX.len()..].to_ascii_lowercase();
        match KillSwitch::find(&switch_name) {
            Some(_) => {
                let origin = SettingOrigin::new(SettingsSource::Environment, name.as_str());
                found.push(SettingValue::new(key, Value::from(vec![switch_name]), origin));
            }
            None => {
                let known: Vec<&str> = known.iter().map(String::as_str).collect();
                notices.push(format!("{name} is not a kill switch{}", did_you_mean(name, &known)));
            }
        }
    }
    found
}

fn flag_values(sources: &SettingsInput) -> Result<Vec<SettingValue>, SettingsError> {
    let mut found = Vec::new();
    for flag in &sources.flags {
        let origin = SettingOrigin::new(SettingsSource::Flag, flag.flag.as_str());
        let Some(key) = SettingKey::find(flag.key) else {
            return Err(SettingsError::UnknownKey {
                origin,
                key: flag.key.to_owned(),
                suggestion: String::new(),
            });
        };
        found.push(check_value(key, flag.value.clone(), origin)?);
    }
    Ok(found)
}
