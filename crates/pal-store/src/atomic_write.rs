//! Atomic writes: a file appears complete or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::error::FileError;

/// Writes a new log from finished lines. It appears under its name only when complete and synced; a failure
/// leaves nothing behind, and an existing log is never replaced.
pub fn write_new_log(path: &Path, lines: &str) -> Result<(), FileError> {
    let part = path.with_extension("part");
    let written = write_part(&part, lines.as_bytes())
        .and_then(|()| fs::hard_link(&part, path))
        .and_then(|()| path.parent().map_or(Ok(()), |directory| File::open(directory)?.sync_all()));
    let removed = fs::remove_file(&part);
    written.and(removed).map_err(|error| FileError::new("write", path, error))
}

/// Replaces a file atomically, with mode 0600.
pub fn replace_private_file(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let part = path.with_extension("part");
    let moved = write_part(&part, bytes).and_then(|()| fs::rename(&part, path));
    if moved.is_err() {
        // An incomplete file is useless.
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
    fn log_is_written_completely_or_not_at_all() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log.jsonl");
        write_new_log(&path, "one\ntwo\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntwo\n");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(write_new_log(&path, "other\n").is_err(), "an existing log is never replaced");
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntwo\n");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "no part is left");
        assert!(write_new_log(&directory.path().join("absent/log.jsonl"), "x\n").is_err());
    }
}
