//! The real disk: the files of a mailbox in a private directory.

use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use pal_store::{LockedFile, create_private_directory};
use rustix::fs::OFlags;

use super::disk::Disk;
use crate::name::Name;
use crate::private::{Directory, FolderError};

const SPOOL: &str = "spool.jsonl";
const CURSOR: &str = "cursor.json";
const LOCK: &str = "lock";
const READER: &str = "reader";

/// The directory of one mailbox.
pub(super) struct Folder {
    directory: Directory,
    /// The lock of the one reader, if this is it.
    reader: Option<LockedFile>,
}

impl Folder {
    /// Opens the directory of a mailbox, making it if need be.
    pub(super) fn open(dir: &Path, name: &Name) -> Result<Folder, FolderError> {
        create_private_directory(dir)?;
        Ok(Folder { directory: Directory::open(&dir.join(name.as_str()))?, reader: None })
    }

    /// Becomes the one reader as long as this lives; false if there is one already.
    pub(super) fn lock_reader(&mut self) -> Result<bool, FolderError> {
        let locked = self.directory.lock(READER, Duration::ZERO);
        self.reader = locked.map_err(|error| fault(self, "lock", error))?;
        Ok(self.reader.is_some())
    }

    /// When something was last posted or confirmed, in seconds since 1970.
    pub(super) fn changed(&self) -> Option<i64> {
        let stats = [SPOOL, CURSOR, LOCK].map(|name| self.directory.stat(name).ok().flatten());
        stats.into_iter().flatten().map(|stat| stat.st_mtime).max()
    }
}

impl Disk for Folder {
    type Lock = LockedFile;

    fn lock(&mut self, limit: Duration) -> io::Result<Option<LockedFile>> {
        self.directory.lock(LOCK, limit)
    }

    fn read(&self, from: u64, bytes_max: u64) -> io::Result<Option<Vec<u8>>> {
        self.directory.read(SPOOL, from, bytes_max)
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.directory.open_file(SPOOL, OFlags::WRONLY | OFlags::APPEND)?.write_all(bytes)
    }

    /// Another spool may be in its place by now: that was synced before it came there.
    fn sync(&mut self) -> io::Result<()> {
        self.directory.open_file(SPOOL, OFlags::WRONLY)?.sync_data()
    }

    fn replace_spool(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.directory.replace(SPOOL, bytes, true)
    }

    fn cursor(&self) -> io::Result<Option<Vec<u8>>> {
        self.directory.read(CURSOR, 0, 4096)
    }

    /// Need not last: a cursor that is lost makes messages come again, marked as perhaps seen.
    fn replace_cursor(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.directory.replace(CURSOR, bytes, false)
    }

    fn stamp(&mut self) -> u64 {
        RandomState::new().hash_one((Instant::now(), std::process::id()))
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// What the system refused, with the mailbox that it was about.
pub(super) fn fault(disk: &impl Disk, action: &'static str, source: io::Error) -> FolderError {
    FolderError::new(action, disk.path(), source)
}
