//! Placeholder folders in the workspace while sandboxed commands run.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pal_process::sandbox::{Sandbox, SandboxPolicy, find_repository_dangers};

use super::Shell;

/// Placeholders in the workspace and their users.
#[derive(Debug, Default)]
pub(super) struct Placeholders(Mutex<PlaceholderState>);

#[derive(Debug, Default)]
struct PlaceholderState {
    /// Empty folders that we created.
    made: Vec<PathBuf>,
    /// Paths that must not be created.
    never: Vec<PathBuf>,
    /// Repositories that existed before.
    repositories: Vec<PathBuf>,
    /// Number of running foreground commands.
    waited_for: usize,
}

impl Placeholders {
    fn state(&self) -> MutexGuard<'_, PlaceholderState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Guard for a command that runs or starts: keeps the placeholders. After dropping it, call
/// [`Shell::remove_placeholders`].
pub(super) struct PlaceholderGuard<'a>(&'a Shell);

impl PlaceholderGuard<'_> {
    /// Creates the placeholders of a sandbox; `never` must not be created, `repositories` exist already.
    pub(super) fn start<'a>(
        shell: &'a Shell,
        mechanism: &Sandbox,
        policy: &SandboxPolicy,
        (never, repositories): (Vec<PathBuf>, Vec<PathBuf>),
    ) -> PlaceholderGuard<'a> {
        let mut state = shell.placeholders.state();
        let new: Vec<_> = never.into_iter().filter(|path| !state.never.contains(path)).collect();
        state.never.extend(new);
        if state.waited_for == 0 && !shell.is_anything_running() {
            state.repositories = repositories;
        }
        let made = mechanism.create_placeholders(policy);
        state.made.extend(made);
        state.waited_for += 1;
        drop(state);
        PlaceholderGuard(shell)
    }
}

impl Drop for PlaceholderGuard<'_> {
    fn drop(&mut self) {
        self.0.placeholders.state().waited_for -= 1;
    }
}

impl Shell {
    /// Moves forbidden new files aside, and removes the placeholders if no command runs any more. Returns the
    /// moved files by their old names.
    pub(super) fn remove_placeholders(&self) -> Vec<PathBuf> {
        let mut state = self.placeholders.state();
        if state.waited_for == 0 && state.made.is_empty() && state.never.is_empty() {
            return Vec::new();
        }
        let mut planted: Vec<PathBuf> = state.never.clone();
        if let Some(sandbox) = &self.sandbox {
            let now = sandbox.scan_roots().repositories;
            let is_new = |git: &&PathBuf| !state.repositories.contains(git);
            planted.extend(now.iter().filter(is_new).flat_map(|git| find_repository_dangers(git)));
        }
        let moved = planted.into_iter().filter(|path| move_aside(path)).collect();
        if state.waited_for == 0 && !self.is_anything_running() {
            // Only empty folders are removed; content added from outside the sandbox stays.
            for folder in state.made.drain(..) {
                let _ = std::fs::remove_dir(folder);
            }
            state.never.clear();
        }
        moved
    }

    /// Ends all background commands and leftover processes, and removes the placeholders. A program that
    /// exits without dropping this value calls it first.
    pub fn shut_down(&self) {
        self.background.end_all();
        self.processes.end_leftovers();
        self.remove_placeholders();
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        self.shut_down();
    }
}

/// Renames a file or folder so that nothing runs it. Returns whether it existed.
fn move_aside(path: &Path) -> bool {
    let Ok(_) = std::fs::symlink_metadata(path) else { return false };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let free = (0..1_000).map(|number| match number {
        0 => path.with_file_name(format!("{name}.blocked")),
        number => path.with_file_name(format!("{name}.blocked-{number}")),
    });
    let free = free.into_iter().find(|place| std::fs::symlink_metadata(place).is_err());
    free.is_some_and(|place| std::fs::rename(path, place).is_ok())
}
