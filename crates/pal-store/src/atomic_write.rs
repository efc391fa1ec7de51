//! Atomic writes: a file appears complete or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::error::{FileError, OpenError};
use crate::log_open;

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

/// Extends a log that no process has open to `lines`, which must differ from it. What only adds to the log is appended;
/// anything else replaces it atomically. The lock is held meanwhile.
pub fn extend_log(path: &Path, lines: &str) -> Result<(), OpenError> {
    let locked = log_open::open_to_append(path)?;
    let failed = |what: &'static str| move |error: std::io::Error| FileError::new(what, path, error);
    let before = fs::read(path).map_err(failed("read"))?;
    match lines.as_bytes().strip_prefix(before.as_slice()) {
        Some(added) => (&*locked)
            .write_all(added)
            .and_then(|()| locked.sync_all())
            .map_err(|error| OpenError::from(FileError::new("extend", path, error))),
        None => {
            replace_private_file(path, lines.as_bytes()).map_err(failed("replace"))?;
            Ok(log_open::sync_directory(path.parent().unwrap_or(Path::new("")))?)
        }
    }
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
    fn log_is_extended_unless_it_is_open() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log.jsonl");
        write_new_log(&path, "one\n").unwrap();
        extend_log(&path, "one\ntwo\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntwo\n");
        extend_log(&path, "1\n2\n3\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "1\n2\n3\n");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let held = log_open::open_to_append(&path).unwrap();
        assert!(matches!(extend_log(&path, "1\n2\n3\n4\n"), Err(OpenError::Locked { .. })));
        drop(held);
        assert_eq!(fs::read_to_string(&path).unwrap(), "1\n2\n3\n");
    }

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
