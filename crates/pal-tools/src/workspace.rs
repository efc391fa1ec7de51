//! Workspace of tools: folders, working directory and known files.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::Permissions;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use pal_model::KnownFile;
use pal_permissions::TargetPath;
use smol_str::SmolStr;

use crate::path_resolution;

/// Workspace of tools, shared by all calls of a session.
#[derive(Debug)]
pub struct Workspace {
    /// Roots of the session with links resolved; it started in the first one.
    pub roots: Vec<PathBuf>,
    /// Session folder with spilled results and outputs of background commands.
    pub session: PathBuf,
    /// Home directory of the user, if known.
    pub home: Option<PathBuf>,
    /// Application folder with the user's skills, if known.
    pub program_home: Option<PathBuf>,
    /// Media types that the model supports.
    pub media: MediaSupport,
    /// Files that searches skip because they may not be read.
    pub hidden: Option<HiddenFiles>,
    /// Folder whose changes are recorded, such as memories.
    pub recorded_folder: Option<Box<dyn RecordedFolder>>,
    /// Checkpoints of changed files; none if they are not kept.
    pub checkpoints: Option<Arc<dyn VersionKeeper>>,
    /// True if pages may be fetched from private addresses.
    pub allows_private_addresses: bool,
    /// Installed plugins, whose skills and agents have their name before them.
    pub plugins: Vec<PluginDefinitions>,
    state: Mutex<WorkspaceState>,
    writing: Mutex<()>,
}

/// Skills and agents of an installed plugin.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PluginDefinitions {
    /// Name of the plugin.
    pub name: String,
    /// Folders of skills.
    pub skills: Vec<PathBuf>,
    /// Folders and files of agent definitions.
    pub agents: Vec<PathBuf>,
}

impl PluginDefinitions {
    /// Name of a skill or an agent of the plugin.
    pub(crate) fn full_name(&self, name: &str) -> String {
        format!("{}:{name}", self.name)
    }
}

/// Predicate for files that searches skip.
pub struct HiddenFiles(pub Box<dyn Fn(&Path) -> bool + Send + Sync>);

impl fmt::Debug for HiddenFiles {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("HiddenFiles")
    }
}

/// Folder whose files are written through it instead of by the tools, because every change is recorded.
pub trait RecordedFolder: Send + Sync + fmt::Debug {
    /// Resolved path of the folder.
    fn folder(&self) -> &Path;

    /// Writes a file; an empty content deletes it.
    fn write(&self, real: &Path, content: &str) -> Result<RecordedWrite, String>;
}

/// Keeper of the versions that tools replace.
pub trait VersionKeeper: Send + Sync + fmt::Debug {
    /// Keeps the version of a file that is about to be replaced. `old` is `None` for a new file, `new` for a removed one.
    fn keep_version(
        &self,
        real: &Path,
        old: Option<(&[u8], &Permissions)>,
        new: Option<&[u8]>,
    ) -> std::io::Result<()>;
}

/// Result of a recorded write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordedWrite {
    /// New content of the file; `None` if it was deleted.
    pub content: Option<String>,
    /// Differences from the requested content, for the model.
    pub notes: Vec<String>,
}

/// Media types that the model supports.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MediaSupport {
    /// Images.
    pub images: bool,
    /// PDF documents.
    pub documents: bool,
}

/// Metadata of a file, and the version that the model saw.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SeenFileStamp {
    /// Time of the last change; none if the file does not exist.
    pub(crate) modified: Option<SystemTime>,
    pub(crate) bytes: u64,
    /// Fingerprint of the version that the model saw.
    pub(crate) seen: String,
}

#[derive(Debug)]
struct WorkspaceState {
    directory: PathBuf,
    seen: BTreeMap<PathBuf, KnownFile>,
    shown: BTreeSet<SmolStr>,
    /// Files as they were when last compared with what the model saw.
    compared: BTreeMap<PathBuf, SeenFileStamp>,
}

impl Workspace {
    /// Creates a workspace that starts in the first root; `seen_file` are the files known from the session's log.
    /// By default it has no application folder, no private addresses, and no visible results.
    pub fn new(
        roots: Vec<PathBuf>,
        session: PathBuf,
        home: Option<PathBuf>,
        abilities: MediaSupport,
        seen: BTreeMap<PathBuf, KnownFile>,
    ) -> Workspace {
        let directory = roots.first().cloned().unwrap_or_else(|| PathBuf::from("/"));
        let state =
            Mutex::new(WorkspaceState { directory, seen, shown: BTreeSet::new(), compared: BTreeMap::new() });
        Workspace {
            roots,
            session,
            home,
            program_home: None,
            media: abilities,
            hidden: None,
            recorded_folder: None,
            checkpoints: None,
            allows_private_addresses: false,
            plugins: Vec::new(),
            state,
            writing: Mutex::new(()),
        }
    }

    /// Folders with definitions of a kind (`skills`, `agents`, `commands`), nearest first, each with the root
    /// that must contain its files. A project is untrusted: a link in it must not show a file of the user to
    /// the model. The user's own folders may contain any links.
    pub(crate) fn definition_folders(&self, sort: &str) -> Vec<(PathBuf, Option<PathBuf>)> {
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

    /// Returns whether searches skip a file.
    pub(crate) fn is_hidden(&self, real: &Path) -> bool {
        self.hidden.as_ref().is_some_and(|hidden| (hidden.0)(real))
    }

    /// Resolves a path that the model named: `~` is the home, relative paths start in the working directory,
    /// links are followed as far as the path exists. Paths that do not exist yet are resolved, too.
    pub fn resolve(&self, named: &str) -> TargetPath {
        self.resolve_in(named, &self.directory())
    }

    /// Resolves a path relative to another directory.
    pub fn resolve_in(&self, named: &str, directory: &Path) -> TargetPath {
        let real = path_resolution::resolve_links(&path_resolution::expand_path(
            named,
            directory,
            self.home.as_deref(),
        ));
        TargetPath { named: named.to_owned(), real }
    }

    /// Working directory after the last shell command.
    pub fn directory(&self) -> PathBuf {
        self.state().directory.clone()
    }

    /// Changes the working directory.
    pub fn change_directory(&self, directory: &Path) {
        directory.clone_into(&mut self.state().directory);
    }

    /// Version of a file that the model last saw, by its resolved path.
    pub fn seen_file(&self, path: &Path) -> Option<KnownFile> {
        self.state().seen.get(path).cloned()
    }

    /// Records the version of a file that the model saw.
    pub fn record_seen(&self, path: &Path, seen: KnownFile) {
        self.state().seen.insert(path.to_owned(), seen);
    }

    /// Sets the calls whose results are still completely visible to the model. An unchanged file that one of
    /// them showed is not shown again. Call it whenever results were cleared, folded or compacted.
    pub fn set_visible_results(&self, calls: BTreeSet<SmolStr>) {
        self.state().shown = calls;
    }

    /// Adds a call with a visible result.
    pub fn show_result(&self, call: &str) {
        self.state().shown.insert(SmolStr::new(call));
    }

    /// Removes a call from those with a visible result.
    pub fn hide_result(&self, call: &str) {
        self.state().shown.remove(call);
    }

    /// Returns whether the result of a call is completely visible to the model.
    pub(crate) fn is_result_visible(&self, call: &str) -> bool {
        self.state().shown.contains(call)
    }

    /// Recorded folder that contains this file.
    pub(crate) fn recorded_folder_of(&self, real: &Path) -> Option<&dyn RecordedFolder> {
        self.recorded_folder.as_deref().filter(|keeper| real.parent() == Some(keeper.folder()))
    }

    /// Keeps the version of a file that is about to be replaced. A checkpoint is a convenience: a change does not fail for it.
    pub(crate) fn keep_version(&self, real: &Path, old: Option<(&[u8], &Permissions)>, new: &[u8]) {
        if let Some(checkpoints) = &self.checkpoints {
            let _ = checkpoints.keep_version(real, old, Some(new));
        }
    }

    /// Locks out changes by other calls until dropped, so that a comparison still holds when the file is
    /// written.
    pub(crate) fn lock_writing(&self) -> MutexGuard<'_, ()> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets all seen files, as after a compaction.
    pub fn forget_seen(&self) {
        self.state().seen.clear();
    }

    /// All files that the model saw, outside of the program's own folders.
    pub(crate) fn ordinary_seen_files(&self) -> Vec<(PathBuf, KnownFile)> {
        let is_own = |path: &Path| {
            let mut own = self.program_home.iter().chain([&self.session]);
            own.any(|home| path.starts_with(home)) || self.recorded_folder_of(path).is_some()
        };
        let seen = self.state().seen.clone();
        seen.into_iter().filter(|(path, _)| !is_own(path)).collect()
    }

    /// Stores the metadata with which a file is compared; false if it was compared with the same before.
    pub(crate) fn begin_comparison(&self, path: &Path, stamp: SeenFileStamp) -> bool {
        self.state().compared.insert(path.to_owned(), stamp.clone()) != Some(stamp)
    }

    fn state(&self) -> MutexGuard<'_, WorkspaceState> {
        // Every change is one assignment, so a poisoned lock is usable.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
