//! Disk operations of the protocol; a trait, so that tests can stop at any step.

use std::io;
use std::path::Path;
use std::time::Duration;

/// Files of one mailbox.
pub(super) trait MailboxDisk {
    /// Guard held while the spool is changed.
    type Lock;

    /// Locks the spool against other writers; none if `limit` passes.
    fn lock(&mut self, limit: Duration) -> io::Result<Option<Self::Lock>>;
    /// Reads up to `bytes_max` bytes of the spool from `from`; none if there is no spool.
    fn read(&self, from: u64, bytes_max: u64) -> io::Result<Option<Vec<u8>>>;
    /// Appends to the spool. A failure or a kill may leave the first bytes.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Syncs the spool.
    fn sync(&mut self) -> io::Result<()>;
    /// Replaces the spool atomically.
    fn replace_spool(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Reads the cursor.
    fn cursor(&self) -> io::Result<Option<Vec<u8>>>;
    /// Replaces the cursor atomically.
    fn replace_cursor(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Returns a number that no spool here had before.
    fn stamp(&mut self) -> u64;
    /// Path for error messages.
    fn path(&self) -> &Path;
}
