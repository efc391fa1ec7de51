//! A directory of ours: held by its handle, closed to others, never through a link.

#[cfg(test)]
mod fault;
mod stamp;

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pal_store::{
    LockedFile, NotOwn, create_private_directory, if_there, open_own_directory, open_regular_file,
};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::error::MemoryError;
#[cfg(test)]
pub(crate) use fault::kill_after;
#[cfg(test)]
use fault::{put, settle_handle, step, sync_handle};
pub(crate) use stamp::Stamp;

/// The largest file that is taken for one of ours.
pub(crate) const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// How long a writer waits for another.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is said of a directory that was there a moment ago.
const WENT_AWAY: &str = "it went away while it was opened";

/// What a file is written under until it is whole.
const UNFINISHED: &str = ".unfinished";

/// A directory.
pub(crate) struct Folder {
    path: PathBuf,
    handle: OwnedFd,
}

/// What stands in a directory.
#[derive(Default)]
pub(crate) struct Scan {
    /// Files that can be memories.
    pub(crate) files: Vec<(String, Stamp)>,
    /// What cannot be: its name, and what it is.
    pub(crate) odd: Vec<(String, &'static str)>,
}

impl Folder {
    /// Opens a directory that is ours, making it and those above it if need be.
    pub(crate) fn make(path: &Path) -> Result<Folder, MemoryError> {
        create_private_directory(path)?;
        let gone = || MemoryError::NotOurs { path: path.to_owned(), what: WENT_AWAY };
        let folder = Folder::open(path)?.ok_or_else(gone)?;
        let stat = rustix::fs::fstat(&folder.handle)
            .map_err(|error| MemoryError::file("read", path, error.into()))?;
        if Mode::from_raw_mode(stat.st_mode).intersects(Mode::RWXG | Mode::RWXO) {
            let closed = rustix::fs::fchmod(&folder.handle, Mode::RWXU);
            closed.map_err(|error| MemoryError::file("close to others", path, error.into()))?;
        }
        Ok(folder)
    }

    /// Opens a directory that is there; none if it is not.
    pub(crate) fn open(path: &Path) -> Result<Option<Folder>, MemoryError> {
        Folder::opened(CWD, path, path.to_owned())
    }

    fn opened(at: impl AsFd, name: &Path, path: PathBuf) -> Result<Option<Folder>, MemoryError> {
        match open_own_directory(at, name) {
            Ok(handle) => Ok(handle.map(|handle| Folder { path, handle })),
            Err(NotOwn::Is(what)) => Err(MemoryError::NotOurs { path, what }),
            Err(NotOwn::Refused(error)) => Err(MemoryError::file("open", &path, error)),
        }
    }

    /// A directory in this one, made if need be.
    pub(crate) fn below(&self, name: &str) -> Result<Folder, MemoryError> {
        let path = self.path.join(name);
        match rustix::fs::mkdirat(&self.handle, name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(MemoryError::file("create directory", &path, error.into())),
        }
        let opened = Folder::opened(&self.handle, Path::new(name), path.clone())?;
        opened.ok_or(MemoryError::NotOurs { path, what: WENT_AWAY })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Everything in it whose name does not begin with a dot, by name.
    pub(crate) fn scan(&self) -> Result<Scan, MemoryError> {
        self.scanned().map_err(|error| MemoryError::file("list", &self.path, error))
    }

    fn scanned(&self) -> io::Result<Scan> {
        let mut scan = Scan::default();
        for entry in Dir::read_from(&self.handle)? {
            let entry = entry?;
            if entry.file_name().to_bytes().starts_with(b".") {
                continue;
            }
            let name = entry.file_name().to_string_lossy().into_owned();
            // It may have gone since it was listed.
            let Some(stat) = self.stat(&name)? else { continue };
            match what(&stat, &name, entry.file_name().to_bytes()) {
                None => scan.files.push((name, Stamp::of(&stat))),
                Some(what) => scan.odd.push((name, what)),
            }
        }
        scan.files.sort();
        scan.odd.sort();
        Ok(scan)
    }

    fn stat(&self, name: &str) -> io::Result<Option<Stat>> {
        if_there(rustix::fs::statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW))
    }

    /// The size of a file; 0 if there is none.
    pub(crate) fn size(&self, name: &str) -> Result<u64, MemoryError> {
        let stat = self.stat(name).map_err(|error| self.refused("read", name, error))?;
        Ok(stat.map_or(0, |stat| stat.st_size as u64))
    }

    /// What tells a file from what it was before; none if there is no file.
    pub(crate) fn stamp(&self, name: &str) -> Result<Option<Stamp>, MemoryError> {
        let stat = self.stat(name).map_err(|error| self.refused("read", name, error))?;
        Ok(stat.map(|stat| Stamp::of(&stat)))
    }

    /// Whether there is something of this name, whatever it is.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.stat(name).is_ok_and(|stat| stat.is_some())
    }

    /// A file with what it was when it was opened; none if there is none.
    pub(crate) fn read_with_stamp(&self, name: &str) -> Result<Option<(Vec<u8>, Stamp)>, MemoryError> {
        let refused = |error| self.refused("read", name, error);
        let mut file = match self.open_file(name, OFlags::RDONLY) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(refused)?,
        };
        let stamp = Stamp::of(&rustix::fs::fstat(&file).map_err(|error| refused(error.into()))?);
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(refused)?;
        Ok(Some((bytes, stamp)))
    }

    /// A file; none if there is none.
    pub(crate) fn read(&self, name: &str) -> Result<Option<Vec<u8>>, MemoryError> {
        Ok(self.read_with_stamp(name)?.map(|(bytes, _)| bytes))
    }

    /// Puts a file in the place of another, whole or not at all. One writer at a time: the lock sees to that.
    pub(crate) fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), MemoryError> {
        let replaced = self.replaced(name, bytes, true).and_then(|()| sync_handle(&self.handle));
        replaced.map_err(|error| self.refused("write", name, error))
    }

    /// The same for one of many files: it lasts once [`Folder::settle`] was called.
    pub(crate) fn replace_soon(&self, name: &str, bytes: &[u8]) -> Result<(), MemoryError> {
        // Only Linux can make many files last at once.
        let is_late = cfg!(target_os = "linux");
        self.replaced(name, bytes, !is_late).map_err(|error| self.refused("write", name, error))
    }

    /// Makes all that was written last, at once.
    pub(crate) fn settle(&self) -> Result<(), MemoryError> {
        settle_handle(&self.handle).map_err(|error| MemoryError::file("sync", &self.path, error))
    }

    fn replaced(&self, name: &str, bytes: &[u8], lasts: bool) -> io::Result<()> {
        let mut file = self.open_file(UNFINISHED, OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC)?;
        put(&mut file, bytes)?;
        if lasts {
            sync_handle(&file)?;
        }
        step()?;
        Ok(rustix::fs::renameat(&self.handle, UNFINISHED, &self.handle, name)?)
    }

    /// Adds to the end of a file, which is made if need be. A last line that a kill cut off is ended first.
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
        appended().map_err(|error| self.refused("append to", name, error))
    }

    /// Removes a file, if it is there.
    pub(crate) fn remove(&self, name: &str) -> Result<(), MemoryError> {
        let removed = step().and_then(|()| {
            if_there(rustix::fs::unlinkat(&self.handle, name, AtFlags::empty()))?;
            sync_handle(&self.handle)
        });
        removed.map_err(|error| self.refused("remove", name, error))
    }

    /// Waits for the lock of this directory.
    pub(crate) fn lock(&self, name: &str) -> Result<LockedFile, MemoryError> {
        let locked = LockedFile::lock_until(self.lock_file(name)?, Instant::now() + PATIENCE);
        let busy = || MemoryError::Busy { path: self.path.clone(), seconds: PATIENCE.as_secs() };
        locked.map_err(|error| self.refused("lock", name, error))?.ok_or_else(busy)
    }

    /// Takes the lock of this directory, if nobody has it.
    pub(crate) fn try_lock(&self, name: &str) -> Result<Option<LockedFile>, MemoryError> {
        let locked = LockedFile::try_lock(self.lock_file(name)?);
        Ok(locked.map_err(|error| self.refused("lock", name, error))?.ok())
    }

    fn lock_file(&self, name: &str) -> Result<File, MemoryError> {
        let file = self.open_file(name, OFlags::RDWR | OFlags::CREATE);
        file.map_err(|error| self.refused("open", name, error))
    }

    /// Makes sure that whoever opens this path next finds a file of ours behind it and no link.
    pub(crate) fn claim(&self, name: &str) -> Result<PathBuf, MemoryError> {
        let opened = self.open_file(name, OFlags::RDWR | OFlags::CREATE);
        if opened.is_err() {
            self.remove(name)?;
            self.open_file(name, OFlags::RDWR | OFlags::CREATE)
                .map_err(|error| self.refused("open", name, error))?;
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

    fn refused(&self, action: &'static str, name: &str, error: io::Error) -> MemoryError {
        MemoryError::file(action, &self.path.join(name), error)
    }
}

/// Why something cannot be a memory; none if it can.
fn what(stat: &Stat, name: &str, raw: &[u8]) -> Option<&'static str> {
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
