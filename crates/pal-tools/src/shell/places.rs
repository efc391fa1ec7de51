//! Empty folders that hold a place in the workspace while commands run behind the fence, and are gone afterwards.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pal_sandbox::{Planted, Policy};

use super::{Sandbox, Shell};

/// What the fence put into the workspace, and who needs it.
#[derive(Debug, Default)]
pub(super) struct Places(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Empty folders that are ours.
    made: Vec<PathBuf>,
    /// What must not come to be.
    never: Vec<PathBuf>,
    /// How many commands are waited for.
    waited_for: usize,
}

impl Places {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One command that is waited for, or being started: as long as it lives, the places are held.
pub(super) struct Holding<'a>(&'a Shell);

impl Holding<'_> {
    /// Holds the places of a sandbox, as the workspace is now; what a command may do that starts now.
    pub(super) fn start<'a>(shell: &'a Shell, sandbox: &Sandbox) -> (Holding<'a>, Policy) {
        let mut policy = sandbox.policy.clone();
        let mut state = shell.places.state();
        for root in &sandbox.guarded {
            let planted = Planted::look(root);
            policy.read_only.extend(planted.read_only);
            let new =
                planted.never.into_iter().filter(|path| !state.never.contains(path)).collect::<Vec<_>>();
            state.never.extend(new);
        }
        let made = sandbox.fence.hold_places(&policy);
        state.made.extend(made);
        state.waited_for += 1;
        drop(state);
        (Holding(shell), policy)
    }
}

impl Drop for Holding<'_> {
    fn drop(&mut self) {
        self.0.places.state().waited_for -= 1;
        self.0.tidy();
    }
}

impl Shell {
    /// Takes away what commands must not make, and the folders that held places if no command runs any more. What was
    /// taken away of the former.
    pub(super) fn tidy(&self) -> Vec<PathBuf> {
        let mut state = self.places.state();
        let removed = state.never.iter().filter(|path| std::fs::remove_file(path).is_ok()).cloned().collect();
        if state.waited_for == 0 && !self.is_anything_running() {
            // Only an empty folder goes; what somebody put in meanwhile, from outside of the fence, stays.
            for folder in state.made.drain(..) {
                let _ = std::fs::remove_dir(folder);
            }
            state.never.clear();
        }
        removed
    }

    /// Ends all commands in the background, and takes away what the fence needed. A program that exits without dropping
    /// this value calls it first.
    pub fn end(&self) {
        self.background.end_all();
        self.tidy();
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        self.end();
    }
}
