//! Paths of a workspace that run later without a sandbox, so a sandboxed command must not write them.

use std::path::{Path, PathBuf};

/// Folders of a workspace with hooks and settings of agents; a missing one gets an empty placeholder.
const FOLDERS: [&str; 2] = [".pal", ".claude"];

/// Files and folders of a workspace from which editors, shells, git and agents run something later.
const RUN_LATER: [&str; 13] = [
    ".mcp.json",
    ".envrc",
    ".husky",
    ".githooks",
    ".vscode",
    ".idea",
    ".devcontainer",
    ".codex",
    ".cursor",
    ".cargo",
    ".gitmodules",
    ".pre-commit-config.yaml",
    ".ripgreprc",
];

/// Git settings that run programs or point elsewhere, in lower case. A repository created by a command must
/// have none.
const RUNS_PROGRAMS: [&str; 16] = [
    "fsmonitor",
    "hookspath",
    "sshcommand",
    "[filter",
    "textconv",
    "external",
    "pager",
    "editor",
    "[alias",
    "gpg",
    "program",
    "[include",
    "worktree",
    "askpass",
    "[credential",
    "command",
];

/// Maximum nested repositories that are examined.
const REPOSITORIES_MAX: usize = 1_000;

/// Paths of a workspace that run later without a sandbox.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct GuardedPaths {
    /// Paths that sandboxed commands may not write ([`crate::sandbox::SandboxPolicy::read_only`]).
    pub read_only: Vec<PathBuf>,
    /// Missing paths that must not be created. A placeholder would break git, so the caller checks for them
    /// after the command.
    pub must_not_exist: Vec<PathBuf>,
}

impl GuardedPaths {
    /// Examines a workspace. Where there is no repository yet, a command may create one.
    pub fn of_workspace(root: &Path) -> GuardedPaths {
        let mut planted = GuardedPaths::default();
        planted.read_only.extend(FOLDERS.map(|name| root.join(name)));
        for path in RUN_LATER.map(|name| root.join(name)) {
            match std::fs::symlink_metadata(&path) {
                Ok(_) => planted.read_only.push(path),
                Err(_) => planted.must_not_exist.push(path),
            }
        }
        let git = root.join(".git");
        match std::fs::symlink_metadata(&git) {
            Ok(found) if found.is_dir() => planted.repository(git),
            Ok(found) if found.is_file() => {
                let place = std::fs::read_to_string(&git).unwrap_or_default();
                let place = place.trim().strip_prefix("gitdir:").map(|place| root.join(place.trim()));
                planted.read_only.push(git);
                if let Some(place) = place.and_then(|place| place.canonicalize().ok()) {
                    planted.repository(place);
                }
            }
            _ => {}
        }
        planted
    }

    /// Examines a repository inside a workspace, by its `.git` path or bare folder.
    pub fn of_repository(git: &Path) -> GuardedPaths {
        let mut planted = GuardedPaths::default();
        match git.is_dir() {
            true => planted.repository(git.to_owned()),
            false => planted.read_only.push(git.to_owned()),
        }
        planted
    }

    /// Adds hooks and configuration of a repository and its submodules.
    fn repository(&mut self, git: PathBuf) {
        let mut repositories = vec![git];
        for _ in 0..REPOSITORIES_MAX {
            let Some(git) = repositories.pop() else { return };
            self.read_only.push(git.join("hooks"));
            self.read_only.extend(hooks_path(&git));
            for name in ["config", "config.worktree", "commondir"] {
                self.push_if_there(git.join(name));
            }
            for name in ["commondir", "config.worktree"] {
                if !git.join(name).exists() {
                    self.must_not_exist.push(git.join(name));
                }
            }
            for worktree in folders_in(&git.join("worktrees")) {
                for name in ["config.worktree", "commondir"] {
                    self.push_if_there(worktree.join(name));
                }
            }
            if let Some(checkout) = checkout(&git) {
                self.push_if_there(checkout.join(".git"));
            }
            let mut folders = folders_in(&git.join("modules"));
            for _ in 0..REPOSITORIES_MAX {
                let Some(folder) = folders.pop() else { break };
                // A module name may contain folders. The presence of `config`, which no command can remove,
                // decides.
                match folder.join("config").exists() {
                    true => repositories.push(folder),
                    false => folders.extend(folders_in(&folder)),
                }
            }
        }
    }

    fn push_if_there(&mut self, path: PathBuf) {
        if path.is_file() {
            self.read_only.push(path);
        }
    }
}

/// Git directories outside a root: for a linked worktree or a submodule, `.git` is a file that names them.
pub fn external_git_dirs(root: &Path) -> Vec<PathBuf> {
    let Ok(text) = std::fs::read_to_string(root.join(".git")) else { return Vec::new() };
    let named = text.trim().strip_prefix("gitdir:").map(|place| root.join(place.trim()));
    let Some(git) = named.and_then(|place| place.canonicalize().ok()) else { return Vec::new() };
    // The file is untrusted and may name any folder: only a repository counts.
    let is_repository =
        git.join("HEAD").is_file() && (git.join("commondir").is_file() || git.join("objects").is_dir());
    if !is_repository || !is_of_root(&git, root) || pal_permissions::is_credential_path(&git) {
        return Vec::new();
    }
    let common = std::fs::read_to_string(git.join("commondir")).ok();
    let common = common.and_then(|common| git.join(common.trim()).canonicalize().ok());
    let is_common = |path: &PathBuf| path.join("objects").is_dir() && git.starts_with(path);
    let mut folders = vec![git.clone()];
    folders.extend(common.filter(is_common));
    folders
}

/// Returns whether a repository points back to a root: a worktree names its `.git` file, and a submodule its
/// checkout.
fn is_of_root(git: &Path, root: &Path) -> bool {
    let Ok(root) = root.canonicalize() else { return false };
    let named = std::fs::read_to_string(git.join("gitdir")).ok();
    let back = named.and_then(|named| git.join(named.trim()).canonicalize().ok());
    back.is_some_and(|back| back == root.join(".git"))
        || checkout(git).is_some_and(|checkout| checkout == root)
}

/// Top of the repository above a folder. A repository that contains the home directory does not count: it
/// would expose everything there.
pub fn enclosing_repository(folder: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let top = folder.ancestors().find(|folder| folder.join(".git").exists())?;
    let holds_home = home.is_some_and(|home| home.starts_with(top));
    (top != folder && !holds_home && top.parent().is_some()).then(|| top.to_owned())
}

/// Files of a new repository that run programs: configuration and hooks.
pub fn find_repository_dangers(git: &Path) -> Vec<PathBuf> {
    let mut dangers = Vec::new();
    for name in ["config", "config.worktree"] {
        let text = std::fs::read_to_string(git.join(name)).unwrap_or_default().to_lowercase();
        if RUNS_PROGRAMS.iter().any(|setting| text.contains(setting)) {
            dangers.push(git.join(name));
        }
    }
    let hooks = std::fs::read_dir(git.join("hooks")).into_iter().flatten().flatten();
    let is_sample = |name: &std::ffi::OsStr| name.to_string_lossy().ends_with(".sample");
    dangers.extend(hooks.filter(|hook| !is_sample(&hook.file_name())).map(|hook| hook.path()));
    // A `.git` file points to a repository elsewhere.
    if git.is_file() {
        dangers.push(git.to_owned());
    }
    dangers
}

/// Hook folder named in the configuration of a repository.
fn hooks_path(git: &Path) -> Option<PathBuf> {
    let config = std::fs::read_to_string(git.join("config")).ok()?;
    let line = config.lines().find(|line| line.trim().to_lowercase().starts_with("hookspath"))?;
    let value = line.split_once('=')?.1.trim().trim_matches('"');
    let above = git.parent()?;
    above.join(value).canonicalize().ok()
}

/// Checkout of a submodule, whose `.git` file could be changed to name another repository.
fn checkout(git: &Path) -> Option<PathBuf> {
    let config = std::fs::read_to_string(git.join("config")).ok()?;
    let values = config.lines().filter_map(|line| line.trim().strip_prefix("worktree"));
    let value = values.filter_map(|rest| rest.trim_start().strip_prefix('=')).next()?;
    git.join(value.trim().trim_matches('"')).canonicalize().ok()
}

fn folders_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect()
}
