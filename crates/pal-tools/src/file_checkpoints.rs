//! Checkpoints of files: the version before each change of a tool, so that a rewind can restore it.
//!
//! A session keeps them in its folder: one file per version, named by its fingerprint, and `changes.jsonl` with one change a
//! line, in order of time. Restoring a file is a change, too, and can be undone like any other.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use pal_model::Timestamp;
use serde::{Deserialize, Serialize};
use similar::{ChangeTag, TextDiff};

use crate::VersionKeeper;
use crate::files::{CHANGED_BYTES_MAX, diff, fingerprint, read_for_change, replace};

/// Folder of a session with its checkpoints.
const FOLDER: &str = "checkpoints";
const CHANGES: &str = "changes.jsonl";

/// Maximum bytes of a version that is kept.
const VERSION_BYTES_MAX: usize = 16 << 20;

/// Returns the current time.
type NowFn = Box<dyn Fn() -> Timestamp + Send + Sync>;

/// Checkpoints of a session.
pub struct FileCheckpoints {
    folder: PathBuf,
    now: NowFn,
    writing: Mutex<()>,
}

impl std::fmt::Debug for FileCheckpoints {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("FileCheckpoints").field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// A version of a file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum FileVersion {
    /// There was no file.
    Missing,
    /// Content with this fingerprint and mode, which is kept.
    Kept { fingerprint: String, mode: u32 },
    /// Content with this fingerprint, too large to be kept.
    NotKept { fingerprint: String },
}

impl FileVersion {
    fn fingerprint(&self) -> Option<&str> {
        match self {
            FileVersion::Missing => None,
            FileVersion::Kept { fingerprint, .. } | FileVersion::NotKept { fingerprint } => Some(fingerprint),
        }
    }
}

/// A recorded change of a file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct FileChange {
    at_ms: i64,
    path: PathBuf,
    before: FileVersion,
    /// Fingerprint after the change; none if the file was removed.
    after: Option<String>,
}

/// Restoration of one file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileRestoration {
    /// Resolved path.
    pub path: PathBuf,
    /// Obstacle that prevents the restoration, as a clause; none if it can be restored.
    pub obstacle: Option<String>,
    /// True if the file is removed, because it did not exist.
    pub is_removal: bool,
    /// Lines that the restoration adds and removes.
    pub lines: (usize, usize),
    /// Current content and content to restore; none if that was not kept.
    contents: Option<(Vec<u8>, Vec<u8>)>,
    target: FileVersion,
}

impl FileCheckpoints {
    /// Uses the checkpoints of the session with this folder; creates nothing yet.
    pub fn of_session(
        session: &Path,
        now: impl Fn() -> Timestamp + Send + Sync + 'static,
    ) -> FileCheckpoints {
        FileCheckpoints { folder: session.join(FOLDER), now: Box::new(now), writing: Mutex::new(()) }
    }

    fn store(&self, fingerprint: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.folder.join(fingerprint);
        if path.exists() {
            return Ok(());
        }
        let mut file = tempfile::Builder::new()
            .prefix(".version-")
            .permissions(Permissions::from_mode(0o600))
            .tempfile_in(&self.folder)?;
        file.write_all(bytes)?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    }

    /// Plans to restore every file that a tool changed at or after `since`, by path.
    pub fn plan(&self, since: Timestamp) -> Vec<FileRestoration> {
        let mut first: BTreeMap<PathBuf, FileVersion> = BTreeMap::new();
        let mut last: BTreeMap<PathBuf, Option<String>> = BTreeMap::new();
        for change in self.changes() {
            if change.at_ms < since.milliseconds() {
                continue;
            }
            last.insert(change.path.clone(), change.after);
            first.entry(change.path).or_insert(change.before);
        }
        let planned = first.into_iter().map(|(path, target)| {
            let expected = last.get(&path).cloned().flatten();
            self.plan_file(path, target, expected.as_deref())
        });
        // A file that is as it was needs nothing.
        planned.filter(|file| file.obstacle.is_some() || !file.is_done()).collect()
    }

    /// Time and path of every recorded change, in order.
    pub fn changed_files(&self) -> Vec<(Timestamp, PathBuf)> {
        let changes = self.changes().into_iter();
        changes.map(|change| (Timestamp::from_milliseconds(change.at_ms), change.path)).collect()
    }

    fn changes(&self) -> Vec<FileChange> {
        let text = fs::read_to_string(self.folder.join(CHANGES)).unwrap_or_default();
        // A torn last line is no change: the file was not touched yet.
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    fn plan_file(&self, path: PathBuf, target: FileVersion, expected: Option<&str>) -> FileRestoration {
        let now = read_for_change(&path);
        let current = now.as_ref().ok().and_then(|found| found.as_ref()).map(|(bytes, _)| bytes.as_slice());
        let found = current.map(fingerprint);
        let old = match &target {
            FileVersion::Kept { fingerprint, .. } => fs::read(self.folder.join(fingerprint)).ok(),
            FileVersion::Missing => Some(Vec::new()),
            FileVersion::NotKept { .. } => None,
        };
        let is_there = found.as_deref() == target.fingerprint();
        let obstacle = match &now {
            Err(error) => Some(format!("it cannot be read: {error}")),
            Ok(_) if is_there => None,
            Ok(_) if old.is_none() => Some(String::from("its earlier version was too large to be kept")),
            Ok(_) if found.as_deref() != expected => {
                Some(String::from("it was changed by something else since"))
            }
            Ok(_) => None,
        };
        let contents = old.map(|old| (current.unwrap_or_default().to_owned(), old));
        let lines = contents.as_ref().map_or((0, 0), |(now, old)| changed_lines(now, old));
        let is_removal = target == FileVersion::Missing;
        FileRestoration { path, obstacle, is_removal, lines, contents, target }
    }

    /// Restores the files of a plan that have no obstacle. Returns the paths of restored files, and each failure as a
    /// sentence. The replaced versions are kept.
    pub fn restore(&self, plan: &[FileRestoration]) -> (Vec<PathBuf>, Vec<String>) {
        let (mut restored, mut failures) = (Vec::new(), Vec::new());
        for file in plan.iter().filter(|file| file.obstacle.is_none()) {
            match self.restore_file(file) {
                Ok(()) => restored.push(file.path.clone()),
                Err(error) => failures.push(format!("{} was not restored: {error}", file.path.display())),
            }
        }
        (restored, failures)
    }

    fn restore_file(&self, file: &FileRestoration) -> io::Result<()> {
        let current = read_for_change(&file.path)?;
        let old = current.as_ref().map(|(bytes, permissions)| (bytes.as_slice(), permissions));
        match &file.target {
            FileVersion::Missing => {
                self.keep_version(&file.path, old, None)?;
                fs::remove_file(&file.path)
            }
            FileVersion::Kept { fingerprint, mode } => {
                let bytes = fs::read(self.folder.join(fingerprint))?;
                self.keep_version(&file.path, old, Some(&bytes))?;
                replace(&file.path, &bytes, Some(Permissions::from_mode(*mode)))
            }
            FileVersion::NotKept { .. } => Err(io::Error::other("its earlier version was not kept")),
        }
    }
}

impl VersionKeeper for FileCheckpoints {
    fn keep_version(
        &self,
        path: &Path,
        old: Option<(&[u8], &Permissions)>,
        new: Option<&[u8]>,
    ) -> io::Result<()> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let before = match old {
            None => FileVersion::Missing,
            Some((bytes, _)) if bytes.len() > VERSION_BYTES_MAX => {
                FileVersion::NotKept { fingerprint: fingerprint(bytes) }
            }
            Some((bytes, permissions)) => {
                let fingerprint = fingerprint(bytes);
                self.store(&fingerprint, bytes)?;
                FileVersion::Kept { fingerprint, mode: permissions.mode() & 0o7777 }
            }
        };
        let change = FileChange {
            at_ms: (self.now)().milliseconds(),
            path: path.to_owned(),
            before,
            after: new.map(fingerprint),
        };
        let mut line = serde_json::to_string(&change)?;
        line.push('\n');
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(self.folder.join(CHANGES));
        file?.write_all(line.as_bytes())
    }
}

impl FileRestoration {
    /// Unified diff from the current content to the restored one, truncated if it is long.
    pub fn diff(&self) -> String {
        self.contents.as_ref().map_or(String::new(), |(now, old)| diff(now, old))
    }

    fn is_done(&self) -> bool {
        let found = read_for_change(&self.path).ok().flatten().map(|(bytes, _)| fingerprint(&bytes));
        found.as_deref() == self.target.fingerprint()
    }
}

/// Numbers of lines that lead from one text to another: added and removed.
fn changed_lines(from: &[u8], to: &[u8]) -> (usize, usize) {
    let (from, to) = (String::from_utf8_lossy(from), String::from_utf8_lossy(to));
    // A diff of huge files would take long, and only figures are wanted.
    if (from.len() + to.len()) as u64 > CHANGED_BYTES_MAX / 16 {
        return (to.lines().count(), from.lines().count());
    }
    let diff = TextDiff::from_lines(from.as_ref(), to.as_ref());
    let count = |tag: ChangeTag| diff.iter_all_changes().filter(|change| change.tag() == tag).count();
    (count(ChangeTag::Insert), count(ChangeTag::Delete))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicI64, Ordering};

    use super::*;

    /// A folder with checkpoints and a clock that each step advances.
    struct CheckpointWorld {
        folder: tempfile::TempDir,
        clock: Arc<AtomicI64>,
        checkpoints: FileCheckpoints,
    }

    impl CheckpointWorld {
        fn new() -> CheckpointWorld {
            let folder = tempfile::tempdir().unwrap();
            let clock = Arc::new(AtomicI64::new(1_000));
            let now = Arc::clone(&clock);
            let checkpoints = FileCheckpoints::of_session(&folder.path().join("session"), move || {
                Timestamp::from_milliseconds(now.load(Ordering::Relaxed))
            });
            CheckpointWorld { folder, clock, checkpoints }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.folder.path().canonicalize().unwrap().join(name)
        }

        fn now(&self) -> Timestamp {
            Timestamp::from_milliseconds(self.clock.load(Ordering::Relaxed))
        }

        /// Changes a file as a tool does, one second later.
        fn change(&self, name: &str, content: &str) {
            self.clock.fetch_add(1_000, Ordering::Relaxed);
            let path = self.path(name);
            let old = read_for_change(&path).unwrap();
            let known = old.as_ref().map(|(bytes, permissions)| (bytes.as_slice(), permissions));
            self.checkpoints.keep_version(&path, known, Some(content.as_bytes())).unwrap();
            fs::write(&path, content).unwrap();
        }

        fn text(&self, name: &str) -> Option<String> {
            fs::read_to_string(self.path(name)).ok()
        }
    }

    #[test]
    fn files_return_to_an_earlier_time_and_back_again() {
        let world = CheckpointWorld::new();
        fs::write(world.path("a"), "one\n").unwrap();
        fs::set_permissions(world.path("a"), Permissions::from_mode(0o750)).unwrap();
        world.change("a", "two\n");
        world.clock.fetch_add(1, Ordering::Relaxed);
        let turn = world.now();
        world.change("a", "three\nfour\n");
        world.change("b", "new\n");
        world.clock.fetch_add(1, Ordering::Relaxed);
        let plan = world.checkpoints.plan(turn);
        let figures: Vec<_> = plan.iter().map(|file| (file.lines, file.is_removal)).collect();
        assert_eq!(figures, [((1, 2), false), ((0, 1), true)]);
        let rewound = world.now();
        let (restored, failures) = world.checkpoints.restore(&plan);
        assert_eq!((restored.len(), failures.len()), (2, 0));
        assert_eq!((world.text("a").as_deref(), world.text("b")), (Some("two\n"), None));
        assert_eq!(world.checkpoints.plan(turn), [], "nothing is left to restore");
        // The restoration is a change like any other.
        world.checkpoints.restore(&world.checkpoints.plan(rewound));
        assert_eq!(world.text("a").as_deref(), Some("three\nfour\n"));
        assert_eq!(world.text("b").as_deref(), Some("new\n"));
        world.checkpoints.restore(&world.checkpoints.plan(Timestamp::from_milliseconds(0)));
        let mode = fs::metadata(world.path("a")).unwrap().permissions().mode() & 0o777;
        assert_eq!((world.text("a").as_deref(), mode), (Some("one\n"), 0o750));
        for entry in fs::read_dir(world.folder.path().join("session/checkpoints")).unwrap() {
            let mode = entry.unwrap().metadata().unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, 0o600);
        }
    }

    #[test]
    fn a_file_that_something_else_changed_is_left_alone() {
        let world = CheckpointWorld::new();
        fs::write(world.path("a"), "one\n").unwrap();
        let turn = world.now();
        world.change("a", "two\n");
        fs::write(world.path("a"), "by hand\n").unwrap();
        let plan = world.checkpoints.plan(turn);
        assert!(plan[0].obstacle.as_ref().unwrap().contains("changed by something else"), "{plan:?}");
        assert_eq!(world.checkpoints.restore(&plan), (Vec::new(), Vec::new()));
        assert_eq!(world.text("a").as_deref(), Some("by hand\n"));
        // One that is back to its old content needs nothing.
        fs::write(world.path("a"), "one\n").unwrap();
        assert_eq!(world.checkpoints.plan(turn), []);
    }
}
