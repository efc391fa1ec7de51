//! Processes that commands leave behind: none outlives the program, and each is told.

use pal_process::{EndedProcess, EndedProcesses, adopt_orphans, end_abandoned, end_descendants, take_untold};

/// Ends every process below the program when it is dropped, however that comes about, and tells which.
#[must_use = "processes are ended when it is dropped"]
pub(crate) struct LeftoverGuard;

impl LeftoverGuard {
    /// Adopts all orphans from now on, and ends what an earlier program could not end because it was killed.
    pub(crate) fn begin() -> LeftoverGuard {
        let directory = std::env::current_dir().unwrap_or_default();
        adopt_orphans(&directory.canonicalize().unwrap_or(directory));
        tell("an earlier session of this project, which was killed,", &end_abandoned());
        LeftoverGuard
    }
}

impl Drop for LeftoverGuard {
    fn drop(&mut self) {
        end_and_tell();
    }
}

/// Ends every process below the program and tells which. A program that exits without dropping the guard calls it first.
pub(crate) fn end_and_tell() {
    end_descendants();
    tell("this session", &take_untold());
}

fn tell(who: &str, ended: &[EndedProcess]) {
    if !ended.is_empty() {
        let count = ended.len();
        let processes = if count == 1 { "process" } else { "processes" };
        eprintln!("pal: ended {count} {processes} that {who} had left running: {}", EndedProcesses(ended));
    }
}
