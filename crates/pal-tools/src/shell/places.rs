//! Empty folders that hold a place in the workspace while commands run behind the fence, and are gone afterwards.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pal_sandbox::{Fence, Policy, dangers_of_repository};

use super::Shell;

/// What the fence put into the workspace, and who needs it.
#[derive(Debug, Default)]
pub(super) struct Places(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Empty folders that are ours.
    made: Vec<PathBuf>,
    /// What must not come to be.
    never: Vec<PathBuf>,
    /// Repositories that were there before.
    repositories: Vec<PathBuf>,
    /// How many commands are waited for.
    waited_for: usize,
}

impl Places {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One command that is waited for, or being started: as long as it lives, the places are held. The caller that drops it calls
/// [`Shell::tidy`] then.
pub(super) struct Holding<'a>(&'a Shell);

impl Holding<'_> {
    /// Holds the places of a sandbox; `never` is what must not come to be, `repositories` are there already.
    pub(super) fn start<'a>(
        shell: &'a Shell,
        fence: &Fence,
        policy: &Policy,
        (never, repositories): (Vec<PathBuf>, Vec<PathBuf>),
    ) -> Holding<'a> {
        let mut state = shell.places.state();
        let new: Vec<_> = never.into_iter().filter(|path| !state.never.contains(path)).collect();
        state.never.extend(new);
        if state.waited_for == 0 && !shell.is_anything_running() {
            state.repositories = repositories;
        }
        let made = fence.hold_places(policy);
        state.made.extend(made);
        state.waited_for += 1;
        drop(state);
        Holding(shell)
    }
}

impl Drop for Holding<'_> {
    fn drop(&mut self) {
        self.0.places.state().waited_for -= 1;
    }
}

impl Shell {
    /// Moves aside what commands must not make, and takes the folders away that held places if no command runs any more.
    /// What was moved, by its old name.
    pub(super) fn tidy(&self) -> Vec<PathBuf> {
        let mut state = self.places.state();
        if state.waited_for == 0 && state.made.is_empty() && state.never.is_empty() {
            return Vec::new();
        }
        let mut planted: Vec<PathBuf> = state.never.clone();
        if let Some(sandbox) = &self.sandbox {
            let now = sandbox.findings().repositories;
            let is_new = |git: &&PathBuf| !state.repositories.contains(git);
            planted.extend(now.iter().filter(is_new).flat_map(|git| dangers_of_repository(git)));
        }
        let moved = planted.into_iter().filter(|path| move_aside(path)).collect();
        if state.waited_for == 0 && !self.is_anything_running() {
            // Only an empty folder goes; what somebody put in meanwhile, from outside of the fence, stays.
            for folder in state.made.drain(..) {
                let _ = std::fs::remove_dir(folder);
            }
            state.never.clear();
        }
        moved
    }

    /// Ends all commands in the background and every process that commands left behind, and takes away what the fence needed.
    /// A program that exits without dropping this value calls it first.
    pub fn end(&self) {
        self.background.end_all();
        self.processes.end_leftovers();
        self.tidy();
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        self.end();
    }
}

/// Gives a file or folder a name under which nothing runs it. Whether it was there.
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
