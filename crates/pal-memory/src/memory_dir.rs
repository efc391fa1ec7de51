//! A private directory, accessed by handle and never through a link.

#[cfg(test)]
mod fault_injection;
mod file_stamp;

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pal_store::{
    LockedFile, OwnDirectoryError, create_private_directory, none_if_missing, open_own_directory,
    open_regular_file,
};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::error::MemoryError;
#[cfg(test)]
pub(crate) use fault_injection::kill_after;
#[cfg(test)]
use fault_injection::{put, settle_handle, step, sync_handle};
pub(crate) use file_stamp::FileStamp;

/// Maximum size of a memory file.
pub(crate) const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Maximum wait for another writer.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// Reason reported if the directory disappears while it is opened.
const DISAPPEARED: &str = "it disappeared while it was opened";

/// Temporary name of a file until it is complete.
const TEMPORARY_FILE: &str = ".unfinished";

/// An open memory directory.
pub(crate) struct MemoryDir {
    path: PathBuf,
    handle: OwnedFd,
}

/// Content of a directory.
#[derive(Default)]
pub(crate) struct DirScan {
    /// Files that can be memories.
    pub(crate) files: Vec<(String, FileStamp)>,
    /// Other entries: name and description.
    pub(crate) odd: Vec<(String, &'static str)>,
}

impl MemoryDir {
    /// Opens a directory of the user with mode 0700, creating it and its parents if needed.
    pub(crate) fn open_or_create(path: &Path) -> Result<MemoryDir, MemoryError> {
        create_private_directory(path)?;
        let gone = || MemoryError::NotOurs { path: path.to_owned(), what: DISAPPEARED };
        let folder = MemoryDir::open(path)?.ok_or_else(gone)?;
        let stat = rustix::fs::fstat(&folder.handle)
            .map_err(|error| MemoryError::file("read", path, error.into()))?;
        if Mode::from_raw_mode(stat.st_mode).intersects(Mode::RWXG | Mode::RWXO) {
            let closed = rustix::fs::fchmod(&folder.handle, Mode::RWXU);
            closed.map_err(|error| MemoryError::file("close to others", path, error.into()))?;
        }
        Ok(folder)
    }

    /// Opens an existing directory; none if it does not exist.
    pub(crate) fn open(path: &Path) -> Result<Option<MemoryDir>, MemoryError> {
        MemoryDir::open_at(CWD, path, path.to_owned())
    }

    fn open_at(at: impl AsFd, name: &Path, path: PathBuf) -> Result<Option<MemoryDir>, MemoryError> {
        match open_own_directory(at, name) {
            Ok(handle) => Ok(handle.map(|handle| MemoryDir { path, handle })),
            Err(OwnDirectoryError::NotOwned(what)) => Err(MemoryError::NotOurs { path, what }),
            Err(OwnDirectoryError::Io(error)) => Err(MemoryError::file("open", &path, error)),
        }
    }

    /// Opens a subdirectory, creating it if needed.
    pub(crate) fn subdirectory(&self, name: &str) -> Result<MemoryDir, MemoryError> {
        let path = self.path.join(name);
        match rustix::fs::mkdirat(&self.handle, name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(MemoryError::file("create directory", &path, error.into())),
        }
        let opened = MemoryDir::open_at(&self.handle, Path::new(name), path.clone())?;
        opened.ok_or(MemoryError::NotOurs { path, what: DISAPPEARED })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Lists everything whose name does not start with a dot, by name.
    pub(crate) fn scan(&self) -> Result<DirScan, MemoryError> {
        self.try_scan().map_err(|error| MemoryError::file("list", &self.path, error))
    }

    fn try_scan(&self) -> io::Result<DirScan> {
        let mut scan = DirScan::default();
        for entry in Dir::read_from(&self.handle)? {
            let entry = entry?;
            if entry.file_name().to_bytes().starts_with(b".") {
                continue;
            }
            let name = entry.file_name().to_string_lossy().into_owned();
            // It may have been removed since.
            let Some(stat) = self.stat(&name)? else { continue };
            match refusal_reason(&stat, &name, entry.file_name().to_bytes()) {
                None => scan.files.push((name, FileStamp::of(&stat))),
                Some(what) => scan.odd.push((name, what)),
            }
        }
        scan.files.sort();
        scan.odd.sort();
        Ok(scan)
    }

    fn stat(&self, name: &str) -> io::Result<Option<Stat>> {
        none_if_missing(rustix::fs::statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW))
    }

    /// Size of a file; 0 if it does not exist.
    pub(crate) fn size(&self, name: &str) -> Result<u64, MemoryError> {
        let stat = self.stat(name).map_err(|error| self.file_error("read", name, error))?;
        Ok(stat.map_or(0, |stat| stat.st_size as u64))
    }

    /// Change marker of a file; none if it does not exist.
    pub(crate) fn stamp(&self, name: &str) -> Result<Option<FileStamp>, MemoryError> {
        let stat = self.stat(name).map_err(|error| self.file_error("read", name, error))?;
        Ok(stat.map(|stat| FileStamp::of(&stat)))
    }

    /// Reports whether anything of this name exists.
    pub(crate) fn exists(&self, name: &str) -> bool {
        self.stat(name).is_ok_and(|stat| stat.is_some())
    }

    /// Reads a file with its change marker; none if it does not exist.
    pub(crate) fn read_with_stamp(&self, name: &str) -> Result<Option<(Vec<u8>, FileStamp)>, MemoryError> {
        let refused = |error| self.file_error("read", name, error);
        let mut file = match self.open_file(name, OFlags::RDONLY) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(refused)?,
        };
        let stamp = FileStamp::of(&rustix::fs::fstat(&file).map_err(|error| refused(error.into()))?);
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(refused)?;
        Ok(Some((bytes, stamp)))
    }

    /// Reads a file; none if it does not exist.
    pub(crate) fn read(&self, name: &str) -> Result<Option<Vec<u8>>, MemoryError> {
        Ok(self.read_with_stamp(name)?.map(|(bytes, _)| bytes))
    }

    /// Replaces a file atomically and syncs it. The caller holds the lock.
    pub(crate) fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), MemoryError> {
        let replaced = self.try_replace(name, bytes, true).and_then(|()| sync_handle(&self.handle));
        replaced.map_err(|error| self.file_error("write", name, error))
    }

    /// Replaces one of many files; [`MemoryDir::sync_all`] syncs them all.
    pub(crate) fn replace_unsynced(&self, name: &str, bytes: &[u8]) -> Result<(), MemoryError> {
        // Only Linux can sync many files at once.
        let is_late = cfg!(target_os = "linux");
        self.try_replace(name, bytes, !is_late).map_err(|error| self.file_error("write", name, error))
    }

    /// Syncs everything written so far.
    pub(crate) fn sync_all(&self) -> Result<(), MemoryError> {
        settle_handle(&self.handle).map_err(|error| MemoryError::file("sync", &self.path, error))
    }

    fn try_replace(&self, name: &str, bytes: &[u8], lasts: bool) -> io::Result<()> {
        let mut file = self.open_file(TEMPORARY_FILE, OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC)?;
        put(&mut file, bytes)?;
        if lasts {
            sync_handle(&file)?;
        }
        step()?;
        Ok(rustix::fs::renameat(&self.handle, TEMPORARY_FILE, &self.handle, name)?)
    }

    /// Appends a line, creating the file if needed; ends a truncated last line first. Returns the new length.
    pub(crate) fn append_line(&self, name: &str, line: &str) -> Result<u64, MemoryError> {
        let appended = || -> io::Result<u64> {
            let mut file = self.open_file(name, OFlags::RDWR | OFlags::CREATE | OFlags::APPEND)?;
            let mut text = String::new();
            if !ends_with_line(&file)? {
                text.push('\n');
            }
            text.push_str(line);
            text.push('\n');
            put(&mut file, text.as_bytes())?;
            sync_handle(&file)?;
            Ok(file.metadata()?.len())
        };
        appended().map_err(|error| self.file_error("append to", name, error))
    }

    /// Removes a file, if it exists.
    pub(crate) fn remove(&self, name: &str) -> Result<(), MemoryError> {
        let removed = step().and_then(|()| {
            none_if_missing(rustix::fs::unlinkat(&self.handle, name, AtFlags::empty()))?;
            sync_handle(&self.handle)
        });
        removed.map_err(|error| self.file_error("remove", name, error))
    }

    /// Waits for the lock of this directory.
    pub(crate) fn lock(&self, name: &str) -> Result<LockedFile, MemoryError> {
        let locked = LockedFile::lock_until(self.lock_file(name)?, Instant::now() + LOCK_TIMEOUT);
        let busy = || MemoryError::Busy { path: self.path.clone(), seconds: LOCK_TIMEOUT.as_secs() };
        locked.map_err(|error| self.file_error("lock", name, error))?.ok_or_else(busy)
    }

    /// Takes the lock of this directory, if it is free.
    pub(crate) fn try_lock(&self, name: &str) -> Result<Option<LockedFile>, MemoryError> {
        let locked = LockedFile::try_lock(self.lock_file(name)?);
        Ok(locked.map_err(|error| self.file_error("lock", name, error))?.ok())
    }

    fn lock_file(&self, name: &str) -> Result<File, MemoryError> {
        let file = self.open_file(name, OFlags::RDWR | OFlags::CREATE);
        file.map_err(|error| self.file_error("open", name, error))
    }

    /// Makes sure that the path is a regular file of the user and not a link, and returns it.
    pub(crate) fn claim_file(&self, name: &str) -> Result<PathBuf, MemoryError> {
        let opened = self.open_file(name, OFlags::RDWR | OFlags::CREATE);
        if opened.is_err() {
            self.remove(name)?;
            self.open_file(name, OFlags::RDWR | OFlags::CREATE)
                .map_err(|error| self.file_error("open", name, error))?;
        }
        Ok(self.path.join(name))
    }

    /// Opens a file in it, as [`open_regular_file`] does.
    fn open_file(&self, name: &str, flags: OFlags) -> io::Result<File> {
        if flags.contains(OFlags::CREATE) {
            step()?;
        }
        open_regular_file(&self.handle, name, flags)
    }

    fn file_error(&self, action: &'static str, name: &str, error: io::Error) -> MemoryError {
        MemoryError::file(action, &self.path.join(name), error)
    }
}

/// Reason why a directory entry cannot be a memory.
fn refusal_reason(stat: &Stat, name: &str, raw: &[u8]) -> Option<&'static str> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile if stat.st_size as u64 > FILE_BYTES_MAX => Some("a huge file"),
        FileType::RegularFile if name.as_bytes() != raw => Some("a file whose name is no text"),
        FileType::RegularFile => None,
        FileType::Symlink => Some("a link"),
        FileType::Directory => Some("a folder"),
        _ => Some("a device, a pipe or a socket"),
    }
}

fn ends_with_line(file: &File) -> io::Result<bool> {
    use std::os::unix::fs::FileExt;
    let length = file.metadata()?.len();
    let mut last = [b'\n'];
    if length > 0 {
        file.read_exact_at(&mut last, length - 1)?;
    }
    Ok(last == *b"\n")
}

#[cfg(not(test))]
fn put(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)
}

#[cfg(not(test))]
fn sync_handle(handle: impl AsFd) -> io::Result<()> {
    Ok(rustix::fs::fsync(handle)?)
}

#[cfg(not(test))]
fn step() -> io::Result<()> {
    Ok(())
}

#[cfg(all(not(test), target_os = "linux"))]
fn settle_handle(handle: &OwnedFd) -> io::Result<()> {
    Ok(rustix::fs::syncfs(handle)?)
}

#[cfg(all(not(test), not(target_os = "linux")))]
fn settle_handle(handle: &OwnedFd) -> io::Result<()> {
    sync_handle(handle)
}
