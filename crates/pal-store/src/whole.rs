//! Writing whole files at once: all of it or nothing.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::error::FileError;

/// Writes a new log whose lines are already made. It appears under its name only once it is whole and on disk; a
/// failure leaves nothing behind.
pub fn write_whole(path: &Path, lines: &str) -> Result<(), FileError> {
    let part = path.with_extension("part");
    let written = write_part(&part, lines.as_bytes())
        .and_then(|()| fs::hard_link(&part, path))
        .and_then(|()| path.parent().map_or(Ok(()), |directory| File::open(directory)?.sync_all()));
    let removed = fs::remove_file(&part);
    written.and(removed).map_err(|error| FileError::new("write", path, error))
}

/// Writes a file for its owner only, in the place of what is there: whole, or what is there stays.
pub fn replace_private_file(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let part = path.with_extension("part");
    let moved = write_part(&part, bytes).and_then(|()| fs::rename(&part, path));
    if moved.is_err() {
        // What was not written whole is of no use.
        let _ = fs::remove_file(&part);
    }
    moved
}

fn write_part(part: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(part)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_log_is_there_whole_or_not_at_all() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log.jsonl");
        write_whole(&path, "one\ntwo\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntwo\n");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(write_whole(&path, "other\n").is_err(), "an existing log is never replaced");
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntwo\n");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "no part is left");
        assert!(write_whole(&directory.path().join("absent/log.jsonl"), "x\n").is_err());
    }
}
