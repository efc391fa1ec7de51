//! Pauses before a person's messages, counted over all sessions of a user: `learned-pauses.json` in the home directory.
//!
//! Per project there is one row of counts for each hour of the day, and nothing else: no times, no sessions, no texts. Counts fade: if a
//! project has more than [`PAUSES_MAX`], all of them are halved, so that new habits replace old ones. The file is replaced atomically
//! under a lock; deleting it forgets everything.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pal_context::PauseHistory;
use pal_model::text::count_noun;
use pal_store::{LockedFile, create_private_directory, open_regular_file, replace_private_file};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

/// Name of the file in the home directory.
const FILE: &str = "learned-pauses.json";
/// Name of the lock file, which stays when the file is replaced.
const LOCK_FILE: &str = "learned-pauses.lock";
/// Version of the file. A newer file is neither used nor replaced.
const VERSION: u64 = 1;
/// Maximum size of the file; 50 full projects have less than 150 KB.
const BYTES_MAX: u64 = 1 << 20;
/// Maximum number of projects. Of more, the one that was used longest ago is forgotten.
const PROJECTS_MAX: usize = 50;
/// Maximum pauses of a project, and maximum pauses of other projects in a history.
const PAUSES_MAX: f64 = 200.0;
/// Faded counts below this one are dropped.
const COUNT_MIN: f64 = 0.01;
/// Maximum wait for the lock, which is normally held for milliseconds.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);
/// Hours of a day.
const HOURS: u8 = 24;

/// The learned pauses of a home directory.
#[derive(Clone, Debug)]
pub struct LearnedPauses {
    home: PathBuf,
}

impl LearnedPauses {
    /// Uses the file of a home directory; it need not exist.
    pub fn in_home(home: &Path) -> LearnedPauses {
        LearnedPauses { home: home.to_owned() }
    }

    /// Reads all counts. A missing, damaged or newer file counts as empty.
    pub fn read(&self) -> PauseTable {
        match self.content() {
            Ok(table) => table,
            Err(error) => {
                tracing::warn!(%error, "earlier pauses are not used");
                PauseTable::default()
            }
        }
    }

    /// Adds pauses by class that began in an hour of the day. A damaged file is replaced.
    ///
    /// # Errors
    ///
    /// If the file cannot be locked, read or written, or a newer version wrote it. The pauses are not counted then.
    pub fn record(&self, project: &str, hour: u8, pauses: [u64; 4]) -> io::Result<()> {
        create_private_directory(&self.home).map_err(|error| io::Error::other(error.to_string()))?;
        let lock = open_regular_file(File::open(&self.home)?, LOCK_FILE, OFlags::RDWR | OFlags::CREATE)?;
        let Some(_locked) = LockedFile::lock_until(lock, Instant::now() + LOCK_TIMEOUT)? else {
            return Err(io::Error::new(ErrorKind::WouldBlock, "another process has locked it"));
        };
        let mut table = self.content()?;
        table.add(project, hour, pauses);
        replace_private_file(&self.home.join(FILE), &serde_json::to_vec(&table)?)
    }

    fn content(&self) -> io::Result<PauseTable> {
        let opened = File::open(&self.home).and_then(|home| open_regular_file(home, FILE, OFlags::RDONLY));
        let mut bytes = Vec::new();
        match opened {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(PauseTable::default()),
            opened => opened?.take(BYTES_MAX + 1).read_to_end(&mut bytes)?,
        };
        // The shape of a newer file is unknown, except for its version.
        let version = serde_json::from_slice::<FileVersion>(&bytes).map_or(VERSION, |file| file.version);
        if version > VERSION {
            return Err(io::Error::new(ErrorKind::Unsupported, format!("{FILE} has version {version}")));
        }
        let is_whole = bytes.len() as u64 <= BYTES_MAX;
        let table =
            serde_json::from_slice::<PauseTable>(&bytes).ok().filter(|table| is_whole && table.is_valid());
        Ok(table.unwrap_or_else(|| {
            tracing::warn!("{FILE} is damaged and counts as empty");
            PauseTable::default()
        }))
    }
}

/// The part of the file that all versions have.
#[derive(Deserialize)]
struct FileVersion {
    version: u64,
}

/// Counts of all projects.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PauseTable {
    version: u64,
    /// Projects, the one used last at the end.
    projects: Vec<ProjectPauses>,
}

/// Counts of a project.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
struct ProjectPauses {
    /// Slug of its path.
    project: String,
    /// Counts by class, for each local hour of the day in which pauses began.
    hours: BTreeMap<u8, [f64; 4]>,
}

impl Default for PauseTable {
    fn default() -> PauseTable {
        PauseTable { version: VERSION, projects: Vec::new() }
    }
}

impl PauseTable {
    /// History for a session in a project at an hour of the day. The hours next to it count as the same time of day.
    pub fn history(&self, project: &str, hour: u8) -> PauseHistory {
        let mut history = PauseHistory::EMPTY;
        for (begun, counts) in self.find(project).into_iter().flat_map(|found| &found.hours) {
            let apart = (begun + HOURS - hour % HOURS) % HOURS;
            let is_near = apart <= 1 || apart == HOURS - 1;
            add(if is_near { &mut history.this_hour } else { &mut history.project }, counts, 1.0);
        }
        for other in self.projects.iter().rev().filter(|other| other.project != project) {
            let (counts, room) = (other.counts(), PAUSES_MAX - total(&history.elsewhere));
            if total(&counts) > 0.0 {
                add(&mut history.elsewhere, &counts, (room / total(&counts)).clamp(0.0, 1.0));
            }
        }
        history
    }

    /// One line about the pauses of a project; none if there are none.
    pub fn line(&self, project: &str) -> Option<String> {
        let counts = self.find(project)?.counts();
        let pauses = total(&counts);
        let percent = |class: usize| (100.0 * counts[class] / pauses).round();
        (pauses >= 0.5).then(|| {
            format!(
                "{}% up to 5 minutes, {}% up to 15 minutes, {}% up to an hour, {}% longer, from {} in this project",
                percent(0),
                percent(1),
                percent(2),
                percent(3),
                count_noun(pauses.round() as usize, "pause")
            )
        })
    }

    fn find(&self, project: &str) -> Option<&ProjectPauses> {
        self.projects.iter().find(|found| found.project == project)
    }

    fn is_valid(&self) -> bool {
        let is_count = |count: &f64| count.is_finite() && *count >= 0.0;
        let mut rows = self.projects.iter().flat_map(|project| &project.hours);
        rows.all(|(hour, counts)| *hour < HOURS && counts.iter().all(is_count))
    }

    fn add(&mut self, project: &str, hour: u8, pauses: [u64; 4]) {
        let position = self.projects.iter().position(|found| found.project == project);
        let new = || ProjectPauses { project: project.to_owned(), hours: BTreeMap::new() };
        let mut used = position.map_or_else(new, |position| self.projects.remove(position));
        add(used.hours.entry(hour % HOURS).or_default(), &pauses.map(|count| count as f64), 1.0);
        while total(&used.counts()) > PAUSES_MAX {
            used.fade();
        }
        self.projects.push(used);
        let surplus = self.projects.len().saturating_sub(PROJECTS_MAX);
        self.projects.drain(..surplus);
    }
}

impl ProjectPauses {
    fn counts(&self) -> [f64; 4] {
        let mut counts = [0.0; 4];
        self.hours.values().for_each(|row| add(&mut counts, row, 1.0));
        counts
    }

    /// Halves all counts.
    fn fade(&mut self) {
        let halved = |count: f64| if count / 2.0 < COUNT_MIN { 0.0 } else { count / 2.0 };
        self.hours.values_mut().for_each(|row| *row = row.map(halved));
        self.hours.retain(|_, row| total(row) > 0.0);
    }
}

fn add(sum: &mut [f64; 4], counts: &[f64; 4], factor: f64) {
    sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += factor * count);
}

fn total(counts: &[f64; 4]) -> f64 {
    counts.iter().sum()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    const TEN_MINUTES: [u64; 4] = [0, 1, 0, 0];

    fn store() -> (tempfile::TempDir, LearnedPauses) {
        let home = tempfile::tempdir().unwrap();
        let pauses = LearnedPauses::in_home(home.path());
        (home, pauses)
    }

    #[test]
    fn pauses_are_counted_by_project_and_time_of_day() {
        let (home, pauses) = store();
        assert_eq!(pauses.read().history("a", 9), PauseHistory::EMPTY);
        for (project, hour) in [("a", 23), ("a", 0), ("a", 1), ("a", 2), ("a", 12), ("b", 0)] {
            pauses.record(project, hour, TEN_MINUTES).unwrap();
        }
        pauses.record("a", 0, [2, 0, 0, 1]).unwrap();
        let history = pauses.read().history("a", 0);
        assert_eq!(history.this_hour, [2.0, 3.0, 0.0, 1.0], "the hours next to it, over midnight");
        assert_eq!((history.project, history.elsewhere), ([0.0, 2.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]));
        assert_eq!(pauses.read().history("a", 23).this_hour, [2.0, 2.0, 0.0, 1.0]);
        assert_eq!(pauses.read().history("c", 0).elsewhere, [2.0, 6.0, 0.0, 1.0]);
        let line = "25% up to 5 minutes, 63% up to 15 minutes, 0% up to an hour, 13% longer, from 8 pauses in this project";
        assert_eq!(pauses.read().line("a").as_deref(), Some(line));
        assert_eq!(pauses.read().line("c"), None);
        for name in [FILE, LOCK_FILE] {
            let mode = fs::metadata(home.path().join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
        let text = fs::read_to_string(home.path().join(FILE)).unwrap();
        assert!(
            text.starts_with(r#"{"version":1,"projects":[{"project":"b","hours":{"0":[0.0,1.0"#),
            "{text}"
        );
    }

    #[test]
    fn concurrent_writers_lose_nothing() {
        let (_home, pauses) = store();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let pauses = pauses.clone();
                scope.spawn(move || (0..10).for_each(|hour| pauses.record("a", hour, TEN_MINUTES).unwrap()));
            }
        });
        assert_eq!(pauses.read().find("a").unwrap().counts(), [0.0, 40.0, 0.0, 0.0]);
    }

    #[test]
    fn old_counts_fade_and_old_projects_are_forgotten() {
        let mut table = PauseTable::default();
        for hour in 0..200 {
            table.add("a", (hour % 24) as u8, [1, 0, 0, 0]);
        }
        assert_eq!(table.find("a").unwrap().counts(), [200.0, 0.0, 0.0, 0.0]);
        table.add("a", 0, TEN_MINUTES);
        assert_eq!(table.find("a").unwrap().counts(), [100.0, 0.5, 0.0, 0.0]);
        for _ in 0..200 {
            table.add("a", 5, TEN_MINUTES);
        }
        let counts = table.find("a").unwrap().counts();
        assert!(
            counts[0] <= 50.0 && counts[1] > 2.0 * counts[0] && total(&counts) <= PAUSES_MAX,
            "{counts:?}"
        );
        for number in 0..PROJECTS_MAX {
            table.add("a", 0, [0; 4]);
            table.add(&format!("project {number}"), 0, [9, 0, 0, 0]);
        }
        assert_eq!(table.projects.len(), PROJECTS_MAX);
        assert!(table.find("a").is_some() && table.find("project 0").is_none());
        assert!((total(&table.history("new", 0).elsewhere) - PAUSES_MAX).abs() < 1e-9);
        let largest = [u64::MAX; 4];
        table.add("a", 0, largest);
        assert!(total(&table.find("a").unwrap().counts()) <= PAUSES_MAX);
    }

    #[test]
    fn a_damaged_file_counts_as_empty_and_is_replaced() {
        for damaged in [
            &b"{\"version\":1,\"proj"[..],
            b"",
            b"\xff\xfe",
            br#"{"version":1,"projects":[{"project":"a","hours":{"24":[1,0,0,0]}}]}"#,
            br#"{"version":1,"projects":[{"project":"a","hours":{"3":[-1,0,0,0]}}]}"#,
            &[b' '; BYTES_MAX as usize + 2],
        ] {
            let (home, pauses) = store();
            fs::write(home.path().join(FILE), damaged).unwrap();
            assert_eq!(pauses.read(), PauseTable::default());
            pauses.record("a", 3, TEN_MINUTES).unwrap();
            assert_eq!(pauses.read().history("a", 3).this_hour, [0.0, 1.0, 0.0, 0.0]);
        }
    }

    #[test]
    fn a_newer_file_is_neither_used_nor_replaced() {
        let (home, pauses) = store();
        let newer = r#"{"version":2,"users":[]}"#;
        fs::write(home.path().join(FILE), newer).unwrap();
        assert_eq!(pauses.read(), PauseTable::default());
        assert_eq!(pauses.record("a", 3, TEN_MINUTES).unwrap_err().kind(), ErrorKind::Unsupported);
        assert_eq!(fs::read_to_string(home.path().join(FILE)).unwrap(), newer);
    }

    #[test]
    fn a_file_that_cannot_be_written_is_an_error_and_stays() {
        let (home, pauses) = store();
        pauses.record("a", 3, TEN_MINUTES).unwrap();
        let before = pauses.read();
        // Root may write everywhere.
        if !rustix::process::geteuid().is_root() {
            fs::set_permissions(home.path(), fs::Permissions::from_mode(0o500)).unwrap();
            assert!(pauses.record("a", 3, TEN_MINUTES).is_err());
            assert_eq!(pauses.read(), before);
            fs::set_permissions(home.path(), fs::Permissions::from_mode(0o700)).unwrap();
        }
        // Something else stands where the new file is written first.
        fs::create_dir_all(home.path().join("learned-pauses.part/in the way")).unwrap();
        assert!(pauses.record("a", 3, TEN_MINUTES).is_err());
        assert_eq!(pauses.read(), before);
        let nowhere = LearnedPauses::in_home(&home.path().join(FILE).join("home"));
        assert!(nowhere.record("a", 3, TEN_MINUTES).is_err());
        assert_eq!(nowhere.read(), PauseTable::default());
        // A link is not followed.
        let (other, linked) = store();
        symlink(home.path().join(FILE), other.path().join(FILE)).unwrap();
        assert!(linked.record("a", 3, TEN_MINUTES).is_err());
        assert_eq!((linked.read(), pauses.read()), (PauseTable::default(), before));
    }

    #[test]
    fn a_lock_that_is_held_delays_a_session_only_briefly() {
        let (home, pauses) = store();
        pauses.record("a", 3, TEN_MINUTES).unwrap();
        let lock = File::options().write(true).open(home.path().join(LOCK_FILE)).unwrap();
        lock.lock().unwrap();
        let begun = Instant::now();
        assert_eq!(pauses.record("a", 3, TEN_MINUTES).unwrap_err().kind(), ErrorKind::WouldBlock);
        assert!(begun.elapsed() < 10 * LOCK_TIMEOUT);
        assert_eq!(pauses.read().history("a", 3).this_hour, [0.0, 1.0, 0.0, 0.0]);
    }
}
