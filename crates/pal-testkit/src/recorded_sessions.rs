//! Test data: recorded sessions, and the number of cases of property tests.
//!
//! `testdata/sessions` holds sessions that `pal` recorded against the simulator, so the tests run anywhere. With `PAL_TEST_DATA`
//! set to a folder with sessions of other agents, the same tests run on those instead, and tests that are ignored without it can
//! run (`.ci/recorded`).

use std::path::{Path, PathBuf};

use pal_model::{LogEntry, SharedText};

/// Environment variable that names a folder of recorded data outside the repository.
const DATA_VARIABLE: &str = "PAL_TEST_DATA";

/// Folder of recorded data outside the repository, if `PAL_TEST_DATA` names one.
///
/// # Panics
///
/// If the variable names something that is not a folder: tests that asked for data must not pass without it.
pub fn data_dir() -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os(DATA_VARIABLE)?);
    // Tests run in the folder of their crate; a relative path is meant from the root.
    let folder = if folder.is_absolute() { folder } else { root().join(folder) };
    assert!(
        folder.join("sessions").is_dir(),
        "{DATA_VARIABLE} is {}, which has no folder `sessions`",
        folder.display()
    );
    folder.canonicalize().ok()
}

/// Recorded sessions in the order of their names: those of `PAL_TEST_DATA`, or else the repository's own.
///
/// # Panics
///
/// If there is none.
pub fn session_files() -> Vec<PathBuf> {
    let folder = data_dir().unwrap_or_else(|| root().join("testdata")).join("sessions");
    let mut found = Vec::new();
    let mut folders = vec![folder.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "no session in {}", folder.display());
    found
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Entries of a log that `pal` wrote; none for the session of another agent.
pub fn own_entries(source: &[u8]) -> Option<Vec<LogEntry>> {
    let text = SharedText::from(std::str::from_utf8(source).ok()?.to_owned());
    text.starts_with("{\"v\":").then_some(())?;
    text.lines().map(|line| LogEntry::parse(text.slice_of(line)).ok()).collect()
}

/// Number of cases that a property test runs: the usual number, or that of `PAL_CASES`.
pub fn cases(usual: u32) -> u32 {
    std::env::var("PAL_CASES").ok().and_then(|count| count.parse().ok()).unwrap_or(usual)
}
