//! Resolution: the nearest source wins, or all sources are combined.

use std::path::{Path, PathBuf};

use pal_model::did_you_mean;
use serde_json::Value;

use crate::error::SettingsError;
use crate::kill_switches::KillSwitch;
use crate::setting_keys::{SETTING_KEYS, SettingKey};
use crate::setting_kind::SettingKind;
use crate::settings_file::{SettingValue, check_value, parse_inline, read_settings_file, renamed};
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

/// Resolves all settings; also returns warnings about what was ignored or renamed.
pub(crate) fn resolve(sources: &SettingsInput) -> Result<(Vec<SettingEntry>, Vec<String>), SettingsError> {
    let mut notices = Vec::new();
    let mut entries: Vec<SettingEntry> =
        SETTING_KEYS.iter().map(|key| SettingEntry { key, parts: vec![default_of(key)] }).collect();
    let managed = sources
        .managed
        .as_deref()
        .map_or(Ok(Vec::new()), |path| read_settings_file(SettingsSource::Managed, path))?;
    let user_file = sources.home.as_ref().map(|home| home.join("settings.toml"));
    let user =
        user_file.as_deref().map_or(Ok(Vec::new()), |path| read_settings_file(SettingsSource::User, path))?;
    let given = sources.given.as_deref().map_or(Ok(Vec::new()), parse_inline)?;
    let trusted: Vec<PathBuf> = trusted_folders([&user, &given, &managed], sources);
    for setting in user {
        apply_value(&mut entries, setting, &mut notices);
    }
    if let Some(project) = &sources.project {
        let must_be_listed = managed.iter().any(|setting| setting.key.name == "trusted");
        let trust = trust_of(project, &trusted, must_be_listed, sources.home.as_deref());
        for (place, name) in
            [(SettingsSource::Project, "settings.toml"), (SettingsSource::Local, "settings.local.toml")]
        {
            let settings = read_settings_file(place, &project.join(".pal").join(name))?;
            let settings = if trust == ProjectTrust::Yes {
                settings.into_iter().filter(|setting| setting.key.name != "trusted").collect()
            } else {
                drop_untrusted(settings, &entries, (project, &trust), &mut notices)
            };
            for setting in settings {
                apply_value(&mut entries, setting, &mut notices);
            }
        }
    }
    if let Some(allowed) = &sources.allowed {
        for setting in read_settings_file(SettingsSource::Allowed, allowed)? {
            apply_value(&mut entries, setting, &mut notices);
        }
    }
    let near = given.into_iter().chain(variable_values(sources, &mut notices)).chain(flag_values(sources)?);
    for value in near.chain(managed) {
        apply_value(&mut entries, value, &mut notices);
    }
    Ok((entries, notices))
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
            Err(expected) => notices.push(format!("{name}={text} is ignored: expected {expected}")),
        }
    }
    found.extend(switch_values(sources, notices));
    found
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
