//! Where settings come from.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use pal_model::Cards;
use serde_json::Value;

/// A place that settings come from, far to near: a later one counts more.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Place {
    /// Built in.
    Default,
    /// The user's own file.
    User,
    /// The project's file, shared with everybody who works on it.
    Project,
    /// The project's file of this one user, kept out of the repository.
    Local,
    /// What the user allowed in this project when they were asked, kept under our home.
    Allowed,
    /// What `--settings` gives.
    Given,
    /// A variable of the environment.
    Environment,
    /// A flag of the command line.
    Flag,
    /// The file of whoever runs the machine.
    Managed,
}

impl Place {
    /// Its name for people and programs.
    pub fn name(self) -> &'static str {
        match self {
            Place::Default => "default",
            Place::User => "user",
            Place::Project => "project",
            Place::Local => "local",
            Place::Allowed => "allowed",
            Place::Given => "--settings",
            Place::Environment => "environment",
            Place::Flag => "flag",
            Place::Managed => "managed",
        }
    }

    /// Whether it comes with a repository, which may be anybody's.
    pub fn is_of_project(self) -> bool {
        matches!(self, Place::Project | Place::Local)
    }
}

/// Where one value came from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Origin {
    /// The place.
    pub place: Place,
    /// The file, the variable or the flag; empty for what is built in.
    pub source: String,
    /// The line of the file, where known.
    pub line: Option<usize>,
}

impl Origin {
    /// Somewhere, with no line known.
    pub(crate) fn new(place: Place, source: impl Into<String>) -> Origin {
        Origin { place, source: source.into(), line: None }
    }

    /// What is built in.
    pub(crate) fn built_in() -> Origin {
        Origin::new(Place::Default, "")
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = if self.source.is_empty() { self.place.name() } else { &self.source };
        match self.line {
            Some(line) => write!(formatter, "{source}, line {line}"),
            None => write!(formatter, "{source}"),
        }
    }
}

/// A value and where it came from.
#[derive(Clone, PartialEq, Debug)]
pub struct Resolved<T> {
    /// The value.
    pub value: T,
    /// Where it came from.
    pub origin: Origin,
}

/// A setting that a flag of the command line gives.
#[derive(Clone, PartialEq, Debug)]
pub struct Flag {
    /// The flag, as it is typed: `--model`.
    pub flag: String,
    /// The setting.
    pub key: &'static str,
    /// Its value, as it would stand in JSON.
    pub value: Value,
}

/// Everything that settings are read from. Nothing else is looked at.
#[derive(Clone, Default)]
pub struct Sources {
    /// Our own home, with `settings.toml` and `flags.toml`.
    pub home: Option<PathBuf>,
    /// The top of the project that is worked on, with `.pal/settings.toml` and `.pal/settings.local.toml`.
    pub project: Option<PathBuf>,
    /// The file with what the user allowed in this project when they were asked.
    pub allowed: Option<PathBuf>,
    /// The file of whoever runs the machine.
    pub managed: Option<PathBuf>,
    /// What `--settings` gives: a file, or TOML or JSON itself.
    pub given: Option<String>,
    /// The environment.
    pub variables: BTreeMap<String, String>,
    /// What flags of the command line say.
    pub flags: Vec<Flag>,
    /// The model table, the user's own cards on top; the shipped one if there is none.
    pub cards: Option<Cards>,
}

impl Sources {
    /// A variable that is set to something.
    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.trim().is_empty())
    }

    /// The user's home.
    pub(crate) fn user_home(&self) -> Option<PathBuf> {
        self.variable("HOME").map(PathBuf::from)
    }
}
