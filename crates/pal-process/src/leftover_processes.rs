//! Leftover processes of commands: found, terminated and reported.
//!
//! A process group ends with its command. A process that left the group (`setsid`, a double fork, a daemon)
//! is found by its control group, if there is one, and in two other ways: the program adopts orphans
//! ([`adopt_orphans`]), so that all its descendants stay below it; and every command carries variables that
//! name its owner ([`COMMAND_VARIABLE`], [`SESSION_VARIABLE`]), which its processes inherit. A process that
//! is neither below this process nor carries its mark is never ended.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{
    PidfdFlags, Signal, WaitId, WaitIdOptions, getpid, pidfd_open, pidfd_send_signal, set_child_subreaper,
    waitid,
};

use crate::control_group::{self, Containment, ControlGroup};
use crate::process_table::{ProcessEntry, ProcessKey, ProcessTable, own_children, own_pid};
use crate::termination::{FIRST_POLL_INTERVAL, GRACE_PERIOD, KILL_TIMEOUT, SETTLE_TIME, wait_until};

/// Environment variable of all processes of a command: its owner and number.
pub const COMMAND_VARIABLE: &str = "PAL_COMMAND";

/// Environment variable of all processes of a session: its owner and number.
pub const SESSION_VARIABLE: &str = "PAL_SESSION";

/// Maximum poll interval for processes that are to end.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Time for orphans to end by themselves before the process table is read.
const ORPHAN_END_TIME: Duration = Duration::from_millis(10);

/// Leftover process that was terminated.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct EndedProcess {
    /// Pid.
    pub pid: i32,
    /// Command line on one line, truncated if long.
    pub command: String,
}

/// Display of terminated processes: equal command lines once, with their count.
#[derive(Clone, Copy, Debug)]
pub struct EndedProcesses<'a>(pub &'a [EndedProcess]);

impl fmt::Display for EndedProcesses<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut by_command: BTreeMap<&str, Vec<i32>> = BTreeMap::new();
        for process in self.0 {
            by_command.entry(&process.command).or_default().push(process.pid);
        }
        for (at, (command, pids)) in by_command.iter().enumerate() {
            let separator = if at > 0 { ", " } else { "" };
            match pids.as_slice() {
                [pid] => write!(formatter, "{separator}`{command}` (pid {pid})")?,
                several => write!(formatter, "{separator}`{command}` ({} times)", several.len())?,
            }
        }
        Ok(())
    }
}

/// State shared by all commands of this process.
#[derive(Default)]
struct LeftoverState {
    /// Numbers of running commands.
    running: BTreeSet<u64>,
    /// Terminated processes that were not reported yet.
    untold: Vec<EndedProcess>,
}

static SHARED: Mutex<Option<LeftoverState>> = Mutex::new(None);
static NEXT: AtomicU64 = AtomicU64::new(1);
static ADOPTS: AtomicBool = AtomicBool::new(false);
static PROJECT: OnceLock<u64> = OnceLock::new();

fn with_state<T>(ask: impl FnOnce(&mut LeftoverState) -> T) -> T {
    let mut shared: MutexGuard<'_, Option<LeftoverState>> =
        SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    ask(shared.get_or_insert_with(LeftoverState::default))
}

/// Makes this process the parent of every orphan among its descendants, and sets the project of its marks.
/// Call it once, before starting anything; where the system has no subreapers, only the environment marks
/// remain.
pub fn adopt_orphans(project: &Path) {
    let _ = PROJECT.set(project_number(project));
    ADOPTS.store(set_child_subreaper(Some(getpid())).is_ok(), Ordering::Relaxed);
}

/// Returns whether this process ignores hangups, as under `nohup`.
pub fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask & (1 << (Signal::HUP.as_raw() - 1)) != 0
}

/// Owner part of marks: pid and start time of this process, unique in this boot.
fn owner() -> &'static str {
    static OWNER: OnceLock<String> = OnceLock::new();
    OWNER.get_or_init(|| {
        let own = ProcessKey::own();
        format!("{}-{}", own.pid, own.start)
    })
}

/// Mark of a command or a session: owner, number, project.
fn mark_of(number: u64) -> String {
    format!("{}.{number}.{:x}", owner(), PROJECT.get().copied().unwrap_or_default())
}

/// Project part of marks: FNV-1a of its path.
fn project_number(project: &Path) -> u64 {
    let bytes = project.as_os_str().as_bytes().iter();
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Returns whether a mark belongs to our project.
fn is_of_our_project(mark: &str) -> bool {
    let project = mark.rsplit('.').next().and_then(|number| u64::from_str_radix(number, 16).ok());
    project.is_some() && project == PROJECT.get().copied()
}

/// Value of [`COMMAND_VARIABLE`] for a process with the lifetime of this program, such as a server.
pub fn owner_tag() -> String {
    mark_of(0)
}

/// Owner process of a mark.
fn owner_of(mark: &str) -> Option<ProcessKey> {
    let (pid, rest) = mark.split_once('-')?;
    let start = rest.split('.').next()?;
    Some(ProcessKey { pid: pid.parse().ok()?, start: start.parse().ok()? })
}

/// Session whose processes are terminated together.
#[derive(Debug)]
pub struct ProcessSession {
    mark: String,
}

impl Default for ProcessSession {
    fn default() -> ProcessSession {
        ProcessSession { mark: mark_of(NEXT.fetch_add(1, Ordering::Relaxed)) }
    }
}

impl ProcessSession {
    /// Value of [`SESSION_VARIABLE`] for its commands.
    pub fn tag(&self) -> &str {
        &self.mark
    }

    /// Terminates every leftover process of the session. They are among those that [`take_unreported`] gives.
    pub fn end_leftovers(&self) {
        let ended = sweep(|table| marked(table, &self.mark));
        report_later(ended);
    }
}

/// Mark and containment of a running command.
#[derive(Debug)]
pub(crate) struct CommandTag {
    number: u64,
    /// Control group, where supported.
    containment: OnceLock<Containment>,
    /// True if no other command ran at its start: an unmarked orphan could belong to either.
    was_alone: bool,
}

impl CommandTag {
    /// Creates the mark of a command that is about to start.
    pub(crate) fn next() -> CommandTag {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let was_alone = with_state(|shared| {
            shared.running.insert(number);
            shared.running.len() == 1
        });
        CommandTag { number, containment: OnceLock::new(), was_alone }
    }

    /// Records the process of the command.
    pub(crate) fn contain(&self, pid: u32) {
        if let Some(containment) = Containment::of(self.value(), pid.cast_signed()) {
            let _ = self.containment.set(containment);
        }
    }

    /// Records that the process has ended and is about to be reaped.
    pub(crate) fn close(&self) {
        if let Some(containment) = self.containment.get() {
            containment.close();
        }
    }

    /// Environment variable for the command.
    pub(crate) fn variable(&self) -> (OsString, Option<OsString>) {
        (COMMAND_VARIABLE.into(), Some(self.value().into()))
    }

    fn value(&self) -> String {
        mark_of(self.number)
    }

    /// Terminates and returns the leftover processes of the command, which has ended and was reaped.
    pub(crate) fn end_leftovers(&self) -> Vec<EndedProcess> {
        // Leftovers of a command whose first process is gone are our children or their descendants.
        if ADOPTS.load(Ordering::Relaxed) && have_adopted_ended() {
            return Vec::new();
        }
        let value = self.value();
        let is_alone = || {
            self.was_alone && with_state(|shared| shared.running.iter().all(|number| *number == self.number))
        };
        let kill_all = || self.containment.get().map_or((), Containment::kill);
        let ended = sweep_and(kill_all, |table| {
            let mut found = marked(table, &value);
            if let Some(containment) = self.containment.get() {
                let members: BTreeSet<i32> = containment.members().into_iter().collect();
                let is_member = |entry: &&ProcessEntry| members.contains(&entry.key.pid);
                found.extend(with_descendants(table, table.entries().filter(is_member)));
            }
            // A process that removed its mark is recognized by its parent.
            if let Some(own) = ProcessEntry::own().filter(|_| ADOPTS.load(Ordering::Relaxed) && is_alone()) {
                let is_bare = |entry: &&ProcessEntry| {
                    entry.is_adopted_by(&own)
                        && !entry.is_zombie
                        && entry.key.variables(&[COMMAND_VARIABLE]).is_empty()
                };
                found.extend(with_descendants(table, table.entries().filter(is_bare)));
            }
            found
        });
        reap_adopted();
        ended
    }
}

impl Drop for CommandTag {
    fn drop(&mut self) {
        with_state(|shared| shared.running.remove(&self.number));
    }
}

/// Terminates all descendants of this process and all processes with its mark. For a program that is about to
/// exit; they are among those that [`take_unreported`] gives.
pub fn end_descendants() {
    let start = format!("{}.", owner());
    let ended = sweep(|table| {
        let below = table.descendants(&BTreeSet::from([own_pid()]));
        let is_below = |entry: &&ProcessEntry| below.contains(&entry.key.pid);
        let mut found = with_descendants(table, table.entries().filter(is_below));
        found.extend(marked_by(table, None, &|mark| mark.starts_with(&start)));
        found
    });
    report_later(ended);
}

/// Terminates processes of this project whose owner died without ending them, as by `kill -9`. Processes in
/// other pid namespaces and in our own lineage are spared.
pub fn end_abandoned() -> Vec<EndedProcess> {
    let table = ProcessTable::read();
    let is_gone =
        |mark: &str| is_of_our_project(mark) && owner_of(mark).is_some_and(|owner| !table.is_alive(owner));
    let groups = control_group::find_abandoned(is_gone);
    let ended = sweep(|table| {
        let is_gone = |mark: &str| {
            is_of_our_project(mark) && owner_of(mark).is_some_and(|owner| !table.is_alive(owner))
        };
        let spared = table.lineage(own_pid());
        let mut found = marked_by(table, None, &is_gone);
        let members: BTreeSet<i32> = groups.iter().flat_map(ControlGroup::members).collect();
        let is_member = |entry: &&ProcessEntry| members.contains(&entry.key.pid);
        found.extend(with_descendants(table, table.entries().filter(is_member)));
        found.retain(|key| !spared.contains(&key.pid) && key.is_in_our_pid_namespace());
        found
    });
    // A group that contains this process is neither killed nor removed.
    let spared = table.lineage(own_pid());
    for group in groups {
        if group.members().iter().any(|pid| spared.contains(pid)) {
            std::mem::forget(group);
        }
    }
    ended
}

/// Returns processes terminated at the end of a session or the program, each once.
pub fn take_unreported() -> Vec<EndedProcess> {
    let mut untold = with_state(|shared| std::mem::take(&mut shared.untold));
    untold.sort();
    untold.dedup();
    untold
}

/// Keeps processes that were ended for [`take_unreported`].
pub fn report_later(ended: Vec<EndedProcess>) {
    with_state(|shared| shared.untold.extend(ended));
}

/// Processes with this mark and their descendants.
fn marked(table: &ProcessTable, value: &str) -> BTreeSet<ProcessKey> {
    // A subreaper has all its processes below itself.
    let below = ADOPTS.load(Ordering::Relaxed).then(|| table.descendants(&BTreeSet::from([own_pid()])));
    marked_by(table, below.as_ref(), &|mark| mark == value)
}

/// Processes with a matching mark, optionally among given pids, and their descendants.
fn marked_by(
    table: &ProcessTable,
    among: Option<&BTreeSet<i32>>,
    is_meant: &dyn Fn(&str) -> bool,
) -> BTreeSet<ProcessKey> {
    let is_marked = |entry: &&ProcessEntry| {
        !entry.is_zombie
            && entry.key.pid != own_pid()
            && among.is_none_or(|among| among.contains(&entry.key.pid))
            && entry.key.variables(&[COMMAND_VARIABLE, SESSION_VARIABLE]).iter().any(|mark| is_meant(mark))
    };
    with_descendants(table, table.entries().filter(is_marked))
}

fn with_descendants<'a>(
    table: &'a ProcessTable,
    entries: impl Iterator<Item = &'a ProcessEntry>,
) -> BTreeSet<ProcessKey> {
    let mut pids: BTreeSet<i32> = entries.map(|entry| entry.key.pid).collect();
    pids.extend(table.descendants(&pids));
    pids.remove(&own_pid());
    table
        .entries()
        .filter(|entry| pids.contains(&entry.key.pid) && !entry.is_zombie)
        .map(|entry| entry.key)
        .collect()
}

/// Terminates what `find` returns until it returns nothing more; returns those that did not end by
/// themselves.
fn sweep(find: impl Fn(&ProcessTable) -> BTreeSet<ProcessKey>) -> Vec<EndedProcess> {
    sweep_and(|| (), find)
}

/// Like [`sweep`], with `kill_all` called whenever single processes are killed.
fn sweep_and(kill_all: impl Fn(), find: impl Fn(&ProcessTable) -> BTreeSet<ProcessKey>) -> Vec<EndedProcess> {
    let look = || find(&ProcessTable::read());
    let mut found = look();
    if found.is_empty() {
        return Vec::new();
    }
    // Some are about to end by themselves.
    let have_settled = wait_until(SETTLE_TIME, POLL_INTERVAL, || {
        found = look();
        found.is_empty()
    });
    if have_settled {
        reap_adopted();
        return Vec::new();
    }
    let mut ended: BTreeMap<ProcessKey, String> = BTreeMap::new();
    let mut asked = BTreeSet::new();
    let (grace, latest) = (Instant::now() + GRACE_PERIOD, Instant::now() + GRACE_PERIOD + KILL_TIMEOUT);
    while !found.is_empty() && Instant::now() < latest {
        for key in &found {
            ended.entry(*key).or_insert_with(|| key.command_line());
            if Instant::now() >= grace {
                signal(*key, Signal::KILL);
            } else if asked.insert(*key) {
                signal(*key, Signal::TERM);
                // A stopped process handles no signal before it continues.
                signal(*key, Signal::CONT);
            }
        }
        if Instant::now() >= grace {
            kill_all();
        }
        thread::sleep(POLL_INTERVAL);
        reap_adopted();
        found = look();
    }
    ended.into_iter().map(|(key, command)| EndedProcess { pid: key.pid, command }).collect()
}

/// Signals exactly this process, never another one that reuses its pid.
fn signal(key: ProcessKey, signal: Signal) {
    let Some(process) = key.as_pid().and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else {
        return;
    };
    if ProcessEntry::read(key.pid).is_some_and(|entry| entry.key == key) {
        // It fails if the process has ended meanwhile, which is fine.
        let _ = pidfd_send_signal(&process, signal);
    }
}

/// Returns whether all adopted orphans end within a moment, in which a sandbox's own processes end; false if
/// unknown. Reaps those that have ended.
fn have_adopted_ended() -> bool {
    let until = Instant::now() + ORPHAN_END_TIME;
    loop {
        match living_adopted() {
            Some(0) => return true,
            Some(_) if Instant::now() < until => thread::sleep(FIRST_POLL_INTERVAL),
            Some(_) | None => return false,
        }
    }
}

/// Number of living adopted orphans, if the system lists our children. Reaps the others.
pub(crate) fn living_adopted() -> Option<usize> {
    let own = ProcessEntry::own()?;
    let (ended, living): (Vec<_>, Vec<_>) = own_children()?
        .into_iter()
        .filter(|child| child.is_adopted_by(&own))
        .partition(|child| child.is_zombie);
    ended.iter().for_each(reap);
    Some(living.len())
}

/// Reaps ended adopted orphans. Children that we started are left to their waiters.
fn reap_adopted() {
    let Some(own) = ProcessEntry::own() else { return };
    let is_ours = |entry: &&ProcessEntry| entry.is_zombie && entry.is_adopted_by(&own);
    ProcessTable::read().entries().filter(is_ours).for_each(reap);
}

fn reap(entry: &ProcessEntry) {
    if let Some(pid) = entry.key.as_pid() {
        let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
    }
}
