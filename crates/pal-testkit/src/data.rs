//! What tests take from outside: how many cases to run, and real sessions.
//!
//! Real sessions and texts lie beside the project, in `../shared/data`. Tests that want them skip, saying so, where
//! they are absent.

use std::path::{Path, PathBuf};

/// The folder of real data, if it is there. Says so on standard error if it is not.
pub fn data_dir() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    if root.is_dir() {
        return root.canonicalize().ok();
    }
    eprintln!("skipped: there is no ../shared/data beside the project");
    None
}

/// All recorded sessions, in the order of their names; empty if the data is absent.
pub fn session_files() -> Vec<PathBuf> {
    let Some(data) = data_dir() else { return Vec::new() };
    let mut found = Vec::new();
    let mut folders = vec![data.join("sessions")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

/// How many cases a property test runs: the usual number, or what `PAL_CASES` says.
pub fn cases(usual: u32) -> u32 {
    std::env::var("PAL_CASES").ok().and_then(|count| count.parse().ok()).unwrap_or(usual)
}
