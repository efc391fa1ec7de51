//! Process table of the system, read from `/proc`; empty where that is missing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::PathBuf;

use rustix::process::{Pid, getpid};

/// Maximum characters of a displayed command line.
const COMMAND_CHARACTERS_MAX: usize = 80;

/// Identity of a process: pids are reused, but not with the same start time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct ProcessKey {
    pub(crate) pid: i32,
    /// Start time in clock ticks since boot.
    pub(crate) start: u64,
}

/// Process at the time when the table was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ProcessEntry {
    pub(crate) key: ProcessKey,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    pub(crate) session: i32,
    /// True if it has ended but was not reaped.
    pub(crate) is_zombie: bool,
}

/// Snapshot of all visible processes.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProcessTable {
    entries: BTreeMap<i32, ProcessEntry>,
}

impl ProcessTable {
    pub(crate) fn read() -> ProcessTable {
        let mut entries = BTreeMap::new();
        for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let pid = process.file_name().to_str().and_then(|name| name.parse::<i32>().ok());
            if let Some(entry) = pid.and_then(ProcessEntry::read) {
                entries.insert(entry.key.pid, entry);
            }
        }
        ProcessTable { entries }
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &ProcessEntry> {
        self.entries.values()
    }

    /// Returns whether exactly this process is alive.
    pub(crate) fn is_alive(&self, key: ProcessKey) -> bool {
        self.entries.get(&key.pid).is_some_and(|entry| entry.key == key && !entry.is_zombie)
    }

    /// Pids of the ancestors of a process, its own, and those of its descendants.
    pub(crate) fn lineage(&self, pid: i32) -> BTreeSet<i32> {
        let mut found = self.descendants(&BTreeSet::from([pid]));
        let mut next = Some(pid);
        while let Some(pid) = next.filter(|pid| found.insert(*pid)) {
            next = self.entries.get(&pid).map(|entry| entry.parent);
        }
        found
    }

    /// Living processes of a group.
    pub(crate) fn group_members(&self, group: i32) -> Vec<ProcessKey> {
        let is_member = |entry: &&ProcessEntry| entry.group == group && !entry.is_zombie;
        self.entries.values().filter(is_member).map(|entry| entry.key).collect()
    }

    /// Pids of all descendants of these, without themselves.
    pub(crate) fn descendants(&self, roots: &BTreeSet<i32>) -> BTreeSet<i32> {
        let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
        for entry in self.entries.values() {
            children.entry(entry.parent).or_default().push(entry.key.pid);
        }
        let mut found = BTreeSet::new();
        let mut open: Vec<i32> = roots.iter().copied().collect();
        while let Some(pid) = open.pop() {
            for child in children.get(&pid).into_iter().flatten() {
                if !roots.contains(child) && found.insert(*child) {
                    open.push(*child);
                }
            }
        }
        found
    }
}

impl ProcessEntry {
    pub(crate) fn read(pid: i32) -> Option<ProcessEntry> {
        // The file is shorter than this, and the kernel returns it in one read.
        let mut buffer = [0; 1024];
        let length = fs::File::open(proc_path(pid, "stat")).ok()?.read(&mut buffer).ok()?;
        let stat = String::from_utf8_lossy(&buffer[..length]);
        // After the name, which may contain anything: state, parent, group, session; the start time is the
        // twentieth field.
        let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
        let number = |idx: usize| fields.get(idx).and_then(|field| field.parse::<i32>().ok());
        Some(ProcessEntry {
            key: ProcessKey { pid, start: fields.get(19)?.parse().ok()? },
            parent: number(1)?,
            group: number(2)?,
            session: number(3)?,
            is_zombie: matches!(*fields.first()?, "Z" | "X"),
        })
    }

    /// This process. Session and group are zero if their leaders are in another pid namespace.
    pub(crate) fn own() -> Option<ProcessEntry> {
        ProcessEntry::read(own_pid())
    }

    /// Returns whether it is an orphan adopted by `own`, this process. Processes that we start are in our
    /// session, and in our group or leaders of their own.
    pub(crate) fn is_adopted_by(&self, own: &ProcessEntry) -> bool {
        let is_foreign =
            self.session != own.session || (self.group != own.group && self.group != self.key.pid);
        self.parent == own.key.pid && is_foreign
    }
}

impl ProcessKey {
    /// Identity of this process.
    pub(crate) fn own() -> ProcessKey {
        ProcessEntry::own().map_or(ProcessKey { pid: own_pid(), start: 0 }, |entry| entry.key)
    }

    pub(crate) fn as_pid(self) -> Option<Pid> {
        Pid::from_raw(self.pid)
    }

    /// Command line on one line, truncated if long; the process name if there is none.
    pub(crate) fn command_line(self) -> String {
        let bytes = fs::read(proc_path(self.pid, "cmdline")).unwrap_or_default();
        let words = bytes.split(|byte| *byte == 0).filter(|word| !word.is_empty());
        let mut line = words.map(String::from_utf8_lossy).collect::<Vec<_>>().join(" ");
        if line.is_empty() {
            line = fs::read_to_string(proc_path(self.pid, "comm")).unwrap_or_default();
        }
        let line: String = line
            .chars()
            .map(|letter| if letter.is_control() || letter.is_whitespace() { ' ' } else { letter })
            .collect();
        let line = line.trim();
        match line.char_indices().nth(COMMAND_CHARACTERS_MAX) {
            Some((at, _)) => format!("{}…", &line[..at]),
            None => line.to_owned(),
        }
    }

    /// Initial values of these environment variables, where readable.
    pub(crate) fn variables(self, names: &[&str]) -> Vec<String> {
        let bytes = fs::read(proc_path(self.pid, "environ")).unwrap_or_default();
        let value_of = |variable: &[u8]| {
            names.iter().find_map(|name| {
                let value = variable.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
                Some(String::from_utf8_lossy(value).into_owned())
            })
        };
        bytes.split(|byte| *byte == 0).filter_map(value_of).collect()
    }

    /// Returns whether it is in our pid namespace.
    pub(crate) fn is_in_our_pid_namespace(self) -> bool {
        let space = |process: PathBuf| fs::read_link(process).ok();
        let own = space(PathBuf::from("/proc/self/ns/pid"));
        own.is_some() && own == space(proc_path(self.pid, "ns/pid"))
    }
}

/// Children of this process as listed by the kernel; `None` where unsupported.
pub(crate) fn own_children() -> Option<Vec<ProcessEntry>> {
    let mut children = Vec::new();
    let mut is_listed = false;
    for task in fs::read_dir("/proc/self/task").ok()?.flatten() {
        // A thread that has ended meanwhile left its children to another one; callers poll again.
        let Ok(text) = fs::read_to_string(task.path().join("children")) else { continue };
        is_listed = true;
        children.extend(text.split(' ').filter_map(|pid| ProcessEntry::read(pid.trim().parse().ok()?)));
    }
    is_listed.then_some(children)
}

pub(crate) fn own_pid() -> i32 {
    getpid().as_raw_nonzero().get()
}

fn proc_path(pid: i32, file: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/{file}"))
}
