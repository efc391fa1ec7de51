//! Where tools work, and what they know of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pal_model::FileSeen;
use pal_permissions::Target;
use smol_str::SmolStr;

use crate::paths;

/// Where tools work. Shared by all calls of a session.
#[derive(Debug)]
pub struct Workspace {
    /// The directories that the session may work in, links followed; the first is where it started.
    pub roots: Vec<PathBuf>,
    /// The session's folder, with its spilled results and the output of background commands.
    pub session: PathBuf,
    /// The user's home, where known.
    pub home: Option<PathBuf>,
    /// The program's own folder in the user's home, where skills of the user are, where known.
    pub program_home: Option<PathBuf>,
    /// What the model can look at.
    pub abilities: Abilities,
    /// Says which files searches leave out: those that may not be looked at.
    pub hidden: Option<Hidden>,
    /// Who puts changes of certain files on record; none if nobody does.
    pub keeper: Option<Box<dyn Keeper>>,
    /// Whether pages may be fetched from addresses that only this machine or its network can reach.
    pub allows_private_addresses: bool,
    state: Mutex<State>,
    writing: Mutex<()>,
}

/// Which files searches leave out.
pub struct Hidden(pub Box<dyn Fn(&Path) -> bool + Send + Sync>);

impl fmt::Debug for Hidden {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Hidden")
    }
}

/// Writes the files of a folder in the place of the tools, because every change of them is put on record.
pub trait Keeper: Send + Sync + fmt::Debug {
    /// The folder, by its real path.
    fn folder(&self) -> &Path;

    /// Writes a file; nothing is left of one without content.
    fn write(&self, real: &Path, content: &str) -> Result<Kept, String>;
}

/// What became of a file that was kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kept {
    /// What the file holds now; none if it is gone.
    pub content: Option<String>,
    /// What is different from what was to be written, in words for the model.
    pub notes: Vec<String>,
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
    shown: BTreeSet<SmolStr>,
}

impl Workspace {
    /// A workspace that starts in the first of its roots; `seen` is what the session's log knows of files. It has no
    /// folder of the program, private addresses are out of reach, and of no call is it known that its result is in
    /// sight: whoever knows better sets it.
    pub fn new(
        roots: Vec<PathBuf>,
        session: PathBuf,
        home: Option<PathBuf>,
        abilities: Abilities,
        seen: BTreeMap<PathBuf, FileSeen>,
    ) -> Workspace {
        let directory = roots.first().cloned().unwrap_or_else(|| PathBuf::from("/"));
        let state = Mutex::new(State { directory, seen, shown: BTreeSet::new() });
        Workspace {
            roots,
            session,
            home,
            program_home: None,
            abilities,
            hidden: None,
            keeper: None,
            allows_private_addresses: false,
            state,
            writing: Mutex::new(()),
        }
    }

    /// Where definitions of a sort (`skills`, `agents`, `commands`) are, the nearest first, and where their files really have
    /// to be. A project may come from anybody: a link in it must not bring a file of the user before the model. The user's
    /// own folders may hold any links.
    pub fn folders(&self, sort: &str) -> Vec<(PathBuf, Option<PathBuf>)> {
        let mut folders = Vec::new();
        for root in &self.roots {
            for place in [".pal", ".claude"] {
                folders.push((root.join(place).join(sort), Some(root.clone())));
            }
        }
        folders.extend(self.program_home.iter().map(|home| (home.join(sort), None)));
        folders.extend(self.home.iter().map(|home| (home.join(".claude").join(sort), None)));
        folders
    }

    /// Whether a search leaves a file out.
    pub(crate) fn is_hidden(&self, real: &Path) -> bool {
        self.hidden.as_ref().is_some_and(|hidden| (hidden.0)(real))
    }

    /// Where a path really is that the model named: `~` is the user's home, what is relative starts in the working
    /// directory, links are followed as far as the path exists. Paths that do not exist yet have such a place, too.
    pub fn resolve(&self, named: &str) -> Target {
        self.resolve_in(named, &self.directory())
    }

    /// The same for a path that is relative to another directory.
    pub fn resolve_in(&self, named: &str, directory: &Path) -> Target {
        let real = paths::real(&paths::spelled_out(named, directory, self.home.as_deref()));
        Target { named: named.to_owned(), real }
    }

    /// A path as the model shall read it: relative to the working directory, where it is below it.
    pub fn short(&self, real: &Path) -> String {
        let directory = paths::real(&self.directory());
        match real.strip_prefix(&directory) {
            Ok(below) if !below.as_os_str().is_empty() => below.display().to_string(),
            _ => real.display().to_string(),
        }
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

    /// Says of which calls the results are still before the model, whole. An unchanged file that one of them showed is
    /// not shown again. To be said anew whenever results were cleared, folded or compacted away.
    pub fn set_shown(&self, calls: BTreeSet<SmolStr>) {
        self.state().shown = calls;
    }

    /// Adds a call to those whose results are before the model.
    pub fn note_shown(&self, call: &str) {
        self.state().shown.insert(SmolStr::new(call));
    }

    /// Takes a call out of those whose results are before the model.
    pub fn note_hidden(&self, call: &str) {
        self.state().shown.remove(call);
    }

    /// Whether the result of a call is before the model, whole.
    pub fn is_shown(&self, call: &str) -> bool {
        self.state().shown.contains(call)
    }

    /// Who puts changes of this file on record.
    pub(crate) fn keeper_of(&self, real: &Path) -> Option<&dyn Keeper> {
        self.keeper.as_deref().filter(|keeper| real.parent() == Some(keeper.folder()))
    }

    /// Keeps other calls from changing files until it is dropped: what was compared is then still so when it is written.
    pub(crate) fn lock_writing(&self) -> MutexGuard<'_, ()> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
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
