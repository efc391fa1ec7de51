//! Control groups (cgroup v2) for commands, where our own group was delegated to us.
//!
//! A process cannot leave its control group, not even by a new session, parent or environment, and a group is
//! killed at once. Where none can be created, or the kernel is older than `cgroup.kill`, commands run
//! without.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use crate::process_table::ProcessTable;

/// Name prefix of our groups; owner and number of the command follow.
const PREFIX: &str = "pal-";

/// Run time after which a command gets a group.
const CONTAIN_AFTER: Duration = Duration::from_millis(50);

/// Maximum attempts to remove a group whose last processes are ending.
const REMOVALS: usize = 20;
const REMOVE_EVERY: Duration = Duration::from_millis(5);

/// Control group of one command with all its processes. Dropping it kills and removes the group.
#[derive(Debug)]
pub(crate) struct ControlGroup {
    path: PathBuf,
}

impl ControlGroup {
    /// Creates a group for the command with this mark; `None` if unsupported.
    fn create(mark: &str) -> Option<ControlGroup> {
        let parent = own_directory()?;
        ControlGroup::create_in(parent, mark).ok()
    }

    fn create_in(parent: &Path, mark: &str) -> io::Result<ControlGroup> {
        let path = parent.join(format!("{PREFIX}{mark}"));
        fs::create_dir(&path)?;
        let group = ControlGroup { path };
        // Before Linux 5.14 a group cannot be killed at once.
        match group.path.join("cgroup.kill").exists() {
            true => Ok(group),
            false => Err(io::Error::from(io::ErrorKind::Unsupported)),
        }
    }

    /// Moves processes into the group; their later children are in it, too.
    fn add(&self, pids: impl IntoIterator<Item = i32>) {
        let members = self.path.join("cgroup.procs");
        for pid in pids {
            // A process that has ended meanwhile needs no group.
            let _ = fs::write(&members, pid.to_string());
        }
    }

    /// Pids in the group.
    pub(crate) fn members(&self) -> Vec<i32> {
        let text = fs::read_to_string(self.path.join("cgroup.procs")).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// Kills all processes in the group.
    pub(crate) fn kill(&self) {
        let _ = fs::write(self.path.join("cgroup.kill"), "1");
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        for _ in 0..REMOVALS {
            if fs::remove_dir(&self.path).is_ok() {
                return;
            }
            self.kill();
            thread::sleep(REMOVE_EVERY);
        }
    }
}

/// Control group of a running command, created only after [`CONTAIN_AFTER`], because moving a process delays
/// every other process by milliseconds. Leftovers of a shorter command are found by mark and parentage.
#[derive(Debug)]
pub(crate) struct Containment {
    state: Arc<Mutex<ContainmentState>>,
    /// Dropping it ends the waiting thread.
    _running: Sender<()>,
}

#[derive(Debug)]
enum ContainmentState {
    Waiting,
    Held(ControlGroup),
    Ended,
}

impl Containment {
    /// Starts containment of the command with this mark, whose first process was just started.
    pub(crate) fn of(mark: String, pid: i32) -> Option<Containment> {
        own_directory()?;
        let state = Arc::new(Mutex::new(ContainmentState::Waiting));
        let (running, ended) = channel();
        let shared = Arc::clone(&state);
        thread::Builder::new()
            .name("pal-cgroup".to_owned())
            .spawn(move || {
                if ended.recv_timeout(CONTAIN_AFTER) == Err(RecvTimeoutError::Timeout) {
                    contain(&shared, &mark, pid);
                }
            })
            .ok()?;
        Some(Containment { state, _running: running })
    }

    /// Creates no group from now on. Must be called before the command's first process is reaped, since its
    /// pid may then be reused.
    pub(crate) fn close(&self) {
        let mut state = lock(&self.state);
        if matches!(*state, ContainmentState::Waiting) {
            *state = ContainmentState::Ended;
        }
    }

    /// Pids in the group, if it was created.
    pub(crate) fn members(&self) -> Vec<i32> {
        match &*lock(&self.state) {
            ContainmentState::Held(group) => group.members(),
            ContainmentState::Waiting | ContainmentState::Ended => Vec::new(),
        }
    }

    /// Kills all processes in the group, if it was created.
    pub(crate) fn kill(&self) {
        if let ContainmentState::Held(group) = &*lock(&self.state) {
            group.kill();
        }
    }
}

fn lock(state: &Mutex<ContainmentState>) -> MutexGuard<'_, ContainmentState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Moves a process and its descendants into a new group, unless the command has ended.
fn contain(state: &Mutex<ContainmentState>, mark: &str, pid: i32) {
    let mut state = lock(state);
    if !matches!(*state, ContainmentState::Waiting) {
        return;
    }
    let Some(group) = ControlGroup::create(mark) else { return };
    // The parent first, so that no new child is missed.
    group.add([pid]);
    group.add(ProcessTable::read().descendants(&BTreeSet::from([pid])));
    *state = ContainmentState::Held(group);
}

/// Groups next to ours whose owner is gone.
pub(crate) fn find_abandoned(is_gone: impl Fn(&str) -> bool) -> Vec<ControlGroup> {
    let entries = own_directory().and_then(|parent| fs::read_dir(parent).ok());
    let groups = entries.into_iter().flatten().flatten();
    let is_abandoned = |path: &PathBuf| {
        let mark = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_prefix(PREFIX));
        mark.is_some_and(&is_gone)
    };
    groups.map(|entry| entry.path()).filter(is_abandoned).map(|path| ControlGroup { path }).collect()
}

/// Directory of our own control group, if groups can be created in it.
fn own_directory() -> Option<&'static Path> {
    static DIRECTORY: OnceLock<Option<PathBuf>> = OnceLock::new();
    DIRECTORY
        .get_or_init(|| {
            let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
            let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
            directory_of(&mounts, &groups).filter(|directory| directory.join("cgroup.procs").exists())
        })
        .as_deref()
}

/// Directory of a control group, from `mountinfo` and `cgroup`.
fn directory_of(mounts: &str, groups: &str) -> Option<PathBuf> {
    let own = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let (root, point) = mounts.lines().find_map(|line| {
        // Fields: identifiers, device, mount root, mount point; the type follows a dash.
        let (before, after) = line.split_once(" - ")?;
        let mut fields = before.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        after.starts_with("cgroup2 ").then_some((root, point))
    })?;
    let below = Path::new(own).strip_prefix(root).ok()?;
    Some(Path::new(point).join(below))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_is_found_by_mount_and_group() {
        let plain = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n";
        let scope = "0::/user.slice/user-1000.slice/app.scope\n";
        let expected = "/sys/fs/cgroup/user.slice/user-1000.slice/app.scope";
        assert_eq!(directory_of(plain, scope), Some(PathBuf::from(expected)));
        let hybrid = "1 2 0:1 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n\
                      2 2 0:2 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let both = "5:pids:/x\n0::/\n";
        assert_eq!(directory_of(hybrid, both), Some(PathBuf::from("/sys/fs/cgroup/unified/")));
        let container = "2 2 0:2 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        assert_eq!(directory_of(container, "0::/docker/abc/x\n"), Some(PathBuf::from("/sys/fs/cgroup/x")));
        assert_eq!(directory_of(container, "0::/elsewhere\n"), None);
        assert_eq!(
            directory_of("1 2 0:1 / /x rw - cgroup cgroup rw\n", "0::/\n"),
            None,
            "only the first version"
        );
        assert_eq!(directory_of(plain, "5:pids:/x\n"), None);
    }

    #[test]
    fn a_group_without_cgroup_kill_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        assert!(ControlGroup::create_in(folder.path(), "1-2.3").is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "and nothing of it stays");
    }
}
