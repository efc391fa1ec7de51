//! Posting: the writer's half of the protocol.

use std::io;
use std::time::Duration;

use super::disk::Disk;
use super::folder::fault;
use super::spool::{CANCEL, Header, note_ids, whole_lines};
use super::{Limits, PostError, Posted};
use crate::known::{Known, Seen};
use crate::message::Message;

/// One writer.
pub(super) struct Poster<D> {
    disk: D,
    limits: Limits,
    /// What was read of the spool so far, so that a post reads only what others added.
    index: Option<Index>,
}

/// What is known of a spool up to some line end.
struct Index {
    stamp: u64,
    known: Known,
    read: u64,
}

impl<D: Disk> Poster<D> {
    /// A writer that has read nothing yet.
    pub(super) fn new(disk: D, limits: Limits) -> Poster<D> {
        Poster { disk, limits, index: None }
    }

    /// Posts a message unless it is there.
    pub(super) fn post(&mut self, message: &Message, limit: Duration) -> Result<Posted, PostError> {
        let lock = match self.disk.lock(limit) {
            Ok(Some(lock)) => lock,
            Ok(None) => return Err(PostError::Busy { path: self.disk.path().to_owned() }),
            Err(error) => return Err(fault(&self.disk, "lock", error).into()),
        };
        let posted = self.post_locked(message)?;
        drop(lock);
        // Also if the message was there before: whoever wrote it may have been killed before this.
        self.disk.sync().map_err(|error| fault(&self.disk, "sync", error))?;
        Ok(posted)
    }

    fn post_locked(&mut self, message: &Message) -> Result<Posted, PostError> {
        let (mut index, torn_bytes) = self.look().map_err(|error| fault(&self.disk, "read", error))?;
        let posted = match index.known.look(message.id) {
            Seen::Before => Ok(Posted::Before),
            Seen::Forgotten => Err(PostError::Forgotten { id: message.id }),
            Seen::Never => self.append(message, &mut index, torn_bytes),
        };
        self.index = Some(index);
        posted
    }

    /// What is in the spool, and how many bytes behind the last line end are torn.
    fn look(&mut self) -> io::Result<(Index, u64)> {
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

    fn is_current(&self, index: &Index) -> io::Result<bool> {
        let start = self.disk.read(0, Header::STAMP_BYTES)?;
        Ok(start.is_some_and(|start| Header::is_of(&start, index.stamp)))
    }

    /// An index that knows the header, of a spool that is made if need be.
    fn begin(&mut self) -> io::Result<Index> {
        let spool = match self.disk.read(0, u64::MAX)? {
            Some(spool) => spool,
            None => {
                let line = Header::line(self.disk.stamp(), &Known::default())?;
                self.disk.replace_spool(&line)?;
                line
            }
        };
        let Header { stamp, known, bytes } = Header::read(&spool)?;
        Ok(Index { stamp, known, read: bytes })
    }

    fn append(&mut self, message: &Message, index: &mut Index, torn_bytes: u64) -> Result<Posted, PostError> {
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
        Ok(Posted::Now)
    }
}
