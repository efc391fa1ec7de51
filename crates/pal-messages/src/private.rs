//! Directories of our own: held by their handle, closed to others, and never through a link.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pal_store::{FileError, LockedFile, NotOwn, if_there, open_own_directory, open_regular_file};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, Stat};
use rustix::io::Errno;

/// A directory or a file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// Others can write or read there.
    #[error("{} is not private ({what}); messages are kept only where nobody else can change them: move it away", .path.display())]
    NotPrivate {
        /// The directory.
        path: PathBuf,
        /// Why not.
        what: &'static str,
    },
    /// The system refused something.
    #[error(transparent)]
    File(#[from] FileError),
}

impl FolderError {
    /// What the system refused.
    pub(crate) fn new(action: &'static str, path: &Path, source: io::Error) -> FolderError {
        FileError { action, path: path.to_owned(), source }.into()
    }
}

/// A private directory.
pub(crate) struct Directory {
    path: PathBuf,
    handle: OwnedFd,
}

impl Directory {
    /// Opens a directory that is ours alone, making it if need be. Those above it must be there.
    pub(crate) fn open(path: &Path) -> Result<Directory, FolderError> {
        Ok(Directory { path: path.to_owned(), handle: open_or_make(path)? })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Locks a file in it, making it if need be; none if that takes longer than the limit. Directory and file may be
    /// removed while the lock is waited for: then a lock of the old one would be worth nothing, and the new is tried.
    pub(crate) fn lock(&mut self, name: &str, limit: Duration) -> io::Result<Option<LockedFile>> {
        let end = Instant::now() + limit;
        loop {
            if !self.is_in_place()? {
                self.handle = open_or_make(&self.path).map_err(io::Error::other)?;
            }
            let file = match self.open_file(name, OFlags::RDWR | OFlags::CREATE) {
                // No file can be made in a directory that is removed just now.
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

    /// What the system knows of a file, of a link itself.
    pub(crate) fn stat(&self, name: &str) -> io::Result<Option<Stat>> {
        if_there(rustix::fs::statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW))
    }

    /// Opens a file in it, as [`open_regular_file`] does.
    pub(crate) fn open_file(&self, name: &str, flags: OFlags) -> io::Result<File> {
        open_regular_file(&self.handle, name, flags)
    }

    /// At most so many bytes of a file from here on; none if there is no file.
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

    /// Puts another file in the place of this one, whole or not at all. What a kill leaves under the other name is
    /// overwritten by the next. `lasts` is for what must survive a loss of power, too.
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

    /// Removes a file, if it is there.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        if_there(rustix::fs::unlinkat(&self.handle, name, AtFlags::empty())).map(|_| ())
    }

    fn is_in_place(&self) -> io::Result<bool> {
        let held = rustix::fs::fstat(&self.handle)?;
        let there = if_there(rustix::fs::statat(CWD, &self.path, AtFlags::SYMLINK_NOFOLLOW))?;
        Ok(there.is_some_and(|there| is_same(&there, &held)))
    }
}

fn is_same(one: &Stat, other: &Stat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}

fn open_or_make(path: &Path) -> Result<OwnedFd, FolderError> {
    let failed = |action, error: Errno| FolderError::new(action, path, error.into());
    match rustix::fs::mkdirat(CWD, path, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(failed("create directory", error)),
    }
    let directory = match open_own_directory(CWD, path) {
        Ok(Some(directory)) => directory,
        Ok(None) => return Err(failed("open", Errno::NOENT)),
        Err(NotOwn::Is(what)) => return Err(FolderError::NotPrivate { path: path.to_owned(), what }),
        Err(NotOwn::Refused(error)) => return Err(FolderError::new("open", path, error)),
    };
    let stat = rustix::fs::fstat(&directory).map_err(|error| failed("read", error))?;
    match Mode::from_raw_mode(stat.st_mode).intersects(Mode::RWXG | Mode::RWXO) {
        true => Err(FolderError::NotPrivate { path: path.to_owned(), what: "others may enter" }),
        false => Ok(directory),
    }
}
