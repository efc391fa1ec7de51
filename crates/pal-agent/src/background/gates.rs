//! Whether memories are to be put in order now (§7.5): gates, the cheapest first. Pure but for one look at the disk for each
//! of them; the time is an argument.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use pal_memory::Place;
use pal_messages::Process;
use pal_model::Timestamp;
use pal_store::project_directory;
use serde::Serialize;

use super::lock;

/// Whoever looked for sessions so shortly before need not do so again.
const SCANNED_FOR: Duration = Duration::from_secs(600);

/// The time when sessions were counted last is that of this file.
const SCANNED: &str = ".consolidate-scanned";

/// When memories are put in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GateSettings {
    /// Whether that is done at all.
    pub is_on: bool,
    /// So long after the last time.
    pub every: Duration,
    /// After so many other sessions since then.
    pub sessions: usize,
}

/// Where a project's memories and sessions are.
#[derive(Clone, Debug)]
pub struct Gates {
    /// When.
    pub settings: GateSettings,
    /// The memory directory.
    pub memory: PathBuf,
    /// The folder of all sessions.
    pub sessions: PathBuf,
    /// The session that asks, which does not count.
    pub session: Option<String>,
}

/// What a gate says.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Gate {
    /// Which one: `on`, `time`, `scan`, `sessions`, `lock`.
    pub name: &'static str,
    /// Whether it is open.
    pub is_open: bool,
    /// Why, in words.
    pub why: String,
}

impl Gates {
    /// Those of a project. `project` is what its worktrees share.
    pub fn of_project(home: &Path, project: &Path, settings: GateSettings, session: Option<String>) -> Gates {
        let memory = Place::of_project(home, project).directory;
        Gates { settings, memory, sessions: project_directory(home, project).join("sessions"), session }
    }

    /// The first gate that is closed; none if all are open. Nothing that is dearer than it is looked at.
    pub fn closed(&self, now: Timestamp) -> Option<Gate> {
        let gates: [fn(&Gates, Timestamp) -> Gate; 5] =
            [Gates::on, Gates::time, Gates::scan, Gates::others, Gates::lock];
        let closed = gates.iter().map(|gate| gate(self, now)).find(|gate| !gate.is_open);
        if closed.as_ref().is_some_and(|gate| gate.name == "sessions") {
            self.note_scanned(now);
        }
        closed
    }

    /// What all of them say.
    pub fn all(&self, now: Timestamp) -> Vec<Gate> {
        vec![self.on(now), self.time(now), self.scan(now), self.others(now), self.lock(now)]
    }

    fn on(&self, _: Timestamp) -> Gate {
        let is_open = self.settings.is_on;
        let why = if is_open { "dreaming is on" } else { "dreaming is switched off" };
        gate("on", is_open, why)
    }

    fn time(&self, now: Timestamp) -> Gate {
        let last = lock::last(&self.memory, &Process::is_alive);
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

    fn scan(&self, now: Timestamp) -> Gate {
        let scanned = modified(&self.memory.join(SCANNED));
        match left(scanned, now, SCANNED_FOR) {
            None => gate("scan", true, "sessions were not counted in the last 10 min"),
            Some(_) => gate("scan", false, "sessions were counted less than 10 min ago"),
        }
    }

    fn others(&self, _: Timestamp) -> Gate {
        let last = lock::last(&self.memory, &Process::is_alive);
        let there = self.sessions_since(last);
        let wanted = self.settings.sessions;
        gate(
            "sessions",
            there >= wanted,
            &format!("{there} other sessions since then, of {wanted} that are wanted"),
        )
    }

    fn lock(&self, now: Timestamp) -> Gate {
        match lock::holder(&self.memory, &Process::is_alive) {
            None => gate("lock", true, "nobody else does it"),
            Some(held) => gate("lock", false, &held.told(now)),
        }
    }

    /// Other sessions that were worked on since then.
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
        // Without it the next one counts again.
        let noted = pal_store::replace_private_file(&file, b"")
            .and_then(|()| std::fs::File::open(&file)?.set_modified(lock::system_time(now)));
        if let Err(error) = noted {
            tracing::debug!(%error, "that sessions were counted is not noted");
        }
    }
}

fn gate(name: &'static str, is_open: bool, why: &str) -> Gate {
    Gate { name, is_open, why: why.to_owned() }
}

/// How much is left of a while that began then; none if it is over. A beginning that lies ahead is no beginning: the clock
/// was set back since, and nobody knows how long ago it was.
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

    fn gates(folder: &Path, is_on: bool) -> Gates {
        let memory = folder.join("memory");
        pal_store::create_private_directory(&memory).unwrap();
        let settings = GateSettings { is_on, every: Duration::from_secs(24 * HOUR), sessions: 2 };
        Gates { settings, memory, sessions: folder.join("sessions"), session: Some(String::from("mine")) }
    }

    fn session(folder: &Path, name: &str, when: Timestamp) {
        let log = pal_store::log_path(&folder.join("sessions").join(name));
        std::fs::create_dir_all(log.parent().unwrap()).unwrap();
        let file = std::fs::File::create(&log).unwrap();
        file.set_modified(lock::system_time(when)).unwrap();
    }

    fn dreamt(gates: &Gates, when: Timestamp) {
        let me = Process::current();
        let taken = lock::acquire(&gates.memory, &me, "run", &Process::is_alive, when).unwrap();
        taken.unwrap().0.succeed().unwrap();
    }

    #[test]
    fn gates_open_one_after_the_other() {
        let folder = tempfile::tempdir().unwrap();
        let closed = |gates: &Gates, now| gates.closed(now).map(|gate| gate.name);
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
        let me = Process::current();
        let held = lock::acquire(&gates.memory, &me, "run", &Process::is_alive, at(25 * HOUR + 700)).unwrap();
        // Since it was taken, too, there were enough.
        session(folder.path(), "other", at(49 * HOUR));
        session(folder.path(), "another", at(49 * HOUR));
        assert_eq!(closed(&gates, at(50 * HOUR)), Some("lock"));
        held.unwrap().0.fail().unwrap();
        assert_eq!(closed(&gates, at(50 * HOUR)), None);
    }

    #[test]
    fn a_clock_that_was_set_back_closes_nothing_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        let gates = gates(folder.path(), true);
        dreamt(&gates, at(1_000 * HOUR));
        assert!(gates.time(at(0)).is_open, "{:?}", gates.time(at(0)));
        gates.note_scanned(at(1_000 * HOUR));
        assert!(gates.scan(at(0)).is_open);
        assert!(!gates.time(at(1_001 * HOUR)).is_open);
    }
}
