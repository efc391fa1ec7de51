//! Where tools work, and what they know of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pal_model::FileSeen;

/// Where tools work. Shared by all calls of a session.
#[derive(Debug)]
pub struct Workspace {
    /// The directories that the session may work in, links followed; the first is where it started.
    pub roots: Vec<PathBuf>,
    /// The session's folder, with its spilled results and the output of background commands.
    pub session: PathBuf,
    /// The user's home, where known.
    pub home: Option<PathBuf>,
    /// What the model can look at.
    pub abilities: Abilities,
    state: Mutex<State>,
}

/// What the model can look at.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Abilities {
    /// Pictures.
    pub images: bool,
    /// PDF documents.
    pub documents: bool,
}

#[derive(Debug)]
struct State {
    directory: PathBuf,
    seen: BTreeMap<PathBuf, FileSeen>,
}

impl Workspace {
    /// A workspace that starts in the first of its roots; `seen` is what the session's log knows of files.
    pub fn new(
        roots: Vec<PathBuf>,
        session: PathBuf,
        home: Option<PathBuf>,
        abilities: Abilities,
        seen: BTreeMap<PathBuf, FileSeen>,
    ) -> Workspace {
        let directory = roots.first().cloned().unwrap_or_else(|| PathBuf::from("/"));
        Workspace { roots, session, home, abilities, state: Mutex::new(State { directory, seen }) }
    }

    /// The working directory: that of the last shell command.
    pub fn directory(&self) -> PathBuf {
        self.state().directory.clone()
    }

    /// Works elsewhere from now on.
    pub fn change_directory(&self, directory: &Path) {
        directory.clone_into(&mut self.state().directory);
    }

    /// What the model last saw of a file, by its real path.
    pub fn seen(&self, path: &Path) -> Option<FileSeen> {
        self.state().seen.get(path).cloned()
    }

    /// Notes what the model saw of a file.
    pub fn note_seen(&self, path: &Path, seen: FileSeen) {
        self.state().seen.insert(path.to_owned(), seen);
    }

    /// Forgets what the model saw, as a compaction makes it do.
    pub fn forget_seen(&self) {
        self.state().seen.clear();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is one assignment: there is nothing half done behind a panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
