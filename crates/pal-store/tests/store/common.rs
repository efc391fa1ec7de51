//! What the tests share: a log in a folder of its own, drafts, and how to run this binary again as a child.

use std::path::{Path, PathBuf};
use std::process::Command;

use pal_model::{Decision, DecisionKind, Draft, Entry, EntryId, IdSource, Origin, Timestamp};
use pal_store::{Log, Opened};
use tempfile::TempDir;

/// A folder that goes away, and the path of a log in it.
pub(crate) struct Place {
    pub(crate) directory: TempDir,
    pub(crate) path: PathBuf,
}

impl Place {
    pub(crate) fn new() -> Place {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log.jsonl");
        Place { directory, path }
    }

    pub(crate) fn create(&self) -> Log {
        Log::create(&self.path, IdSource::seeded(1)).unwrap()
    }

    pub(crate) fn open(&self) -> Opened {
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

pub(crate) fn said(text: &str) -> Draft {
    Draft::user(Origin::Person, &format!("\"{text}\""))
}

pub(crate) fn undo(target: EntryId) -> Draft {
    let kind = DecisionKind::Undo { target };
    Draft::decision(&Decision { kind, reason: String::new(), cost: Default::default() })
}

pub(crate) fn lines(entries: &[Entry]) -> Vec<&str> {
    entries.iter().map(|entry| entry.line.as_str()).collect()
}

/// This binary again, running only the test `name`, which does another thing when `role` is set.
pub(crate) fn child(name: &str, role: &str, path: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]);
    command.env("PAL_STORE_TEST_ROLE", role).env("PAL_STORE_TEST_LOG", path);
    command
}

/// The log that this process shall work on, if it is such a child.
pub(crate) fn role(role: &str) -> Option<PathBuf> {
    let is_child = std::env::var("PAL_STORE_TEST_ROLE").is_ok_and(|given| given == role);
    is_child.then(|| PathBuf::from(std::env::var_os("PAL_STORE_TEST_LOG").unwrap()))
}
