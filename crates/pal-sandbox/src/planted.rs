//! What in a workspace runs later without a fence, so that a fenced command must not be able to plant it.

use std::path::{Path, PathBuf};

/// Folders of a workspace that agents take hooks and settings from.
const FOLDERS: [&str; 2] = [".pal", ".claude"];

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

    /// What git runs, and what says where its configuration is: of a repository and of those inside of it.
    fn repository(&mut self, git: PathBuf) {
        let mut repositories = vec![git];
        for _ in 0..REPOSITORIES_MAX {
            let Some(git) = repositories.pop() else { return };
            self.read_only.push(git.join("hooks"));
            for name in ["config", "config.worktree", "commondir"] {
                self.push_if_there(git.join(name));
            }
            if !git.join("commondir").exists() {
                self.never.push(git.join("commondir"));
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
