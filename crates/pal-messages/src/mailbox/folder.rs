//! The real disk: a private directory that is held by its handle, so that no link in its path leads elsewhere.

use std::fs::{File, TryLockError};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pal_store::{FileError, create_private_directory};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::disk::Disk;
use crate::name::Name;

const SPOOL: &str = "spool.jsonl";
const CURSOR: &str = "cursor.json";
const LOCK: &str = "lock";
const READER: &str = "reader";

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

/// The directory of one mailbox.
pub(super) struct Folder {
    path: PathBuf,
    directory: OwnedFd,
    kept: Option<Lock>,
}

/// A lock that is given back on drop. Closing alone would not do at once: a child that is just being started has a copy
/// of the handle for a moment.
pub(super) struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Nothing is left to be done if this fails: closing gives the lock back, too.
        let _ = self.0.unlock();
    }
}

impl Folder {
    /// Opens the directory of a mailbox, making it if need be.
    pub(super) fn open(dir: &Path, name: &Name) -> Result<Folder, FolderError> {
        create_private_directory(dir)?;
        let path = dir.join(name.as_str());
        let directory = open_directory(&path)?;
        Ok(Folder { path, directory, kept: None })
    }

    /// The lock of the one reader; none if there is one already.
    pub(super) fn lock_reader(&mut self) -> Result<Option<Lock>, FolderError> {
        let locked = self.acquire(READER, Duration::ZERO);
        locked.map_err(|error| fault(self, "lock", error))
    }

    /// Holds a lock as long as this lives.
    pub(super) fn keep(&mut self, lock: Lock) {
        self.kept = Some(lock);
    }

    /// Where it is.
    pub(super) fn into_path(self) -> PathBuf {
        self.path
    }

    /// When something was last posted or confirmed.
    pub(super) fn changed(&self) -> Option<i64> {
        let times = [SPOOL, CURSOR, LOCK].map(|name| self.stat(name).ok().map(|stat| stat.st_mtime));
        times.into_iter().flatten().max()
    }

    /// The directory may have been swept away while the lock was waited for; then there is a new one, or will be.
    fn acquire(&mut self, name: &str, limit: Duration) -> io::Result<Option<Lock>> {
        let end = Instant::now() + limit;
        loop {
            let file = self.open_file(name, OFlags::RDWR | OFlags::CREATE)?;
            if !lock_until(&file, end)? {
                return Ok(None);
            }
            let lock = Lock(file);
            if self.is_in_place()? {
                return Ok(Some(lock));
            }
            self.directory = open_directory(&self.path).map_err(io::Error::other)?;
        }
    }

    fn is_in_place(&self) -> io::Result<bool> {
        let held = rustix::fs::fstat(&self.directory)?;
        match rustix::fs::statat(CWD, &self.path, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(there) => Ok((there.st_dev, there.st_ino) == (held.st_dev, held.st_ino)),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn stat(&self, name: &str) -> io::Result<Stat> {
        Ok(rustix::fs::statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// Never through a link, never waiting for a pipe, and regular files only.
    fn open_file(&self, name: &str, flags: OFlags) -> io::Result<File> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let handle = rustix::fs::openat(&self.directory, name, flags, Mode::RUSR | Mode::WUSR)?;
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&handle)?.st_mode);
        match kind {
            FileType::RegularFile => Ok(File::from(handle)),
            _ => Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{name} is no regular file"))),
        }
    }

    fn read_file(&self, name: &str, from: u64, bytes_max: u64) -> io::Result<Option<Vec<u8>>> {
        let mut file = match self.open_file(name, OFlags::RDONLY) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(bytes_max).read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    }

    /// What a kill leaves under the other name is overwritten by the next.
    fn replace(&self, name: &str, bytes: &[u8], synced: bool) -> io::Result<()> {
        let new = format!(".{name}.new");
        let mut file = self.open_file(&new, OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC)?;
        file.write_all(bytes)?;
        if synced {
            file.sync_all()?;
        }
        rustix::fs::renameat(&self.directory, &new, &self.directory, name)?;
        if synced {
            rustix::fs::fsync(&self.directory)?;
        }
        Ok(())
    }
}

impl Disk for Folder {
    type Lock = Lock;

    fn lock(&mut self, limit: Duration) -> io::Result<Option<Lock>> {
        self.acquire(LOCK, limit)
    }

    fn read(&self, from: u64, bytes_max: u64) -> io::Result<Option<Vec<u8>>> {
        self.read_file(SPOOL, from, bytes_max)
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.open_file(SPOOL, OFlags::WRONLY | OFlags::APPEND)?.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.open_file(SPOOL, OFlags::WRONLY)?.sync_data()
    }

    fn replace_spool(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.replace(SPOOL, bytes, true)
    }

    fn cursor(&self) -> io::Result<Option<Vec<u8>>> {
        self.read_file(CURSOR, 0, 4096)
    }

    /// Not synced: a cursor that is lost makes messages come again, marked as perhaps seen.
    fn replace_cursor(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.replace(CURSOR, bytes, false)
    }

    fn stamp(&mut self) -> u64 {
        RandomState::new().hash_one((Instant::now(), std::process::id()))
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

/// What the system refused, with the mailbox that it was about.
pub(super) fn fault(disk: &impl Disk, action: &'static str, source: io::Error) -> FolderError {
    FileError { action, path: disk.path().to_owned(), source }.into()
}

/// Tries again after a short while, and then after longer ones: the lock is held for microseconds.
fn lock_until(file: &File, end: Instant) -> io::Result<bool> {
    let mut pause = Duration::from_micros(50);
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) if Instant::now() >= end => return Ok(false),
            Err(TryLockError::WouldBlock) => std::thread::sleep(pause),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        pause = (pause * 2).min(Duration::from_millis(5));
    }
}

/// Opens a directory that is ours alone, making it if need be.
fn open_directory(path: &Path) -> Result<OwnedFd, FolderError> {
    let failed = |action, error: Errno| FileError { action, path: path.to_owned(), source: error.into() };
    match rustix::fs::mkdirat(CWD, path, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(failed("create directory", error).into()),
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = match rustix::fs::openat(CWD, path, flags, Mode::empty()) {
        Ok(directory) => directory,
        Err(Errno::LOOP | Errno::NOTDIR) => {
            return Err(FolderError::NotPrivate { path: path.to_owned(), what: "it is a link or a file" });
        }
        Err(error) => return Err(failed("open", error).into()),
    };
    let stat = rustix::fs::fstat(&directory).map_err(|error| failed("read", error))?;
    let what = match () {
        () if stat.st_uid != rustix::process::geteuid().as_raw() => "it belongs to another user",
        () if Mode::from_raw_mode(stat.st_mode).intersects(Mode::RWXG | Mode::RWXO) => "others may enter",
        () => return Ok(directory),
    };
    Err(FolderError::NotPrivate { path: path.to_owned(), what })
}
