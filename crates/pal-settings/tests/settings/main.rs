//! Settings as users write them, in files of a scratch home and a scratch project.

#![allow(clippy::unwrap_used)]

mod claude_code;
mod claude_plugins;
mod context_policy;
mod errors;
mod other_agents;
mod page;
mod places;
mod settings_edit;
mod switches;
mod trust;

use std::collections::BTreeMap;
use std::path::PathBuf;

use pal_settings::{FlagSetting, SettingEntry, Settings, SettingsError, SettingsInput, SettingsSource};
use serde_json::Value;

/// A home, a project and a managed file of its own, and what is typed and set.
struct World {
    folder: tempfile::TempDir,
    given: Option<String>,
    variables: BTreeMap<String, String>,
    flags: Vec<FlagSetting>,
    sources: Option<Vec<SettingsSource>>,
}

impl World {
    fn new() -> World {
        let folder = tempfile::tempdir().unwrap();
        for name in ["home", "project/.pal"] {
            std::fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        World { folder, given: None, variables: BTreeMap::new(), flags: Vec::new(), sources: None }
    }

    /// Writes one of `home/settings.toml`, `project/.pal/settings.toml`, `managed.toml` …
    fn file(self, name: &str, text: &str) -> World {
        std::fs::write(self.path(name), text).unwrap();
        self
    }

    fn user(self, text: &str) -> World {
        self.file("home/settings.toml", text)
    }

    fn project(self, text: &str) -> World {
        self.file("project/.pal/settings.toml", text)
    }

    fn local(self, text: &str) -> World {
        self.file("project/.pal/settings.local.toml", text)
    }

    fn managed(self, text: &str) -> World {
        self.file("managed.toml", text)
    }

    fn given(mut self, text: &str) -> World {
        self.given = Some(text.to_owned());
        self
    }

    fn variable(mut self, name: &str, value: &str) -> World {
        self.variables.insert(name.to_owned(), value.to_owned());
        self
    }

    fn flag(mut self, flag: &str, key: &'static str, value: Value) -> World {
        self.flags.push(FlagSetting { flag: flag.to_owned(), key, value });
        self
    }

    /// Trusts the project, besides whatever else the user sets.
    fn trusted(self, user: &str) -> World {
        let project = self.path("project").canonicalize().unwrap();
        let text = format!("trusted = [{:?}]\n{user}", project.display().to_string());
        self.user(&text)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn read(&self) -> Result<Settings, SettingsError> {
        Settings::read(SettingsInput {
            home: Some(self.path("home")),
            project: Some(self.path("project")),
            allowed: Some(self.path("home/allowed.toml")),
            managed: Some(self.path("managed.toml")),
            given: self.given.clone(),
            variables: self.variables.clone(),
            flags: self.flags.clone(),
            claude_managed: Some(self.path("claude-managed")),
            sources: self.sources.clone(),
            cards: None,
        })
    }

    fn settings(&self) -> Settings {
        self.read().unwrap_or_else(|error| panic!("{error}"))
    }

    /// The error, without the scratch folder.
    fn error(&self) -> String {
        let Err(error) = self.read() else { panic!("these settings are taken") };
        error.to_string().replace(&format!("{}/", self.folder.path().display()), "")
    }
}

fn entry<'a>(settings: &'a Settings, name: &str) -> &'a SettingEntry {
    settings.entries().iter().find(|entry| entry.key.name == name).unwrap()
}

/// The value of a setting and the place that it came from.
fn told(settings: &Settings, name: &str) -> (Value, &'static str) {
    let entry = entry(settings, name);
    (entry.value(), entry.parts.last().unwrap().origin.place.name())
}
