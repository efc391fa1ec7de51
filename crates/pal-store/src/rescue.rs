//! Saves a session whose log was deleted, replaced or truncated while it was open.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use pal_model::LogEntry;

use crate::error::{FileError, LogChange};
use crate::log_open::create_private_directory;
use crate::segment::LogSource;

const CHUNK_BYTES: u64 = 1 << 20;
/// File names tried before giving up.
const NAMES_MAX: u32 = 1_000;

/// Compares the open file with the one at `path`, and its length with `length`. Costs two `stat` calls.
pub(crate) fn find_change(held: &File, path: &Path, length: u64) -> io::Result<Option<LogChange>> {
    let held = held.metadata()?;
    match path.metadata() {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Some(LogChange::Deleted));
        }
        // A path that cannot be examined does not count as changed.
        Err(_) => {}
        Ok(there) if (there.dev(), there.ino()) != (held.dev(), held.ino()) => {
            return Ok(Some(LogChange::Replaced));
        }
        Ok(_) => {}
    }
    let found = held.len();
    Ok((found != length).then_some(LogChange::Resized { expected: length, found }))
}

/// Writes a new log next to the old path: the content of the open file if it is complete, else `entries`,
/// followed by `lines`. The result can be resumed.
pub(crate) fn save(source: LogSource<'_>, entries: &[LogEntry], lines: &str) -> Result<PathBuf, FileError> {
    let (path, mut file) = create_beside(source.path)?;
    let failed = |error| FileError::new("write", &path, error);
    let has_all = source.file.metadata().is_ok_and(|held| held.len() >= source.end);
    if has_all {
        let mut at = 0;
        while at < source.end {
            let next = source.end.min(at + CHUNK_BYTES);
            file.write_all(&source.read(at, next)?).map_err(failed)?;
            at = next;
        }
    } else {
        for entry in entries {
            file.write_all(entry.line.as_bytes()).and_then(|()| file.write_all(b"\n")).map_err(failed)?;
        }
    }
    file.write_all(lines.as_bytes()).map_err(failed)?;
    file.sync_all().map_err(failed)?;
    Ok(path)
}

/// Appends lines to a log that was rescued before.
pub(crate) fn save_more(path: &Path, lines: &str) -> Result<(), FileError> {
    let opened = OpenOptions::new().append(true).open(path);
    let written = opened.and_then(|mut file| {
        file.write_all(lines.as_bytes())?;
        file.sync_all()
    });
    written.map_err(|error| FileError::new("append to", path, error))
}

/// Creates a new file in the log's directory, recreating it if needed, or else in the directory for temporary
/// files.
fn create_beside(log: &Path) -> Result<(PathBuf, File), FileError> {
    let name = log.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let folder = log.parent().unwrap_or(Path::new(""));
    let first = create_private_directory(folder).and_then(|()| create_in(folder, &name));
    let Err(refused) = first else { return first };
    // The directory is named after the session.
    let session = folder.file_name().unwrap_or_default().to_string_lossy();
    create_in(&std::env::temp_dir(), &format!("pal-{session}-{name}")).map_err(|_| refused)
}

fn create_in(folder: &Path, name: &str) -> Result<(PathBuf, File), FileError> {
    let mut number = 1;
    loop {
        let counted = if number == 1 { String::new() } else { format!("-{number}") };
        let path = folder.join(format!("{name}.rescued{counted}.jsonl"));
        match OpenOptions::new().append(true).create_new(true).mode(0o600).open(&path) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < NAMES_MAX => number += 1,
            Err(error) => return Err(FileError::new("create", &path, error)),
        }
    }
}
