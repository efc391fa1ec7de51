//! What in a workspace runs later without a fence, so that a fenced command must not be able to plant it.

use std::path::{Path, PathBuf};

/// Folders of a workspace that agents take hooks and settings from: where one is missing, an empty one holds its place.
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

/// Settings of git that run programs or lead elsewhere, in small letters: a repository that a command made has none.
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

/// A repository of repositories of repositories … is looked through so far.
const REPOSITORIES_MAX: usize = 1_000;

/// What in a workspace runs later without a fence.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Planted {
    /// What fenced commands may not write ([`crate::Policy::read_only`]).
    pub read_only: Vec<PathBuf>,
    /// What is not there and must not come to be. Nothing can stand in its place, because git would stumble over that:
    /// whoever ran the command looks for it afterwards.
    pub never: Vec<PathBuf>,
}

impl Planted {
    /// Looks at what is in a workspace now. Where there is no repository yet, a command may make one.
    pub fn look(root: &Path) -> Planted {
        let mut planted = Planted::default();
        planted.read_only.extend(FOLDERS.map(|name| root.join(name)));
        for path in RUN_LATER.map(|name| root.join(name)) {
            match std::fs::symlink_metadata(&path) {
                Ok(_) => planted.read_only.push(path),
                Err(_) => planted.never.push(path),
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

    /// The same for a repository somewhere inside of a workspace, by its place that is named `.git`, or by itself.
    pub fn look_at_repository(git: &Path) -> Planted {
        let mut planted = Planted::default();
        match git.is_dir() {
            true => planted.repository(git.to_owned()),
            false => planted.read_only.push(git.to_owned()),
        }
        planted
    }

    /// What git runs, and what says where its configuration is: of a repository and of those inside of it.
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
                    self.never.push(git.join(name));
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
                // The name of a module may have folders, too. The configuration tells: it is what no command can take away.
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

/// Where a repository is whose files are in a root, if it is elsewhere: for a further worktree and for a module, the place
/// named `.git` is a file that says so.
pub fn repository_elsewhere(root: &Path) -> Vec<PathBuf> {
    let Ok(text) = std::fs::read_to_string(root.join(".git")) else { return Vec::new() };
    let named = text.trim().strip_prefix("gitdir:").map(|place| root.join(place.trim()));
    let Some(git) = named.and_then(|place| place.canonicalize().ok()) else { return Vec::new() };
    // The file may be anybody's, and name any folder: only a repository counts.
    let is_repository =
        git.join("HEAD").is_file() && (git.join("commondir").is_file() || git.join("objects").is_dir());
    if !is_repository || !is_of_root(&git, root) || pal_permissions::holds_credentials(&git) {
        return Vec::new();
    }
    let common = std::fs::read_to_string(git.join("commondir")).ok();
    let common = common.and_then(|common| git.join(common.trim()).canonicalize().ok());
    let is_common = |path: &PathBuf| path.join("objects").is_dir() && git.starts_with(path);
    let mut folders = vec![git.clone()];
    folders.extend(common.filter(is_common));
    folders
}

/// Whether a repository says itself that its files are in a root: the folder of a worktree names the file that led to it, and the
/// configuration of a module its checkout.
fn is_of_root(git: &Path, root: &Path) -> bool {
    let Ok(root) = root.canonicalize() else { return false };
    let named = std::fs::read_to_string(git.join("gitdir")).ok();
    let back = named.and_then(|named| git.join(named.trim()).canonicalize().ok());
    back.is_some_and(|back| back == root.join(".git"))
        || checkout(git).is_some_and(|checkout| checkout == root)
}

/// The top of the repository that a folder lies in, if it is above that folder. One that holds the user's home, or is it,
/// is none: it would show everything there.
pub fn enclosing_repository(folder: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let top = folder.ancestors().find(|folder| folder.join(".git").exists())?;
    let holds_home = home.is_some_and(|home| home.starts_with(top));
    (top != folder && !holds_home && top.parent().is_some()).then(|| top.to_owned())
}

/// What in a repository that a command made runs programs: its configuration, and its hooks.
pub fn dangers_of_repository(git: &Path) -> Vec<PathBuf> {
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
    // A file of this name leads to a repository elsewhere.
    if git.is_file() {
        dangers.push(git.to_owned());
    }
    dangers
}

/// The folder that a repository takes hooks from, if its configuration names one.
fn hooks_path(git: &Path) -> Option<PathBuf> {
    let config = std::fs::read_to_string(git.join("config")).ok()?;
    let line = config.lines().find(|line| line.trim().to_lowercase().starts_with("hookspath"))?;
    let value = line.split_once('=')?.1.trim().trim_matches('"');
    let above = git.parent()?;
    above.join(value).canonicalize().ok()
}

/// Where the files of a module are: its place there is a file that names the repository, and could name another.
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
