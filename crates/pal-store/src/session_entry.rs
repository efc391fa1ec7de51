//! The first entry of a log, read without the rest.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use pal_model::{EntryBody, LogEntry, SessionStart, SharedText};

/// Reads the session entry of a log, which is its first line; none if that cannot be read.
pub fn read_session_entry(log: &Path) -> Option<SessionStart> {
    let mut line = String::new();
    BufReader::new(File::open(log).ok()?.take(64 << 10)).read_line(&mut line).ok()?;
    match LogEntry::parse(SharedText::from(line.trim_end())) {
        Ok(LogEntry { body: EntryBody::Session(session), .. }) => Some(session),
        _ => None,
    }
}
