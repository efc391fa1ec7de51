//! The processes of the system, read from `/proc`. Where there is none, the table is empty.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::PathBuf;

use rustix::process::{Pid, getpid};

/// Characters of a command line that names a process.
const COMMAND_CHARACTERS_MAX: usize = 80;

/// A process for as long as it lives: numbers are given again, but not with the same start.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct ProcessKey {
    pub(crate) pid: i32,
    /// Start time in clock ticks since boot.
    pub(crate) start: u64,
}

/// A process as it was when the table was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ProcessEntry {
    pub(crate) key: ProcessKey,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    pub(crate) session: i32,
    /// Whether it has ended and was not reaped yet.
    pub(crate) is_zombie: bool,
}

/// All processes that can be seen.
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

    /// Whether this very process is in the table and has not ended.
    pub(crate) fn is_alive(&self, key: ProcessKey) -> bool {
        self.entries.get(&key.pid).is_some_and(|entry| entry.key == key && !entry.is_zombie)
    }

    /// Numbers of the processes above a process, its own, and those below it.
    pub(crate) fn lineage(&self, pid: i32) -> BTreeSet<i32> {
        let mut found = self.descendants(&BTreeSet::from([pid]));
        let mut next = Some(pid);
        while let Some(pid) = next.filter(|pid| found.insert(*pid)) {
            next = self.entries.get(&pid).map(|entry| entry.parent);
        }
        found
    }

    /// Processes of a group that have not ended.
    pub(crate) fn group_members(&self, group: i32) -> Vec<ProcessKey> {
        let is_member = |entry: &&ProcessEntry| entry.group == group && !entry.is_zombie;
        self.entries.values().filter(is_member).map(|entry| entry.key).collect()
    }

    /// Numbers of all processes below these, without themselves.
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
        // It is shorter than this, and the kernel gives all of it at once.
        let mut buffer = [0; 1024];
        let length = fs::File::open(proc_path(pid, "stat")).ok()?.read(&mut buffer).ok()?;
        let stat = String::from_utf8_lossy(&buffer[..length]);
        // Behind the name, which may hold anything: state, parent, group, session; the start is the twentieth.
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

    /// This process. Session and group are zero where their leaders live in another space of process numbers.
    pub(crate) fn own() -> Option<ProcessEntry> {
        ProcessEntry::read(own_pid())
    }

    /// Whether it is a child of `own`, this process, that another process started: an orphan that the kernel handed to us.
    /// What we start ourselves is in our session, and in our group or at the head of its own.
    pub(crate) fn is_adopted_by(&self, own: &ProcessEntry) -> bool {
        let is_foreign =
            self.session != own.session || (self.group != own.group && self.group != self.key.pid);
        self.parent == own.key.pid && is_foreign
    }
}

impl ProcessKey {
    /// This process.
    pub(crate) fn own() -> ProcessKey {
        ProcessEntry::own().map_or(ProcessKey { pid: own_pid(), start: 0 }, |entry| entry.key)
    }

    pub(crate) fn as_pid(self) -> Option<Pid> {
        Pid::from_raw(self.pid)
    }

    /// The command line in one line, cut if it is long; the name of the process where it has none.
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

    /// Values of those of these variables that the process was started with, where they may be read.
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

    /// Whether it lives in the same space of process numbers as we do.
    pub(crate) fn shares_our_numbers(self) -> bool {
        let space = |process: PathBuf| fs::read_link(process).ok();
        let own = space(PathBuf::from("/proc/self/ns/pid"));
        own.is_some() && own == space(proc_path(self.pid, "ns/pid"))
    }
}

/// Children of this process, as the kernel lists them by thread; none where it does not.
pub(crate) fn own_children() -> Option<Vec<ProcessEntry>> {
    let mut children = Vec::new();
    let mut is_listed = false;
    for task in fs::read_dir("/proc/self/task").ok()?.flatten() {
        // A thread that has ended meanwhile has left its children to another one: whoever needs to know looks again.
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
