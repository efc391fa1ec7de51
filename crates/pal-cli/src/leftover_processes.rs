//! Processes that commands leave behind: the program ends all of them and reports each.

use pal_process::{
    EndedProcess, EndedProcesses, adopt_orphans, end_abandoned, end_descendants, take_unreported,
};

/// Ends all descendant processes when dropped, and reports them.
#[must_use = "processes are ended when it is dropped"]
pub(crate) struct LeftoverGuard;

impl LeftoverGuard {
    /// Adopts orphaned descendants from now on, and ends processes that a killed pal of this directory left.
    pub(crate) fn begin() -> LeftoverGuard {
        let directory = std::env::current_dir().unwrap_or_default();
        adopt_orphans(&directory.canonicalize().unwrap_or(directory));
        report("a killed session of this project", &end_abandoned());
        LeftoverGuard
    }
}

impl Drop for LeftoverGuard {
    fn drop(&mut self) {
        end_and_report();
    }
}

/// Ends all descendant processes and reports them. Call it before exiting without dropping the guard.
pub(crate) fn end_and_report() {
    end_descendants();
    report("this session", &take_unreported());
}

fn report(session: &str, ended: &[EndedProcess]) {
    if !ended.is_empty() {
        let count = ended.len();
        let processes = if count == 1 { "process" } else { "processes" };
        eprintln!("pal: ended {count} {processes} that {session} left running: {}", EndedProcesses(ended));
    }
}
