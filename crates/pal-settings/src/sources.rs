//! Sources of settings.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use pal_model::ModelCatalog;
use serde_json::Value;

/// Source of settings, in increasing precedence.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum SettingsSource {
    /// Built-in default.
    Default,
    /// The user's file.
    User,
    /// The project's file, in its repository.
    Project,
    /// The user's file in the project, outside the repository.
    Local,
    /// Rules that the user allowed in a permission prompt, kept in `$PAL_HOME`.
    Allowed,
    /// The argument of `--settings`.
    Given,
    /// An environment variable.
    Environment,
    /// A command-line flag.
    Flag,
    /// The administrator's file.
    Managed,
}

impl SettingsSource {
    /// Name in output.
    pub fn name(self) -> &'static str {
        match self {
            SettingsSource::Default => "default",
            SettingsSource::User => "user",
            SettingsSource::Project => "project",
            SettingsSource::Local => "local",
            SettingsSource::Allowed => "allowed",
            SettingsSource::Given => "--settings",
            SettingsSource::Environment => "environment",
            SettingsSource::Flag => "flag",
            SettingsSource::Managed => "managed",
        }
    }

    /// True if it comes with a repository, which is not trusted by default.
    pub fn is_from_project(self) -> bool {
        matches!(self, SettingsSource::Project | SettingsSource::Local)
    }
}

/// Origin of one value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SettingOrigin {
    /// Source.
    pub place: SettingsSource,
    /// File, variable or flag; empty for a default.
    pub source: String,
    /// Line in the file, where known.
    pub line: Option<usize>,
}

impl SettingOrigin {
    pub(crate) fn new(place: SettingsSource, source: impl Into<String>) -> SettingOrigin {
        SettingOrigin { place, source: source.into(), line: None }
    }

    pub(crate) fn built_in() -> SettingOrigin {
        SettingOrigin::new(SettingsSource::Default, "")
    }
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = if self.source.is_empty() { self.place.name() } else { &self.source };
        match self.line {
            Some(line) => write!(formatter, "{source}, line {line}"),
            None => write!(formatter, "{source}"),
        }
    }
}

/// A value with its origin.
#[derive(Clone, PartialEq, Debug)]
pub struct ResolvedSetting<T> {
    /// Value.
    pub value: T,
    /// Origin.
    pub origin: SettingOrigin,
}

/// A setting given by a command-line flag.
#[derive(Clone, PartialEq, Debug)]
pub struct FlagSetting {
    /// Flag as typed, such as `--model`.
    pub flag: String,
    /// Name of the setting.
    pub key: &'static str,
    /// Value as JSON.
    pub value: Value,
}

/// Everything that settings are read from; nothing else is read.
#[derive(Clone, Default)]
pub struct SettingsInput {
    /// `$PAL_HOME`, with `settings.toml` and `flags.toml`.
    pub home: Option<PathBuf>,
    /// Root of the project, with `.pal/settings.toml` and `.pal/settings.local.toml`.
    pub project: Option<PathBuf>,
    /// File with the rules that the user allowed in this project.
    pub allowed: Option<PathBuf>,
    /// The administrator's file.
    pub managed: Option<PathBuf>,
    /// Argument of `--settings`: a file, or TOML or JSON.
    pub given: Option<String>,
    /// Environment variables.
    pub variables: BTreeMap<String, String>,
    /// Command-line flags.
    pub flags: Vec<FlagSetting>,
    /// Model cards; the built-in ones if none.
    pub cards: Option<ModelCatalog>,
    /// Directory of the administrator's settings for Claude Code.
    pub claude_managed: Option<PathBuf>,
    /// Sources among user, project and local whose files are read; all if none.
    pub sources: Option<Vec<SettingsSource>>,
}

impl SettingsInput {
    /// A variable that is set and not blank.
    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.trim().is_empty())
    }

    /// The user's home directory.
    pub(crate) fn user_home(&self) -> Option<PathBuf> {
        self.variable("HOME").map(PathBuf::from)
    }
}

/// Expands `~` at the start of a path; none if the home directory is not known.
pub(crate) fn absolute(path: &str, home: Option<&Path>) -> Option<PathBuf> {
    match path.strip_prefix('~') {
        Some("") => home.map(Path::to_owned),
        Some(below) => home.map(|home| home.join(below.trim_start_matches('/'))),
        None => Some(PathBuf::from(path)),
    }
}
