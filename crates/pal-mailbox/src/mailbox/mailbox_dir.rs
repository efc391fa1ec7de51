//! Files of a mailbox in a private directory.

use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use pal_store::{LockedFile, create_private_directory};
use rustix::fs::OFlags;

use super::mailbox_disk::MailboxDisk;
use crate::address::AgentName;
use crate::private_dir::{PrivateDir, PrivateDirError};

const SPOOL: &str = "spool.jsonl";
const CURSOR: &str = "cursor.json";
const LOCK: &str = "lock";
const READER: &str = "reader";

/// Directory of one mailbox.
pub(super) struct MailboxDir {
    directory: PrivateDir,
    /// Lock of the reader, if this process is the reader.
    reader: Option<LockedFile>,
}

impl MailboxDir {
    /// Opens the directory of a mailbox, creating it if needed.
    pub(super) fn open(dir: &Path, name: &AgentName) -> Result<MailboxDir, PrivateDirError> {
        create_private_directory(dir)?;
        Ok(MailboxDir { directory: PrivateDir::open(&dir.join(name.as_str()))?, reader: None })
    }

    /// Becomes the only reader until dropped; false if there is one already.
    pub(super) fn lock_reader(&mut self) -> Result<bool, PrivateDirError> {
        let locked = self.directory.lock(READER, Duration::ZERO);
        self.reader = locked.map_err(|error| fault(self, "lock", error))?;
        Ok(self.reader.is_some())
    }

    /// Time of the last post or confirmation, in seconds since 1970.
    pub(super) fn changed(&self) -> Option<i64> {
        let stats = [SPOOL, CURSOR, LOCK].map(|name| self.directory.stat(name).ok().flatten());
        stats.into_iter().flatten().map(|stat| stat.st_mtime).max()
    }
}

impl MailboxDisk for MailboxDir {
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

    /// Another spool may have taken its place; that one is already synced.
    fn sync(&mut self) -> io::Result<()> {
        self.directory.open_file(SPOOL, OFlags::WRONLY)?.sync_data()
    }

    fn replace_spool(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.directory.replace(SPOOL, bytes, true)
    }

    fn cursor(&self) -> io::Result<Option<Vec<u8>>> {
        self.directory.read(CURSOR, 0, 4096)
    }

    /// Not synced: a lost cursor makes messages come again, marked as perhaps seen.
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

/// Wraps an error of the operating system with the mailbox path.
pub(super) fn fault(disk: &impl MailboxDisk, action: &'static str, source: io::Error) -> PrivateDirError {
    PrivateDirError::new(action, disk.path(), source)
}
