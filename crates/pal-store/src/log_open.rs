//! Opens log files: private modes, no blocking on pipes.

use std::fs::{DirBuilder, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

use crate::error::{FileError, OpenError};
use crate::log_lock::lock_log;
use crate::safe_open::LockedFile;

/// Opens and locks an existing log for appending.
pub(crate) fn open_to_append(path: &Path) -> Result<LockedFile, OpenError> {
    lock_log(open(OpenOptions::new().read(true).append(true), path)?, path)
}

/// Creates and locks a new log with mode 0600.
pub(crate) fn create_to_append(path: &Path) -> Result<LockedFile, OpenError> {
    let mut options = OpenOptions::new();
    let file = match options.read(true).append(true).create_new(true).mode(0o600).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            return Err(OpenError::Exists { path: path.to_owned() });
        }
        Err(error) => return Err(FileError::new("create", path, error).into()),
    };
    lock_log(file, path)
}

/// Opens a file next to a log for appending, creating it if needed.
pub(crate) fn open_beside(path: &Path) -> Result<File, OpenError> {
    open(OpenOptions::new().append(true).create(true).mode(0o600), path)
}

/// Opens a log for reading.
pub(crate) fn open_to_read(path: &Path) -> Result<File, OpenError> {
    open(OpenOptions::new().read(true), path)
}

/// Syncs the directory entries of `directory` to disk.
pub(crate) fn sync_directory(directory: &Path) -> Result<(), FileError> {
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    let synced = File::open(directory).and_then(|handle| handle.sync_all());
    synced.map_err(|error| FileError::new("sync", directory, error))
}

/// Creates a directory and its missing parents with mode 0700 and syncs them.
pub fn create_private_directory(path: &Path) -> Result<(), FileError> {
    let mut missing: Vec<&Path> =
        path.ancestors().take_while(|part| !part.as_os_str().is_empty() && !part.exists()).collect();
    while let Some(part) = missing.pop() {
        match DirBuilder::new().mode(0o700).create(part) {
            // Another process created it first.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && part.is_dir() => {}
            Err(error) => return Err(FileError::new("create directory", part, error)),
            Ok(()) => sync_directory(part.parent().unwrap_or(Path::new("")))?,
        }
    }
    Ok(())
}

/// Opens a regular file. `NONBLOCK` keeps a pipe without a writer from blocking; regular files ignore it.
fn open(options: &mut OpenOptions, path: &Path) -> Result<File, OpenError> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits() as i32;
    let opened = options.custom_flags(flags).open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) => return Err(explain_open_error(path, error)),
    };
    let metadata = file.metadata().map_err(|error| FileError::new("read", path, error))?;
    match file_type_name(&metadata) {
        Some(what) => Err(OpenError::NotAFile { path: path.to_owned(), what }),
        None => Ok(file),
    }
}

/// Explains why a directory, socket or pipe cannot be opened.
fn explain_open_error(path: &Path, error: std::io::Error) -> OpenError {
    match path.metadata().ok().as_ref().and_then(file_type_name) {
        Some(what) => OpenError::NotAFile { path: path.to_owned(), what },
        None => FileError::new("open", path, error).into(),
    }
}

/// Names the file type with its article, unless it is a regular file.
fn file_type_name(metadata: &std::fs::Metadata) -> Option<&'static str> {
    let kind = metadata.file_type();
    match () {
        () if kind.is_file() => None,
        () if kind.is_dir() => Some("a directory"),
        () if kind.is_fifo() => Some("a pipe"),
        () if kind.is_socket() => Some("a socket"),
        () => Some("a device"),
    }
}
