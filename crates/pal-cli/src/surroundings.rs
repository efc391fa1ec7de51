//! What is around a session that starts: where it is looked for, and what becomes of it.
//!
//! Gathering reads files and asks git; assembly is `pal-prompt`'s.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pal_agent::memory_index;
use pal_memory::{Embeddings, Place};
use pal_model::Card;
use pal_prompt::{Assembly, SessionFacts, built_in_tools};
use pal_settings::Switch;
use pal_sources::{Gathered, Limit, Request, Search, gather, managed_folders, project_of, user_folders};
use pal_view::Estimator;

use crate::agent::settings_rules;
use crate::aside;
use crate::settings::Settings;
use crate::stored::now;

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

/// Reads the files and asks git.
pub(crate) fn gather_at(start: &Start<'_>, settings: &Settings) -> Gathered {
    gather(&sources_at(start, settings))
}

/// Where files are looked for, and what git is asked.
pub(crate) fn sources_at(start: &Start<'_>, settings: &Settings) -> Request {
    let user = match (&settings.user_home, &settings.home) {
        (Some(user_home), Some(home)) => user_folders(user_home, home),
        (None, Some(home)) => vec![home.clone()],
        (_, None) => Vec::new(),
    };
    let estimator = start.estimator;
    let instructions = &settings.instructions;
    let limit = Limit {
        tokens_max: instructions.tokens_max,
        drops: instructions.drops,
        measure: Arc::new(move |text| estimator.total(estimator.text(text))),
    };
    let search = Search {
        managed: managed_folders(),
        user,
        home: settings.user_home.clone(),
        directory: start.directory.to_owned(),
        root: None,
        added: start.added.to_vec(),
        allowed: instructions.allowed.clone(),
        refused: Vec::new(),
        // A rule that cannot be read stops a session before it begins; for a mere look no file is included that needs one.
        rules: settings_rules(settings).unwrap_or_default(),
        is_on: instructions.is_on && start.with_instructions,
        is_bare: start.is_bare,
        limit,
    };
    let asks_git = settings.git.is_on && start.with_git;
    let git_time = asks_git.then_some(settings.git.limit);
    Request { search, git_time, shell: settings.shell.clone() }
}

/// Where the memories of a session in a directory are; none if it remembers nothing.
pub(crate) fn memory_place(
    home: &Path,
    directory: &Path,
    is_bare: bool,
    settings: &Settings,
) -> Option<Place> {
    let is_on = !is_bare && !settings.switches.is_off(Switch::Memory);
    is_on.then(|| Place::of_project(home, &project_of(directory)))
}

/// A place whose memories are found by their meaning, too, if the settings name a model. One that cannot be used is told of, and
/// nobody is kept from working by it.
pub(crate) fn with_embeddings(place: Place, settings: &Settings) -> Place {
    let embeddings = settings.embeddings.as_deref().map(Embeddings::open);
    let embeddings = embeddings.and_then(|opened| opened.map_err(aside::tell).ok());
    place.with_embeddings(embeddings)
}

/// A session of the program itself with what was gathered for it: the default prompt and the tools that are built in.
pub(crate) fn assembly<'a>(card: &'a Card, gathered: &Gathered, memory: Option<&Place>) -> Assembly<'a> {
    Assembly {
        attribution: format!("Palimpsest {}", env!("CARGO_PKG_VERSION")),
        environment: gathered.environment.clone(),
        git: gathered.git.clone(),
        instructions: gathered.instructions.files.clone(),
        memory: memory.map_or(Vec::new(), |place| memory_index(place, now()).0),
        facts: SessionFacts {
            memory: memory.map(|place| place.directory.display().to_string()),
            ..SessionFacts::default()
        },
        date: Some(today()),
        tools: built_in_tools(),
        ..Assembly::bare(card)
    }
}

/// The date where the user is.
pub(crate) fn today() -> String {
    jiff::Zoned::now().strftime("%A, %Y-%m-%d").to_string()
}
