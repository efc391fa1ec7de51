//! Processes that commands leave behind, wherever they went: found, ended and told.
//!
//! A process group ends with its command. A process that left the group (`setsid`, a double fork, a daemon) is found in two
//! other ways, besides the control group that holds it where there are such groups: the program adopts orphans ([`adopt_orphans`]), so that whatever it started stays below it; and every command
//! carries variables that say whose it is ([`COMMAND_VARIABLE`], [`SESSION_VARIABLE`]), which its processes inherit. Nothing is
//! ended that is neither below this process nor carries its mark.

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
use crate::group::{GRACE, KILL_TIME, LOOK_FIRST, SETTLE, wait_until};
use crate::process_table::{ProcessEntry, ProcessKey, ProcessTable, own_children, own_pid};

/// Variable of every process that a command started: owner and number of the command.
pub const COMMAND_VARIABLE: &str = "PAL_COMMAND";

/// Variable of every process that a session started: owner and number of the session.
pub const SESSION_VARIABLE: &str = "PAL_SESSION";

/// The longest interval between looks at processes that are to end.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How long orphans may take to end by themselves before all processes are looked at.
const ADOPTED_END: Duration = Duration::from_millis(10);

/// A process that a command had left behind and that was ended.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct EndedProcess {
    /// Its number.
    pub pid: i32,
    /// Its command line in one line, cut if it is long.
    pub command: String,
}

/// Names processes for a person or a model: equal command lines once, with their number.
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

/// State that all commands of this process share.
#[derive(Default)]
struct Shared {
    /// Commands that run, by number.
    running: BTreeSet<u64>,
    /// Processes that were ended and that nobody was told of.
    untold: Vec<EndedProcess>,
}

static SHARED: Mutex<Option<Shared>> = Mutex::new(None);
static NEXT: AtomicU64 = AtomicU64::new(1);
static ADOPTS: AtomicBool = AtomicBool::new(false);
static PROJECT: OnceLock<u64> = OnceLock::new();

fn with_shared<T>(ask: impl FnOnce(&mut Shared) -> T) -> T {
    let mut shared: MutexGuard<'_, Option<Shared>> = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    ask(shared.get_or_insert_with(Shared::default))
}

/// Makes this process the parent of every orphan among its descendants, so that none gets out of sight, and names the project
/// that its marks are of. A program calls it once, before it starts anything; where the system has no such thing, marks in the
/// environment are all that is left.
pub fn adopt_orphans(project: &Path) {
    let _ = PROJECT.set(project_number(project));
    ADOPTS.store(set_child_subreaper(Some(getpid())).is_ok(), Ordering::Relaxed);
}

/// Whether this process was started so that the end of its terminal does not end it, as by `nohup`.
pub fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask & (1 << (Signal::HUP.as_raw() - 1)) != 0
}

/// This process in marks: its number and its start, which no other process of this boot shares.
fn owner() -> &'static str {
    static OWNER: OnceLock<String> = OnceLock::new();
    OWNER.get_or_init(|| {
        let own = ProcessKey::own();
        format!("{}-{}", own.pid, own.start)
    })
}

/// The mark of a command or a session by its number: owner, number, project.
fn mark_of(number: u64) -> String {
    format!("{}.{number}.{:x}", owner(), PROJECT.get().copied().unwrap_or_default())
}

/// A number that stands for a project in marks: FNV-1a over its path.
fn project_number(project: &Path) -> u64 {
    let bytes = project.as_os_str().as_bytes().iter();
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Whether a mark is of the same project as ours.
fn is_of_our_project(mark: &str) -> bool {
    let project = mark.rsplit('.').next().and_then(|number| u64::from_str_radix(number, 16).ok());
    project.is_some() && project == PROJECT.get().copied()
}

/// Value of [`COMMAND_VARIABLE`] for a process that lives as long as this program, such as a server.
pub fn owner_mark() -> String {
    mark_of(0)
}

/// The owner that a mark names.
fn owner_of(mark: &str) -> Option<ProcessKey> {
    let (pid, rest) = mark.split_once('-')?;
    let start = rest.split('.').next()?;
    Some(ProcessKey { pid: pid.parse().ok()?, start: start.parse().ok()? })
}

/// A session whose processes are ended together.
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
    pub fn mark(&self) -> &str {
        &self.mark
    }

    /// Ends every process that the session left behind. They are among those that [`take_untold`] gives.
    pub fn end_leftovers(&self) {
        let ended = sweep(|table| marked(table, &self.mark));
        tell_later(ended);
    }
}

/// A command that runs, as far as it concerns the processes that it leaves behind.
#[derive(Debug)]
pub(crate) struct CommandTag {
    number: u64,
    /// The control group that holds it, where there are such groups.
    containment: OnceLock<Containment>,
    /// Whether another command ran meanwhile: an orphan without a mark may be of either.
    was_alone: bool,
}

impl CommandTag {
    /// A mark for a command that is about to start.
    pub(crate) fn next() -> CommandTag {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let was_alone = with_shared(|shared| {
            shared.running.insert(number);
            shared.running.len() == 1
        });
        CommandTag { number, containment: OnceLock::new(), was_alone }
    }

    /// Notes the process that was started for the command.
    pub(crate) fn contain(&self, pid: u32) {
        if let Some(containment) = Containment::of(self.value(), pid.cast_signed()) {
            let _ = self.containment.set(containment);
        }
    }

    /// Notes that the process has ended and is about to be reaped.
    pub(crate) fn close(&self) {
        if let Some(containment) = self.containment.get() {
            containment.close();
        }
    }

    /// The variable that the command is started with.
    pub(crate) fn variable(&self) -> (OsString, Option<OsString>) {
        (COMMAND_VARIABLE.into(), Some(self.value().into()))
    }

    fn value(&self) -> String {
        mark_of(self.number)
    }

    /// Ends every process that the command left behind, and gives them. The command itself has ended and was reaped.
    pub(crate) fn end_leftovers(&self) -> Vec<EndedProcess> {
        // What is left of a command whose first process is gone has been handed to us, or is below what was.
        if ADOPTS.load(Ordering::Relaxed) && have_adopted_ended() {
            return Vec::new();
        }
        let value = self.value();
        let is_alone = || {
            self.was_alone && with_shared(|shared| shared.running.iter().all(|number| *number == self.number))
        };
        let kill_all = || self.containment.get().map_or((), Containment::kill);
        let ended = sweep_and(kill_all, |table| {
            let mut found = marked(table, &value);
            if let Some(containment) = self.containment.get() {
                let members: BTreeSet<i32> = containment.members().into_iter().collect();
                let is_member = |entry: &&ProcessEntry| members.contains(&entry.key.pid);
                found.extend(with_descendants(table, table.entries().filter(is_member)));
            }
            // A process that took its mark off is recognised by where it is now.
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
        with_shared(|shared| shared.running.remove(&self.number));
    }
}

/// Ends everything below this process, whoever started it, and whatever carries its mark. For a program that is about to exit:
/// they are among those that [`take_untold`] gives.
pub fn end_descendants() {
    let start = format!("{}.", owner());
    let ended = sweep(|table| {
        let below = table.descendants(&BTreeSet::from([own_pid()]));
        let is_below = |entry: &&ProcessEntry| below.contains(&entry.key.pid);
        let mut found = with_descendants(table, table.entries().filter(is_below));
        found.extend(marked_by(table, None, &|mark| mark.starts_with(&start)));
        found
    });
    tell_later(ended);
}

/// Ends processes of this project whose program died without ending them, as by `kill -9`: their mark names an owner that is
/// gone. Left alone are processes in other spaces of process numbers, and those that this process itself came from.
pub fn end_abandoned() -> Vec<EndedProcess> {
    let table = ProcessTable::read();
    let is_gone =
        |mark: &str| is_of_our_project(mark) && owner_of(mark).is_some_and(|owner| !table.is_alive(owner));
    let groups = control_group::abandoned(is_gone);
    let ended = sweep(|table| {
        let is_gone = |mark: &str| {
            is_of_our_project(mark) && owner_of(mark).is_some_and(|owner| !table.is_alive(owner))
        };
        let spared = table.lineage(own_pid());
        let mut found = marked_by(table, None, &is_gone);
        let members: BTreeSet<i32> = groups.iter().flat_map(ControlGroup::members).collect();
        let is_member = |entry: &&ProcessEntry| members.contains(&entry.key.pid);
        found.extend(with_descendants(table, table.entries().filter(is_member)));
        found.retain(|key| !spared.contains(&key.pid) && key.shares_our_numbers());
        found
    });
    // A group that holds this process itself is neither killed nor removed.
    let spared = table.lineage(own_pid());
    for group in groups {
        if group.members().iter().any(|pid| spared.contains(pid)) {
            std::mem::forget(group);
        }
    }
    ended
}

/// Processes that were ended at the end of a session or of the program, each given once.
pub fn take_untold() -> Vec<EndedProcess> {
    let mut untold = with_shared(|shared| std::mem::take(&mut shared.untold));
    untold.sort();
    untold.dedup();
    untold
}

/// Keeps processes that were ended for [`take_untold`].
pub fn tell_later(ended: Vec<EndedProcess>) {
    with_shared(|shared| shared.untold.extend(ended));
}

/// Processes with this mark, and all below them.
fn marked(table: &ProcessTable, value: &str) -> BTreeSet<ProcessKey> {
    // Who adopts orphans has every process of its own below itself.
    let below = ADOPTS.load(Ordering::Relaxed).then(|| table.descendants(&BTreeSet::from([own_pid()])));
    marked_by(table, below.as_ref(), &|mark| mark == value)
}

/// Processes, among these numbers if they are given, with a mark that is meant, and all below them.
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

/// Ends what `find` finds until it finds nothing more, and gives what did not end by itself.
fn sweep(find: impl Fn(&ProcessTable) -> BTreeSet<ProcessKey>) -> Vec<EndedProcess> {
    sweep_and(|| (), find)
}

/// The same; `kill_all` is called whenever single processes are killed.
fn sweep_and(kill_all: impl Fn(), find: impl Fn(&ProcessTable) -> BTreeSet<ProcessKey>) -> Vec<EndedProcess> {
    let look = || find(&ProcessTable::read());
    let mut found = look();
    if found.is_empty() {
        return Vec::new();
    }
    // Some are about to end anyhow.
    let have_settled = wait_until(SETTLE, LOOK_EVERY, || {
        found = look();
        found.is_empty()
    });
    if have_settled {
        reap_adopted();
        return Vec::new();
    }
    let mut ended: BTreeMap<ProcessKey, String> = BTreeMap::new();
    let mut asked = BTreeSet::new();
    let (grace, latest) = (Instant::now() + GRACE, Instant::now() + GRACE + KILL_TIME);
    while !found.is_empty() && Instant::now() < latest {
        for key in &found {
            ended.entry(*key).or_insert_with(|| key.command_line());
            if Instant::now() >= grace {
                signal(*key, Signal::KILL);
            } else if asked.insert(*key) {
                signal(*key, Signal::TERM);
                // A stopped process hears nothing before it goes on.
                signal(*key, Signal::CONT);
            }
        }
        if Instant::now() >= grace {
            kill_all();
        }
        thread::sleep(LOOK_EVERY);
        reap_adopted();
        found = look();
    }
    ended.into_iter().map(|(key, command)| EndedProcess { pid: key.pid, command }).collect()
}

/// Signals this very process, and never another one that was given its number.
fn signal(key: ProcessKey, signal: Signal) {
    let Some(process) = key.as_pid().and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else {
        return;
    };
    if ProcessEntry::read(key.pid).is_some_and(|entry| entry.key == key) {
        // It fails where it has ended meanwhile, which is what was wanted.
        let _ = pidfd_send_signal(&process, signal);
    }
}

/// Whether no orphan that was handed to us is left after a moment, in which a sandbox's own processes end; no where that cannot
/// be told. Those that have ended are reaped.
fn have_adopted_ended() -> bool {
    let until = Instant::now() + ADOPTED_END;
    loop {
        match living_adopted() {
            Some(0) => return true,
            Some(_) if Instant::now() < until => thread::sleep(LOOK_FIRST),
            Some(_) | None => return false,
        }
    }
}

/// The number of orphans that were handed to us and have not ended, where the system lists our children. Others are reaped.
pub(crate) fn living_adopted() -> Option<usize> {
    let own = ProcessEntry::own()?;
    let (ended, living): (Vec<_>, Vec<_>) = own_children()?
        .into_iter()
        .filter(|child| child.is_adopted_by(&own))
        .partition(|child| child.is_zombie);
    ended.iter().for_each(reap);
    Some(living.len())
}

/// Reaps orphans that were handed to us and have ended. Children that we started ourselves are left to who waits for them.
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
