//! The directory that a session belongs to: its relative paths and its workspace start there.

use std::path::{Path, PathBuf};

use pal_model::{EntryBody, LogEntry};
use pal_store::{LogReader, OpenError};

/// Reads the directory of a session from its log: where it started, or where the newest fork in its history did.
/// None if the log does not name one. Reads no further back than the newest boundary, and the first line.
pub fn session_directory(log: &Path) -> Result<Option<PathBuf>, OpenError> {
    let reader = LogReader::open(log)?;
    let newest = reader.find_newest(|entry| match &entry.body {
        EntryBody::Session(session) => session.cwd.clone().map(Some),
        EntryBody::Boundary(boundary) => Some(boundary.snapshot.start_directory.clone()),
        _ => None,
    })?;
    let newest = match newest.flatten() {
        Some(directory) => Some(directory),
        // A boundary of an older version does not name the directory. Only newer versions move a session.
        None => reader.entry_at(0)?.and_then(|entry| start_of(&entry)),
    };
    Ok(newest.map(PathBuf::from))
}

fn start_of(entry: &LogEntry) -> Option<String> {
    match &entry.body {
        EntryBody::Session(session) => session.cwd.clone(),
        _ => None,
    }
}

/// Returns whether two paths name the same directory, links followed.
pub fn is_same_directory(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    real(one) == real(other)
}
