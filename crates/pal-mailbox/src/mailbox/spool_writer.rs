//! Writer's side of the protocol.

use std::io;
use std::time::Duration;

use super::mailbox_dir::fault;
use super::mailbox_disk::MailboxDisk;
use super::spool_format::{CANCEL, SpoolHeader, note_ids, whole_lines};
use super::{Limits, PostError, PostOutcome};
use crate::envelope::Envelope;
use crate::known_ids::{IdStatus, KnownIds};

/// A writer of one spool.
pub(super) struct SpoolWriter<D> {
    disk: D,
    limits: Limits,
    /// Part of the spool read so far, so that a post reads only new lines.
    index: Option<SpoolIndex>,
}

/// Ids of a spool up to a line end.
struct SpoolIndex {
    stamp: u64,
    known: KnownIds,
    read: u64,
}

impl<D: MailboxDisk> SpoolWriter<D> {
    /// Creates a writer that has read nothing yet.
    pub(super) fn new(disk: D, limits: Limits) -> SpoolWriter<D> {
        SpoolWriter { disk, limits, index: None }
    }

    /// Posts a message unless it is there already.
    pub(super) fn post(&mut self, message: &Envelope, limit: Duration) -> Result<PostOutcome, PostError> {
        let lock = match self.disk.lock(limit) {
            Ok(Some(lock)) => lock,
            Ok(None) => return Err(PostError::Busy { path: self.disk.path().to_owned() }),
            Err(error) => return Err(fault(&self.disk, "lock", error).into()),
        };
        let posted = self.post_locked(message)?;
        drop(lock);
        // Also for a known message: its writer may have been killed before the sync.
        self.disk.sync().map_err(|error| fault(&self.disk, "sync", error))?;
        Ok(posted)
    }

    fn post_locked(&mut self, message: &Envelope) -> Result<PostOutcome, PostError> {
        let (mut index, torn_bytes) = self.read_index().map_err(|error| fault(&self.disk, "read", error))?;
        let posted = match index.known.status(message.id) {
            IdStatus::Before => Ok(PostOutcome::Duplicate),
            IdStatus::Forgotten => Err(PostError::Forgotten { id: message.id }),
            IdStatus::Never => self.append(message, &mut index, torn_bytes),
        };
        self.index = Some(index);
        posted
    }

    /// Reads new lines; returns the index and the number of torn bytes after the last line end.
    fn read_index(&mut self) -> io::Result<(SpoolIndex, u64)> {
        let mut index = match self.index.take() {
            Some(index) if self.is_current(&index)? => index,
            _ => self.begin()?,
        };
        let bytes = self.disk.read(index.read, u64::MAX)?.unwrap_or_default();
        let (lines, torn) = whole_lines(&bytes);
        note_ids(lines, &mut index.known);
        index.read += lines.len() as u64;
        Ok((index, torn.len() as u64))
    }

    fn is_current(&self, index: &SpoolIndex) -> io::Result<bool> {
        let start = self.disk.read(0, SpoolHeader::STAMP_BYTES)?;
        Ok(start.is_some_and(|start| SpoolHeader::is_of(&start, index.stamp)))
    }

    /// Reads the header; creates the spool if needed.
    fn begin(&mut self) -> io::Result<SpoolIndex> {
        let spool = match self.disk.read(0, u64::MAX)? {
            Some(spool) => spool,
            None => {
                let line = SpoolHeader::line(self.disk.stamp(), &KnownIds::default())?;
                self.disk.replace_spool(&line)?;
                line
            }
        };
        let SpoolHeader { stamp, known, bytes } = SpoolHeader::read(&spool)?;
        Ok(SpoolIndex { stamp, known, read: bytes })
    }

    fn append(
        &mut self,
        message: &Envelope,
        index: &mut SpoolIndex,
        torn_bytes: u64,
    ) -> Result<PostOutcome, PostError> {
        let mut bytes = if torn_bytes > 0 { CANCEL.to_vec() } else { Vec::new() };
        bytes.extend_from_slice(message.line().as_bytes());
        bytes.push(b'\n');
        let (before, added) = (index.read + torn_bytes, bytes.len() as u64);
        if before + added > self.limits.spool_bytes_max {
            let path = self.disk.path().to_owned();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            return Err(PostError::Full { name, bytes: before, path });
        }
        self.disk.append(&bytes).map_err(|error| fault(&self.disk, "write", error))?;
        index.read = before + added;
        index.known.note(message.id);
        Ok(PostOutcome::Added)
    }
}
