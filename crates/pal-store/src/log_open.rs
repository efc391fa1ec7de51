//! Opens log files: private modes, no blocking on pipes, one writer per log.
//!
//! The lock is on the log's own handle, so it ends with the process.

use std::fs::{DirBuilder, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

use crate::error::{FileError, OpenError};
use crate::safe_open::LockedFile;

/// Opens and locks an existing log for appending.
pub(crate) fn open_to_append(path: &Path) -> Result<LockedFile, OpenError> {
    lock(open(OpenOptions::new().read(true).append(true), path)?, path)
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
    lock(file, path)
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

fn lock(file: File, path: &Path) -> Result<LockedFile, OpenError> {
    match LockedFile::try_lock(file) {
        Ok(Ok(locked)) => Ok(locked),
        Ok(Err(file)) => Err(OpenError::Locked { path: path.to_owned(), pid: lock_holder(&file) }),
        Err(error) => Err(FileError::new("lock", path, error).into()),
    }
}

/// PID of the process that holds the lock, from `/proc/locks`.
#[cfg(target_os = "linux")]
fn lock_holder(file: &File) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    let metadata = file.metadata().ok()?;
    let (major, minor) = (rustix::fs::major(metadata.dev()), rustix::fs::minor(metadata.dev()));
    let place = format!("{major:02x}:{minor:02x}:{}", metadata.ino());
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|lock| holder_in(lock, &place))
}

/// Only Linux reports the holder.
#[cfg(not(target_os = "linux"))]
fn lock_holder(_file: &File) -> Option<u32> {
    None
}

/// Parses a line such as `1: FLOCK  ADVISORY  WRITE 4711 fd:00:1234 0 EOF`.
#[cfg(target_os = "linux")]
fn holder_in(lock: &str, place: &str) -> Option<u32> {
    let words: Vec<&str> = lock.split_whitespace().collect();
    match words.as_slice() {
        [_, "FLOCK", _, "WRITE", pid, at, ..] if *at == place => pid.parse().ok().filter(|pid| *pid > 0),
        _ => None,
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn lock_holder_is_parsed_from_proc_locks() {
        assert_eq!(holder_in("1: FLOCK  ADVISORY  WRITE 4711 fd:00:1234 0 EOF", "fd:00:1234"), Some(4711));
        assert_eq!(holder_in("1: -> FLOCK  ADVISORY  WRITE 4712 fd:00:1234 0 EOF", "fd:00:1234"), None);
        assert_eq!(holder_in("2: POSIX  ADVISORY  WRITE 4711 fd:00:1234 0 EOF", "fd:00:1234"), None);
        assert_eq!(holder_in("1: FLOCK  ADVISORY  WRITE 0 fd:00:1234 0 EOF", "fd:00:1234"), None);
    }
}
