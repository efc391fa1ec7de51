//! What the protocol needs of a disk. A trait, so that tests can stop everything at any step.

use std::io;
use std::path::Path;
use std::time::Duration;

/// The files of one mailbox.
pub(super) trait Disk {
    /// Held while the spool is changed.
    type Lock;

    /// Locks the spool against other writers; none if that takes longer than the limit.
    fn lock(&mut self, limit: Duration) -> io::Result<Option<Self::Lock>>;
    /// At most so many bytes of the spool from here on; none if there is no spool.
    fn read(&self, from: u64, bytes_max: u64) -> io::Result<Option<Vec<u8>>>;
    /// Appends to the spool. A failure or a kill may leave the first bytes of it there.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Makes what is in the spool last.
    fn sync(&mut self) -> io::Result<()>;
    /// Puts another spool in the place of this one: all of it, or nothing changes.
    fn replace_spool(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// What was last put there as the cursor.
    fn cursor(&self) -> io::Result<Option<Vec<u8>>>;
    /// Puts another cursor in the place of this one: all of it, or nothing changes.
    fn replace_cursor(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// A number that no spool here had before.
    fn stamp(&mut self) -> u64;
    /// Where it is, for errors.
    fn path(&self) -> &Path;
}
