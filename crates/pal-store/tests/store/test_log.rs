//! Shared helpers: a log in a temporary directory, drafts, and re-running this binary as a child process.

use std::path::{Path, PathBuf};
use std::process::Command;

use pal_model::{Decision, DecisionKind, EntryDraft, EntryId, IdSource, LogEntry, MessageOrigin, Timestamp};
use pal_store::{Log, OpenedLog};
use tempfile::TempDir;

/// Temporary directory with the path of a log.
pub(crate) struct TestLog {
    pub(crate) directory: TempDir,
    pub(crate) path: PathBuf,
}

impl TestLog {
    pub(crate) fn new() -> TestLog {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log.jsonl");
        TestLog { directory, path }
    }

    pub(crate) fn create(&self) -> Log {
        Log::create(&self.path, IdSource::seeded(1)).unwrap()
    }

    pub(crate) fn open(&self) -> OpenedLog {
        Log::open(&self.path, IdSource::seeded(2)).unwrap()
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        std::fs::read(&self.path).unwrap()
    }

    pub(crate) fn torn(&self) -> PathBuf {
        self.directory.path().join("log.jsonl.torn")
    }
}

pub(crate) fn now() -> Timestamp {
    Timestamp::from_milliseconds(1_800_000_000_000)
}

pub(crate) fn said(text: &str) -> EntryDraft {
    EntryDraft::user(MessageOrigin::Person, &format!("\"{text}\""))
}

pub(crate) fn undo(target: EntryId) -> EntryDraft {
    let kind = DecisionKind::Undo { target };
    EntryDraft::decision(&Decision { kind, reason: String::new(), cost: Default::default() })
}

pub(crate) fn lines(entries: &[LogEntry]) -> Vec<&str> {
    entries.iter().map(|entry| entry.line.as_str()).collect()
}

/// Runs this binary again with only the test `name`; `role` selects its child behavior.
pub(crate) fn child(name: &str, role: &str, path: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]);
    command.env("PAL_STORE_TEST_ROLE", role).env("PAL_STORE_TEST_LOG", path);
    command
}

/// Path of the log, if this process is a child with that role.
pub(crate) fn role(role: &str) -> Option<PathBuf> {
    let is_child = std::env::var("PAL_STORE_TEST_ROLE").is_ok_and(|given| given == role);
    is_child.then(|| PathBuf::from(std::env::var_os("PAL_STORE_TEST_LOG").unwrap()))
}
