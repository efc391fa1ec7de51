//! What is around a session that starts: where it is looked for, and what becomes of it.
//!
//! The environment is read with the settings, once; gathering reads files and asks git; assembly is `pal-prompt`'s.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pal_model::Card;
use pal_prompt::{Assembly, built_in_tools};
use pal_sources::{
    GIT_TIME, Gathered, INSTRUCTION_TOKENS_MAX, Limit, Request, Search, gather, managed_folders, user_folders,
};
use pal_view::Estimator;

/// Where the user's things are, and what shall be looked at.
#[derive(Clone, Debug)]
pub(crate) struct Surroundings {
    /// The user's home.
    pub(crate) home: Option<PathBuf>,
    /// Our own.
    pal_home: Option<PathBuf>,
    shell: Option<String>,
    choices: Choices,
    /// Files and folders outside of projects that may be included.
    allowed: Vec<PathBuf>,
}

/// What the user chose in settings.toml.
#[derive(Clone, Debug)]
pub(crate) struct Choices {
    /// Whether instruction files are read.
    pub(crate) instructions: bool,
    /// How many tokens of them are too many.
    pub(crate) instruction_tokens_max: Option<u64>,
    /// Whether the largest are dropped then.
    pub(crate) instruction_tokens_drop: bool,
    /// Files and folders outside of projects that may be included.
    pub(crate) allow_includes: Vec<String>,
    /// Whether git is asked.
    pub(crate) git: bool,
    /// For how long.
    pub(crate) git_limit_ms: Option<u64>,
}

/// A session that would start.
pub(crate) struct Start<'a> {
    /// Where it works.
    pub(crate) directory: &'a Path,
    /// Directories that were added to it.
    pub(crate) added: &'a [PathBuf],
    /// Whether instruction files are looked for in added directories only.
    pub(crate) is_bare: bool,
    /// Whether instruction files are read, as far as the settings allow.
    pub(crate) with_instructions: bool,
    /// Whether git is asked, as far as the settings allow.
    pub(crate) with_git: bool,
    /// How tokens of instruction files are counted.
    pub(crate) estimator: Estimator,
}

impl Surroundings {
    /// From the settings and the environment; paths that make no sense are ignored with a warning.
    pub(crate) fn resolve(
        pal_home: Option<&Path>,
        choices: Choices,
        variable: impl Fn(&str) -> Option<String>,
        warnings: &mut Vec<String>,
    ) -> Surroundings {
        let filled = |name| variable(name).filter(|value| !value.trim().is_empty());
        let home = filled("HOME").map(PathBuf::from);
        let shell = filled("SHELL")
            .and_then(|shell| Path::new(&shell).file_name().map(|name| name.to_string_lossy().into_owned()));
        let mut allowed = Vec::new();
        for path in &choices.allow_includes {
            match absolute(path, home.as_deref()) {
                Some(path) => allowed.push(path),
                None => warnings.push(format!(
                    "settings.toml: allow_includes: {path} is ignored: it wants a path that begins with / or ~/"
                )),
            }
        }
        Surroundings { home, pal_home: pal_home.map(Path::to_owned), shell, choices, allowed }
    }

    /// Reads the files and asks git.
    pub(crate) fn gather(&self, start: &Start<'_>) -> Gathered {
        let user = match (&self.home, &self.pal_home) {
            (Some(home), Some(pal_home)) => user_folders(home, pal_home),
            (None, Some(pal_home)) => vec![pal_home.clone()],
            (_, None) => Vec::new(),
        };
        let estimator = start.estimator;
        let limit = Limit {
            tokens_max: self.choices.instruction_tokens_max.unwrap_or(INSTRUCTION_TOKENS_MAX),
            drops: self.choices.instruction_tokens_drop,
            measure: Arc::new(move |text| estimator.total(estimator.text(text))),
        };
        let search = Search {
            managed: managed_folders(),
            user,
            home: self.home.clone(),
            directory: start.directory.to_owned(),
            root: None,
            added: start.added.to_vec(),
            allowed: self.allowed.clone(),
            refused: Vec::new(),
            is_on: self.choices.instructions && start.with_instructions,
            is_bare: start.is_bare,
            limit,
        };
        let git_time = self.choices.git_limit_ms.map_or(GIT_TIME, Duration::from_millis);
        let asks_git = self.choices.git && start.with_git;
        gather(&Request { search, git_time: asks_git.then_some(git_time), shell: self.shell.clone() })
    }
}

/// A session of the program itself with what was gathered for it: the default prompt and the tools that are built in.
pub(crate) fn assembly<'a>(card: &'a Card, gathered: &Gathered) -> Assembly<'a> {
    Assembly {
        attribution: format!("Palimpsest {}", env!("CARGO_PKG_VERSION")),
        environment: gathered.environment.clone(),
        git: gathered.git.clone(),
        instructions: gathered.instructions.files.clone(),
        date: Some(today()),
        tools: built_in_tools(),
        ..Assembly::bare(card)
    }
}

/// The date where the user is.
fn today() -> String {
    jiff::Zoned::now().strftime("%A, %Y-%m-%d").to_string()
}

/// A path that does not depend on where one stands.
fn absolute(path: &str, home: Option<&Path>) -> Option<PathBuf> {
    let path = match path.strip_prefix("~/") {
        Some(below) => home?.join(below),
        None => PathBuf::from(path),
    };
    path.is_absolute().then_some(path)
}
