//! Private directories, accessed by handle and never through a link.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pal_store::{
    FileError, LockedFile, OwnDirectoryError, none_if_missing, open_own_directory, open_regular_file,
};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, Stat};
use rustix::io::Errno;

/// A directory or file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PrivateDirError {
    /// Other users have access.
    #[error("{} is not private ({what}); other users could change messages there: move it away", .path.display())]
    NotPrivate {
        /// Path of the directory.
        path: PathBuf,
        /// Reason why it is refused.
        what: &'static str,
    },
    /// A system call failed.
    #[error(transparent)]
    File(#[from] FileError),
}

impl PrivateDirError {
    /// Wraps an error of the operating system.
    pub(crate) fn new(action: &'static str, path: &Path, source: io::Error) -> PrivateDirError {
        FileError { action, path: path.to_owned(), source }.into()
    }
}

/// A private directory.
pub(crate) struct PrivateDir {
    path: PathBuf,
    handle: OwnedFd,
}

impl PrivateDir {
    /// Opens a private directory, creating it if needed. Its parent must exist.
    pub(crate) fn open(path: &Path) -> Result<PrivateDir, PrivateDirError> {
        Ok(PrivateDir { path: path.to_owned(), handle: open_or_make(path)? })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Locks a file in it, creating it if needed; none if `limit` passes. Directory and file may be replaced
    /// while waiting; then the lock is taken on the new ones.
    pub(crate) fn lock(&mut self, name: &str, limit: Duration) -> io::Result<Option<LockedFile>> {
        let end = Instant::now() + limit;
        loop {
            if !self.is_in_place()? {
                self.handle = open_or_make(&self.path).map_err(io::Error::other)?;
            }
            let file = match self.open_file(name, OFlags::RDWR | OFlags::CREATE) {
                // The directory is just being removed.
                Err(error) if error.kind() == io::ErrorKind::NotFound && Instant::now() < end => continue,
                file => file?,
            };
            let Some(lock) = LockedFile::lock_until(file, end)? else { return Ok(None) };
            let held = rustix::fs::fstat(&*lock)?;
            if self.is_in_place()? && self.stat(name)?.is_some_and(|there| is_same(&there, &held)) {
                return Ok(Some(lock));
            }
        }
    }

    /// Metadata of a file; links are not followed.
    pub(crate) fn stat(&self, name: &str) -> io::Result<Option<Stat>> {
        none_if_missing(rustix::fs::statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW))
    }

    /// Opens a file in it, as [`open_regular_file`] does.
    pub(crate) fn open_file(&self, name: &str, flags: OFlags) -> io::Result<File> {
        open_regular_file(&self.handle, name, flags)
    }

    /// Reads up to `bytes_max` bytes of a file from `from`; none if it does not exist.
    pub(crate) fn read(&self, name: &str, from: u64, bytes_max: u64) -> io::Result<Option<Vec<u8>>> {
        let mut file = match self.open_file(name, OFlags::RDONLY) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(bytes_max).read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    }

    /// Replaces a file atomically. A temporary file left by a kill is overwritten by the next call. `lasts`
    /// syncs it, to survive a power failure.
    pub(crate) fn replace(&self, name: &str, bytes: &[u8], lasts: bool) -> io::Result<()> {
        let new = format!(".{name}.new");
        let mut file = self.open_file(&new, OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC)?;
        file.write_all(bytes)?;
        if lasts {
            file.sync_all()?;
        }
        rustix::fs::renameat(&self.handle, &new, &self.handle, name)?;
        if lasts {
            rustix::fs::fsync(&self.handle)?;
        }
        Ok(())
    }

    /// Renames a file over another.
    pub(crate) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.handle, from, &self.handle, to)?)
    }

    /// Removes a file, if it exists.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        none_if_missing(rustix::fs::unlinkat(&self.handle, name, AtFlags::empty())).map(|_| ())
    }

    fn is_in_place(&self) -> io::Result<bool> {
        let held = rustix::fs::fstat(&self.handle)?;
        let there = none_if_missing(rustix::fs::statat(CWD, &self.path, AtFlags::SYMLINK_NOFOLLOW))?;
        Ok(there.is_some_and(|there| is_same(&there, &held)))
    }
}

fn is_same(one: &Stat, other: &Stat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}

fn open_or_make(path: &Path) -> Result<OwnedFd, PrivateDirError> {
    let failed = |action, error: Errno| PrivateDirError::new(action, path, error.into());
    match rustix::fs::mkdirat(CWD, path, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(failed("create directory", error)),
    }
    let directory = match open_own_directory(CWD, path) {
        Ok(Some(directory)) => directory,
        Ok(None) => return Err(failed("open", Errno::NOENT)),
        Err(OwnDirectoryError::NotOwned(what)) => {
            return Err(PrivateDirError::NotPrivate { path: path.to_owned(), what });
        }
        Err(OwnDirectoryError::Io(error)) => return Err(PrivateDirError::new("open", path, error)),
    };
    let stat = rustix::fs::fstat(&directory).map_err(|error| failed("read", error))?;
    match Mode::from_raw_mode(stat.st_mode).intersects(Mode::RWXG | Mode::RWXO) {
        true => Err(PrivateDirError::NotPrivate { path: path.to_owned(), what: "others may enter" }),
        false => Ok(directory),
    }
}
