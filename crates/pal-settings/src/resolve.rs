//! What holds of everything that was said: the nearest place, or all of them together.

use std::path::{Path, PathBuf};

use pal_model::meant;
use serde_json::Value;

use crate::document::{Said, checked, of_file, of_given};
use crate::error::SettingsError;
use crate::key::{KEYS, Key};
use crate::kind::Kind;
use crate::place::{Origin, Place, Resolved, Sources};
use crate::switches::Switch;
use crate::trust::{ProjectTrust, notice, trust_of};
use crate::values::absolute;

/// What holds of one setting.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The setting.
    pub key: &'static Key,
    /// What the places say that count, far to near: one of them, but for settings that add up. Of a secret only
    /// whether it is set.
    pub parts: Vec<Resolved<Value>>,
}

impl Entry {
    /// The value: that of the one place that counts, or everything that was added up.
    pub fn value(&self) -> Value {
        let mut values = self.parts.iter().map(|part| part.value.clone());
        let first = values.next().unwrap_or(Value::Null);
        values.fold(first, joined)
    }

    /// Whether anybody set it.
    pub fn is_set(&self) -> bool {
        self.parts.iter().any(|part| part.origin.place != Place::Default)
    }
}

/// Two values that add up: lists end to end, tables name by name.
fn joined(first: Value, second: Value) -> Value {
    match (first, second) {
        (Value::Array(mut items), Value::Array(more)) => {
            items.extend(more);
            Value::Array(items)
        }
        (Value::Object(mut table), Value::Object(more)) => {
            for (name, value) in more {
                let value = match table.get(&name) {
                    Some(held) => joined(held.clone(), value),
                    None => value,
                };
                table.insert(name, value);
            }
            Value::Object(table)
        }
        (_, second) => second,
    }
}

/// All settings, one entry for each key, and what was ignored and why.
pub(crate) fn resolve(sources: &Sources) -> Result<(Vec<Entry>, Vec<String>), SettingsError> {
    let mut notices = Vec::new();
    let mut entries: Vec<Entry> = KEYS.iter().map(|key| Entry { key, parts: vec![built_in(key)] }).collect();
    let managed = sources.managed.as_deref().map_or(Ok(Vec::new()), |path| of_file(Place::Managed, path))?;
    let user_file = sources.home.as_ref().map(|home| home.join("settings.toml"));
    let user = user_file.as_deref().map_or(Ok(Vec::new()), |path| of_file(Place::User, path))?;
    let given = sources.given.as_deref().map_or(Ok(Vec::new()), of_given)?;
    let trusted: Vec<PathBuf> = trusted_folders([&user, &given, &managed], sources);
    for said in user {
        hold(&mut entries, said);
    }
    if let Some(project) = &sources.project {
        let must_be_listed = managed.iter().any(|said| said.key.name == "trusted");
        let trust = trust_of(project, &trusted, must_be_listed, sources.home.as_deref());
        for (place, name) in [(Place::Project, "settings.toml"), (Place::Local, "settings.local.toml")] {
            let said = of_file(place, &project.join(".pal").join(name))?;
            let said = if trust == ProjectTrust::Yes {
                said.into_iter().filter(|said| said.key.name != "trusted").collect()
            } else {
                without_trust(said, &entries, (project, &trust), &mut notices)
            };
            for said in said {
                hold(&mut entries, said);
            }
        }
    }
    if let Some(allowed) = &sources.allowed {
        for said in of_file(Place::Allowed, allowed)? {
            hold(&mut entries, said);
        }
    }
    let near = given.into_iter().chain(of_variables(sources, &mut notices)).chain(of_flags(sources)?);
    for said in near.chain(managed) {
        hold(&mut entries, said);
    }
    Ok((entries, notices))
}

fn built_in(key: &'static Key) -> Resolved<Value> {
    let value = if key.kind == Kind::Secret { Value::from("not set") } else { key.default_value() };
    Resolved { value, origin: Origin::built_in() }
}

/// Lets what was said count.
fn hold(entries: &mut [Entry], said: Said) {
    let Some(entry) = entries.iter_mut().find(|entry| entry.key.name == said.key.name) else { return };
    if !entry.key.adds_up || !entry.is_set() {
        entry.parts.clear();
    }
    let value = if said.key.kind == Kind::Secret { Value::from("set") } else { said.value };
    entry.parts.push(Resolved { value, origin: said.origin });
}

/// The folders that are trusted, by those places that may say so: the nearest of them counts.
fn trusted_folders(places: [&Vec<Said>; 3], sources: &Sources) -> Vec<PathBuf> {
    let said = places.iter().rev().find_map(|place| place.iter().find(|said| said.key.name == "trusted"));
    let home = sources.user_home();
    let folders = said.and_then(|said| said.value.as_array()).into_iter().flatten();
    folders.filter_map(|folder| absolute(folder.as_str()?, home.as_deref())).collect()
}

/// What a project may say without the user's trust; the rest is told of.
fn without_trust(
    said: Vec<Said>,
    entries: &[Entry],
    (project, trust): (&Path, &ProjectTrust),
    notices: &mut Vec<String>,
) -> Vec<Said> {
    let held =
        |key: &Key| entries.iter().find(|entry| entry.key.name == key.name).map_or(Value::Null, Entry::value);
    let (refused, kept): (Vec<Said>, Vec<Said>) =
        said.into_iter().partition(|said| said.key.trust.is_needed(&said.value, &held(said.key)));
    if let Some(first) = refused.first() {
        let keys: Vec<&str> = refused.iter().map(|said| said.key.name).collect();
        notices.push(notice(&first.origin.source, &keys, project, trust));
    }
    kept
}

/// What variables say. One that makes no sense is told of and ignored: the environment is shared with other programs.
fn of_variables(sources: &Sources, notices: &mut Vec<String>) -> Vec<Said> {
    let mut said = Vec::new();
    for key in KEYS {
        let Some((&name, text)) = key.variables.iter().find_map(|name| Some((name, sources.variable(name)?)))
        else {
            continue;
        };
        let origin = Origin::new(Place::Environment, name);
        if key.kind == Kind::Secret {
            said.push(Said { key, value: Value::Null, origin });
            continue;
        }
        match key.kind.read(text) {
            Ok(value) => said.push(Said { key, value, origin }),
            Err(wanted) => notices.push(format!("{name}={text} is ignored: it wants {wanted}")),
        }
    }
    said.extend(of_switches(sources, notices));
    said
}

/// What `PAL_DISABLE_<NAME>` says, name by name.
fn of_switches(sources: &Sources, notices: &mut Vec<String>) -> Vec<Said> {
    let Some(key) = Key::find("disabled") else { return Vec::new() };
    let mut said = Vec::new();
    let known: Vec<String> = Switch::ALL.iter().map(|switch| switch.variable()).collect();
    for (name, value) in sources.variables.iter().filter(|(name, _)| name.starts_with(Switch::PREFIX)) {
        if value.is_empty() || value == "0" {
            continue;
        }
        match Switch::ALL.iter().find(|switch| switch.variable() == *name) {
            Some(switch) => said.push(Said {
                key,
                value: [switch.name()].into_iter().collect(),
                origin: Origin::new(Place::Environment, name.as_str()),
            }),
            None => {
                let known: Vec<&str> = known.iter().map(String::as_str).collect();
                notices.push(format!("{name} switches nothing off{}", meant(name, &known)));
            }
        }
    }
    said
}

fn of_flags(sources: &Sources) -> Result<Vec<Said>, SettingsError> {
    let mut said = Vec::new();
    for flag in &sources.flags {
        let origin = Origin::new(Place::Flag, flag.flag.as_str());
        let Some(key) = Key::find(flag.key) else {
            let meant = ".".to_owned();
            return Err(SettingsError::UnknownKey { origin, key: flag.key.to_owned(), meant });
        };
        said.push(checked(key, flag.value.clone(), origin)?);
    }
    Ok(said)
}
