//! Bounds of the project around a working directory: its root, and which paths are inside.
//!
//! The root is that of the nearest repository: the first directory upwards that contains `.git`. In a git worktree that is the worktree's
//! own root, in a submodule the submodule's own: instructions of the repository around a submodule are about another project, and are
//! reported as left out. Without a repository the working directory is the project, because the directories above it (`/tmp`, a shared
//! drive) may belong to anyone.

use std::path::{Component, Path, PathBuf};

use crate::instruction_locations::InstructionSearch;

/// Folders of other people's code: a dependency does not instruct the agent that looks at it.
const FOREIGN: &[&str] = &[".git", "node_modules", "site-packages"];

/// Prefix of files that another program put there for itself.
const INJECTED: &str = ".claude-injected-";

/// The top of the project around a directory: that of its repository, else the directory itself; links followed.
pub fn find_project_root(directory: &Path) -> PathBuf {
    let directory = resolve_links(directory);
    find_repository(&directory).unwrap_or(directory)
}

/// The places of a search, with all links followed.
#[derive(Clone, Debug)]
pub(crate) struct ProjectBounds {
    /// The working directory.
    pub(crate) directory: PathBuf,
    /// The top of the project.
    pub(crate) root: PathBuf,
    /// True if the root is that of a repository.
    pub(crate) is_repository: bool,
    /// The added directories.
    pub(crate) added: Vec<PathBuf>,
    allowed: Vec<PathBuf>,
    refused: Vec<PathBuf>,
}

impl ProjectBounds {
    pub(crate) fn new(search: &InstructionSearch) -> ProjectBounds {
        let directory = resolve_links(&search.directory);
        let repository = find_repository(&directory);
        let is_repository = repository.is_some();
        let root = match &search.root {
            Some(root) => resolve_links(root),
            None => repository.unwrap_or_else(|| directory.clone()),
        };
        ProjectBounds {
            added: search.added.iter().map(|added| resolve_links(added)).collect(),
            refused: search.refused.iter().map(|refused| resolve_links(refused)).collect(),
            allowed: search.allowed.iter().map(|allowed| resolve_links(allowed)).collect(),
            directory,
            root,
            is_repository,
        }
    }

    /// True if a file, links resolved, is part of the project or of an added directory.
    pub(crate) fn contains(&self, real: &Path) -> bool {
        real.starts_with(&self.root)
            || real.starts_with(&self.directory)
            || self.added.iter().any(|added| real.starts_with(added))
    }

    /// True if the user allowed a file outside.
    pub(crate) fn allows(&self, real: &Path) -> bool {
        self.allowed.iter().any(|allowed| real.starts_with(allowed))
    }

    /// True if the user refused a file outside of the project, or a folder above it.
    pub(crate) fn refuses(&self, real: &Path) -> bool {
        self.refused.iter().any(|refused| real.starts_with(refused))
    }

    /// The directories from the top down to the working directory.
    pub(crate) fn directory_chain(&self) -> Vec<PathBuf> {
        let below = list_directories_between(&self.root, &self.directory);
        if below.is_empty() { vec![self.directory.clone()] } else { below }
    }

    /// Why files above the top are not read.
    pub(crate) fn explain_files_above(&self) -> &'static str {
        if !self.is_repository {
            "above the working directory, which is in no repository; add its folder to have it read"
        } else if is_submodule(&self.root) {
            "above this submodule, which is a project of its own; add its folder to have it read"
        } else {
            "above the top of the project; add its folder to have it read"
        }
    }
}

/// The directories from one down to another, both included; none if the second is not below the first.
pub(crate) fn list_directories_between(top: &Path, bottom: &Path) -> Vec<PathBuf> {
    if !bottom.starts_with(top) {
        return Vec::new();
    }
    let mut chain: Vec<PathBuf> =
        bottom.ancestors().take_while(|above| above.starts_with(top)).map(Path::to_owned).collect();
    chain.reverse();
    chain
}

/// Root of the repository around a directory. Anyone who can write to a directory above (`/tmp`) could make that one a
/// repository, so it must have the same owner as the directory, or the machine's; git is as careful.
pub(crate) fn find_repository(directory: &Path) -> Option<PathBuf> {
    let owner = owner_of(directory)?;
    directory
        .ancestors()
        .find(|above| owner_of(&above.join(".git")).is_some_and(|other| other == owner || other == ROOT_USER))
        .map(Path::to_owned)
}

/// The user who owns the machine.
const ROOT_USER: u32 = 0;

/// Owner of the target of a path, if it exists.
#[cfg(unix)]
fn owner_of(path: &Path) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    path.metadata().ok().map(|metadata| metadata.uid())
}

#[cfg(not(unix))]
fn owner_of(path: &Path) -> Option<u32> {
    path.metadata().ok().map(|_| ROOT_USER)
}

/// A path with all links followed, as far as it exists.
pub(crate) fn resolve_links(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    match (path.parent(), path.components().next_back()) {
        (Some(parent), Some(Component::Normal(name))) if !parent.as_os_str().is_empty() => {
            resolve_links(parent).join(name)
        }
        (Some(parent), Some(Component::ParentDir)) => {
            let above = resolve_links(parent);
            above.parent().map_or(above.clone(), Path::to_owned)
        }
        _ => path.to_owned(),
    }
}

/// A path without `..`, if it still leads to the same file: behind a link, `..` is not the directory before it.
pub(crate) fn normalize_path(path: PathBuf) -> PathBuf {
    let mut tidy = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                tidy.pop();
            }
            Component::CurDir => {}
            other => tidy.push(other),
        }
    }
    if tidy.canonicalize().ok() == path.canonicalize().ok() { tidy } else { path }
}

/// True if a directory is the root of a submodule: git keeps its data in the `modules` of the repository around it.
fn is_submodule(root: &Path) -> bool {
    crate::text_reader::read_text(&root.join(".git"))
        .is_ok_and(|text| text.starts_with("gitdir:") && text.replace('\\', "/").contains("/modules/"))
}

/// True for a directory of third-party code or of another program.
pub(crate) fn is_foreign(directory: &Path) -> bool {
    let name = directory.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    FOREIGN.contains(&name.as_ref()) || is_injected(directory)
}

/// True if the name says that another program put the file there for itself.
pub(crate) fn is_injected(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(INJECTED))
}
