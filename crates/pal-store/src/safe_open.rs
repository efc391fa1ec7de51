//! Opens and locks files and directories by handle: never through a link, never blocking, owned by the user.

use std::fs::{File, TryLockError};
use std::io;
use std::ops::Deref;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

/// A locked file, unlocked on drop. Closing alone is not enough: a child process that is being spawned holds
/// a copy of the handle for a moment.
pub struct LockedFile(File);

impl LockedFile {
    /// Locks a file; returns the file unlocked if another process holds the lock.
    pub fn try_lock(file: File) -> io::Result<Result<LockedFile, File>> {
        match file.try_lock() {
            Ok(()) => Ok(Ok(LockedFile(file))),
            Err(TryLockError::WouldBlock) => Ok(Err(file)),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Locks a file, retrying with growing pauses until `end`; none if the deadline passes. Such locks are
    /// normally held for microseconds.
    pub fn lock_until(mut file: File, end: Instant) -> io::Result<Option<LockedFile>> {
        let mut pause = Duration::from_micros(50);
        loop {
            file = match LockedFile::try_lock(file)? {
                Ok(locked) => return Ok(Some(locked)),
                Err(_) if Instant::now() >= end => return Ok(None),
                Err(file) => file,
            };
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(5));
        }
    }
}

impl Deref for LockedFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        // Closing the file releases the lock as well.
        let _ = self.0.unlock();
    }
}

/// Reason why a directory was not opened.
#[derive(Debug)]
pub enum OwnDirectoryError {
    /// It is a link or a file, or belongs to another user.
    NotOwned(&'static str),
    /// The operating system refused an operation.
    Io(io::Error),
}

/// Opens a directory that the user owns, relative to `at`; none if it does not exist. Links are refused.
pub fn open_own_directory(at: impl AsFd, path: &Path) -> Result<Option<OwnedFd>, OwnDirectoryError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = match rustix::fs::openat(at, path, flags, Mode::empty()) {
        Ok(handle) => handle,
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP | Errno::NOTDIR) => {
            return Err(OwnDirectoryError::NotOwned("it is a link or a file"));
        }
        Err(error) => return Err(OwnDirectoryError::Io(error.into())),
    };
    let stat = rustix::fs::fstat(&handle).map_err(|error| OwnDirectoryError::Io(error.into()))?;
    match stat.st_uid == rustix::process::geteuid().as_raw() {
        true => Ok(Some(handle)),
        false => Err(OwnDirectoryError::NotOwned("it belongs to another user")),
    }
}

/// Opens a regular file in a directory, with mode 0600 if the flags create it. Never follows a link and never
/// blocks on a pipe.
pub fn open_regular_file(directory: impl AsFd, name: &str, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let handle = rustix::fs::openat(directory, name, flags, Mode::RUSR | Mode::WUSR)?;
    match FileType::from_raw_mode(rustix::fs::fstat(&handle)?.st_mode) {
        FileType::RegularFile => Ok(File::from(handle)),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{name} is not a regular file"))),
    }
}

/// Turns "not found" into `None`.
pub fn none_if_missing<T>(result: Result<T, Errno>) -> io::Result<Option<T>> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
