//! Saving a session whose log was deleted, replaced or cut while it was open.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use pal_model::Entry;

use crate::error::{FileError, LogChange};
use crate::file::create_private_directory;
use crate::segment::Source;

const CHUNK_BYTES: u64 = 1 << 20;
/// Names that are tried before giving up.
const NAMES_MAX: u32 = 1_000;

/// Compares the file that is held with the one at `path`, and its length with what was written. Costs two queries of
/// the file system.
pub(crate) fn find_change(held: &File, path: &Path, length: u64) -> io::Result<Option<LogChange>> {
    let held = held.metadata()?;
    match path.metadata() {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Some(LogChange::Deleted));
        }
        // What may not be looked at is not known to have changed.
        Err(_) => {}
        Ok(there) if (there.dev(), there.ino()) != (held.dev(), held.ino()) => {
            return Ok(Some(LogChange::Replaced));
        }
        Ok(_) => {}
    }
    let found = held.len();
    Ok((found != length).then_some(LogChange::Resized { expected: length, found }))
}

/// Writes a log anew, beside where it was: all that the held file still has, else the entries at hand; and behind them
/// the lines that could not be appended. The result is a log that can be resumed.
pub(crate) fn save(source: Source<'_>, entries: &[Entry], lines: &str) -> Result<PathBuf, FileError> {
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

/// Appends lines to a log that was saved before.
pub(crate) fn save_more(path: &Path, lines: &str) -> Result<(), FileError> {
    let opened = OpenOptions::new().append(true).open(path);
    let written = opened.and_then(|mut file| {
        file.write_all(lines.as_bytes())?;
        file.sync_all()
    });
    written.map_err(|error| FileError::new("append to", path, error))
}

/// A new file in the folder of the log, which is made again if it is gone; in the folder for temporary files if that
/// cannot be.
fn create_beside(log: &Path) -> Result<(PathBuf, File), FileError> {
    let name = log.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let folder = log.parent().unwrap_or(Path::new(""));
    let first = create_private_directory(folder).and_then(|()| create_in(folder, &name));
    let Err(refused) = first else { return first };
    // The folder names the session.
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
