//! Directories and files that are held by their handles: never reached through a link, never waited for, ours alone.

use std::fs::{File, TryLockError};
use std::io;
use std::ops::Deref;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

/// A file with its lock, which is given back on drop. Closing alone would not do at once: a child that is just being started
/// has a copy of the handle for a moment.
pub struct LockedFile(File);

impl LockedFile {
    /// Locks a file; it comes back as it is if somebody else has locked it.
    pub fn try_lock(file: File) -> io::Result<Result<LockedFile, File>> {
        match file.try_lock() {
            Ok(()) => Ok(Ok(LockedFile(file))),
            Err(TryLockError::WouldBlock) => Ok(Err(file)),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Locks a file, waiting for it until then; none if that takes longer. It is tried again after a short while, and then
    /// after longer ones: locks that are waited for are held for microseconds.
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
        // Nothing is left to be done if this fails: closing gives the lock back, too.
        let _ = self.0.unlock();
    }
}

/// Why a directory is not taken for one of ours.
#[derive(Debug)]
pub enum NotOwn {
    /// What it is instead.
    Is(&'static str),
    /// The system refused something.
    Refused(io::Error),
}

/// Opens a directory of the user's own, by a path from `at` on; none if it is not there. A link is none.
pub fn open_own_directory(at: impl AsFd, path: &Path) -> Result<Option<OwnedFd>, NotOwn> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = match rustix::fs::openat(at, path, flags, Mode::empty()) {
        Ok(handle) => handle,
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP | Errno::NOTDIR) => return Err(NotOwn::Is("it is a link or a file")),
        Err(error) => return Err(NotOwn::Refused(error.into())),
    };
    let stat = rustix::fs::fstat(&handle).map_err(|error| NotOwn::Refused(error.into()))?;
    match stat.st_uid == rustix::process::geteuid().as_raw() {
        true => Ok(Some(handle)),
        false => Err(NotOwn::Is("it belongs to another user")),
    }
}

/// Opens a file of a directory, made for its owner only if the flags say so: never through a link, never waiting for a pipe,
/// and regular files only.
pub fn open_regular_file(directory: impl AsFd, name: &str, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let handle = rustix::fs::openat(directory, name, flags, Mode::RUSR | Mode::WUSR)?;
    match FileType::from_raw_mode(rustix::fs::fstat(&handle)?.st_mode) {
        FileType::RegularFile => Ok(File::from(handle)),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{name} is no regular file"))),
    }
}

/// What was found; none if there is nothing.
pub fn if_there<T>(result: Result<T, Errno>) -> io::Result<Option<T>> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
