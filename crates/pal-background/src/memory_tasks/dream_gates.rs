//! Gates of a dream (§7.5), cheapest first. Each reads the disk once; the time is an argument.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::background_config::DreamGateSettings;
use pal_mailbox::ProcessIdentity;
use pal_memory::MemoryLocation;
use pal_model::Timestamp;
use pal_store::project_directory;
use serde::Serialize;

use super::dream_lock;

/// Minimum interval between session scans.
const SCAN_INTERVAL_MIN: Duration = Duration::from_secs(600);

/// File whose modification time is that of the last session scan.
const SCANNED: &str = ".consolidate-scanned";

/// Gates of a project.
#[derive(Clone, Debug)]
pub struct DreamGates {
    /// Settings.
    pub settings: DreamGateSettings,
    /// Memory directory.
    pub memory: PathBuf,
    /// Directory of all sessions.
    pub sessions: PathBuf,
    /// The asking session, which is not counted.
    pub session: Option<String>,
}

/// State of one gate.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct DreamGate {
    /// Name: `on`, `time`, `scan`, `sessions`, `lock`.
    pub name: &'static str,
    /// Whether it is open.
    pub is_open: bool,
    /// Reason.
    pub why: String,
}

impl DreamGates {
    /// Gates of a project. `project` is shared by its worktrees.
    pub fn of_project(
        home: &Path,
        project: &Path,
        settings: DreamGateSettings,
        session: Option<String>,
    ) -> DreamGates {
        let memory = MemoryLocation::of_project(home, project).directory;
        DreamGates { settings, memory, sessions: project_directory(home, project).join("sessions"), session }
    }

    /// Returns the first closed gate, without checking more expensive ones.
    pub fn closed(&self, now: Timestamp) -> Option<DreamGate> {
        let gates: [fn(&DreamGates, Timestamp) -> DreamGate; 5] =
            [DreamGates::on, DreamGates::time, DreamGates::scan, DreamGates::others, DreamGates::lock];
        let closed = gates.iter().map(|gate| gate(self, now)).find(|gate| !gate.is_open);
        if closed.as_ref().is_some_and(|gate| gate.name == "sessions") {
            self.note_scanned(now);
        }
        closed
    }

    /// States of all gates.
    pub fn all(&self, now: Timestamp) -> Vec<DreamGate> {
        vec![self.on(now), self.time(now), self.scan(now), self.others(now), self.lock(now)]
    }

    fn on(&self, _: Timestamp) -> DreamGate {
        let is_open = self.settings.is_on;
        let why = if is_open { "dreaming is on" } else { "dreaming is switched off" };
        gate("on", is_open, why)
    }

    fn time(&self, now: Timestamp) -> DreamGate {
        let last = dream_lock::last(&self.memory, &ProcessIdentity::is_alive);
        let every = self.settings.every;
        match (last, left(last, now, every)) {
            (None, _) => gate("time", true, "memories were never put in order"),
            (Some(last), None) => gate("time", true, &format!("the last time was {}", ago(last, now))),
            (Some(last), Some(left)) => {
                let hours = every.as_secs() / 3_600;
                let why = format!(
                    "the last time was {}, and it is done every {hours} h: {} to go",
                    ago(last, now),
                    long(left)
                );
                gate("time", false, &why)
            }
        }
    }

    fn scan(&self, now: Timestamp) -> DreamGate {
        let scanned = modified(&self.memory.join(SCANNED));
        match left(scanned, now, SCAN_INTERVAL_MIN) {
            None => gate("scan", true, "sessions were not counted in the last 10 min"),
            Some(_) => gate("scan", false, "sessions were counted less than 10 min ago"),
        }
    }

    fn others(&self, _: Timestamp) -> DreamGate {
        let last = dream_lock::last(&self.memory, &ProcessIdentity::is_alive);
        let there = self.sessions_since(last);
        let wanted = self.settings.sessions;
        gate(
            "sessions",
            there >= wanted,
            &format!("{there} other sessions since then, of {wanted} that are wanted"),
        )
    }

    fn lock(&self, now: Timestamp) -> DreamGate {
        match dream_lock::holder(&self.memory, &ProcessIdentity::is_alive) {
            None => gate("lock", true, "no other process does it"),
            Some(held) => gate("lock", false, &held.told(now)),
        }
    }

    /// Other sessions changed since then.
    fn sessions_since(&self, last: Option<Timestamp>) -> usize {
        let folders = std::fs::read_dir(&self.sessions).into_iter().flatten().flatten();
        let is_other = |name: &str| self.session.as_deref() != Some(name);
        let is_later = |path: &Path| {
            modified(&pal_store::log_path(path)).is_some_and(|changed| last.is_none_or(|last| changed > last))
        };
        folders
            .filter(|folder| is_other(&folder.file_name().to_string_lossy()) && is_later(&folder.path()))
            .count()
    }

    fn note_scanned(&self, now: Timestamp) {
        let file = self.memory.join(SCANNED);
        // On failure, the next check scans again.
        let noted = pal_store::replace_private_file(&file, b"")
            .and_then(|()| std::fs::File::open(&file)?.set_modified(dream_lock::system_time(now)));
        if let Err(error) = noted {
            tracing::debug!(%error, "that sessions were counted is not noted");
        }
    }
}

fn gate(name: &'static str, is_open: bool, why: &str) -> DreamGate {
    DreamGate { name, is_open, why: why.to_owned() }
}

/// Remaining part of an interval; none if it is over. A start in the future means that the clock was set back
/// and counts as over.
fn left(since: Option<Timestamp>, now: Timestamp, whole: Duration) -> Option<Duration> {
    let passed = u64::try_from(now.milliseconds() - since?.milliseconds()).ok()?;
    whole.checked_sub(Duration::from_millis(passed)).filter(|left| !left.is_zero())
}

fn ago(then: Timestamp, now: Timestamp) -> String {
    match u64::try_from(now.milliseconds() - then.milliseconds()) {
        Ok(passed) => format!("{} ago", long(Duration::from_millis(passed))),
        Err(_) => format!("at {then}, which is still to come: the clock was set back"),
    }
}

fn long(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3_600),
    }
}

fn modified(file: &Path) -> Option<Timestamp> {
    let modified = file.symlink_metadata().ok()?.modified().ok()?;
    let since = modified.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Some(Timestamp::from_milliseconds(i64::try_from(since.as_millis()).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_milliseconds(1_800_000_000_000).after(Duration::from_secs(seconds))
    }

    fn gates(folder: &Path, is_on: bool) -> DreamGates {
        let memory = folder.join("memory");
        pal_store::create_private_directory(&memory).unwrap();
        let settings = DreamGateSettings { is_on, every: Duration::from_secs(24 * HOUR), sessions: 2 };
        DreamGates {
            settings,
            memory,
            sessions: folder.join("sessions"),
            session: Some(String::from("mine")),
        }
    }

    fn session(folder: &Path, name: &str, when: Timestamp) {
        let log = pal_store::log_path(&folder.join("sessions").join(name));
        std::fs::create_dir_all(log.parent().unwrap()).unwrap();
        let file = std::fs::File::create(&log).unwrap();
        file.set_modified(dream_lock::system_time(when)).unwrap();
    }

    fn dreamt(gates: &DreamGates, when: Timestamp) {
        let me = ProcessIdentity::current();
        let taken = dream_lock::acquire(&gates.memory, &me, "run", &ProcessIdentity::is_alive, when).unwrap();
        taken.unwrap().0.succeed().unwrap();
    }

    #[test]
    fn gates_open_one_after_the_other() {
        let folder = tempfile::tempdir().unwrap();
        let closed = |gates: &DreamGates, now| gates.closed(now).map(|gate| gate.name);
        assert_eq!(closed(&gates(folder.path(), false), at(0)), Some("on"));
        let gates = gates(folder.path(), true);
        dreamt(&gates, at(0));
        assert_eq!(closed(&gates, at(23 * HOUR)), Some("time"));
        session(folder.path(), "before", at(0));
        session(folder.path(), "mine", at(24 * HOUR));
        session(folder.path(), "other", at(24 * HOUR));
        assert_eq!(closed(&gates, at(25 * HOUR)), Some("sessions"), "its own and older ones do not count");
        session(folder.path(), "another", at(25 * HOUR));
        assert_eq!(closed(&gates, at(25 * HOUR + 60)), Some("scan"), "they were just counted");
        assert_eq!(closed(&gates, at(25 * HOUR + 700)), None);
        let me = ProcessIdentity::current();
        let held =
            dream_lock::acquire(&gates.memory, &me, "run", &ProcessIdentity::is_alive, at(25 * HOUR + 700))
                .unwrap();
        // Enough sessions have also changed since the lock was taken.
        session(folder.path(), "other", at(49 * HOUR));
        session(folder.path(), "another", at(49 * HOUR));
        assert_eq!(closed(&gates, at(50 * HOUR)), Some("lock"));
        held.unwrap().0.fail().unwrap();
        assert_eq!(closed(&gates, at(50 * HOUR)), None);
    }

    #[test]
    fn a_clock_set_back_closes_no_gate_forever() {
        let folder = tempfile::tempdir().unwrap();
        let gates = gates(folder.path(), true);
        dreamt(&gates, at(1_000 * HOUR));
        assert!(gates.time(at(0)).is_open, "{:?}", gates.time(at(0)));
        gates.note_scanned(at(1_000 * HOUR));
        assert!(gates.scan(at(0)).is_open);
        assert!(!gates.time(at(1_001 * HOUR)).is_open);
    }
}
