//! Reader's side of the protocol.

use std::io;
use std::time::Duration;

use super::Limits;
use super::mailbox_dir::fault;
use super::mailbox_disk::MailboxDisk;
use super::spool_format::{SpoolCursor, SpoolHeader, note_ids, whole_lines};
use crate::envelope::Envelope;
use crate::private_dir::PrivateDirError;

/// A message that arrived.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Delivery {
    /// The message itself.
    pub message: Envelope,
    /// An earlier reader may have taken it and was killed before it confirmed; the caller checks whether it
    /// has this message.
    pub perhaps_seen: bool,
}

/// The only reader of a spool.
pub(super) struct SpoolReader<D> {
    disk: D,
    limits: Limits,
    /// Position in the spool; none before there is a spool, or if it has to be found again.
    place: Option<SpoolPosition>,
    /// There was no spool at the start, so no earlier reader can have taken anything.
    came_first: bool,
    skipped: u64,
}

/// Position of the reader. Invariant: `confirmed` ≤ `taken`.
#[derive(Clone, Copy)]
struct SpoolPosition {
    /// Identity of the spool.
    stamp: u64,
    /// End of the header.
    header_bytes: u64,
    /// Everything before is confirmed.
    confirmed: u64,
    /// Everything before is taken.
    taken: u64,
    /// Everything before may have been taken by an earlier reader.
    inherited: u64,
}

impl<D: MailboxDisk> SpoolReader<D> {
    /// Continues where the last reader confirmed.
    pub(super) fn new(disk: D, limits: Limits) -> Result<SpoolReader<D>, PrivateDirError> {
        let place = inherited(&disk).map_err(|error| fault(&disk, "read", error))?;
        Ok(SpoolReader { disk, limits, place, came_first: place.is_none(), skipped: 0 })
    }

    /// Takes the whole lines after the position.
    pub(super) fn take(&mut self) -> Result<Vec<Delivery>, PrivateDirError> {
        self.take_lines().map_err(|error| fault(&self.disk, "read", error))
    }

    /// Moves the cursor to the position.
    pub(super) fn confirm(&mut self) -> Result<(), PrivateDirError> {
        let Some(place) = self.place.filter(|place| place.taken > place.confirmed) else { return Ok(()) };
        let cursor = SpoolCursor { spool: place.stamp, offset: place.taken };
        let line = serde_json::to_vec(&cursor).map_err(io::Error::from);
        line.and_then(|line| self.disk.replace_cursor(&line))
            .map_err(|error| fault(&self.disk, "write", error))?;
        let place = SpoolPosition { confirmed: place.taken, ..place };
        self.place = Some(place);
        if place.confirmed - place.header_bytes >= self.limits.clean_at_bytes
            && let Err(error) = self.clean(place)
        {
            // The confirmation succeeded; cleaning is tried again with the next one. The state of the spool
            // is unknown, so the next take looks it up.
            tracing::debug!(%error, "a mailbox was not cleaned");
            (self.place, self.came_first) = (None, false);
        }
        Ok(())
    }

    /// Number of lines that were not messages.
    pub(super) fn skipped(&self) -> u64 {
        self.skipped
    }

    fn take_lines(&mut self) -> io::Result<Vec<Delivery>> {
        let Some(mut place) = self.place()? else { return Ok(Vec::new()) };
        let bytes = self.disk.read(place.taken, u64::MAX)?.unwrap_or_default();
        let mut deliveries = Vec::new();
        for line in whole_lines(&bytes).0.split_inclusive(|byte| *byte == b'\n') {
            let perhaps_seen = place.taken < place.inherited;
            place.taken += line.len() as u64;
            match std::str::from_utf8(line).ok().and_then(|line| Envelope::parse(line).ok()) {
                Some(message) => deliveries.push(Delivery { message, perhaps_seen }),
                None => self.skipped += 1,
            }
        }
        self.place = Some(place);
        Ok(deliveries)
    }

    fn place(&self) -> io::Result<Option<SpoolPosition>> {
        match (self.place, self.came_first) {
            (Some(place), _) => Ok(Some(place)),
            (None, false) => inherited(&self.disk),
            (None, true) => Ok(inherited(&self.disk)?.map(|place| SpoolPosition { inherited: 0, ..place })),
        }
    }

    /// Replaces the spool by one that remembers the confirmed ids and holds the unconfirmed lines. The cursor
    /// stays: its stamp differs from the new one, which means the first line.
    fn clean(&mut self, place: SpoolPosition) -> io::Result<()> {
        let Some(_lock) = self.disk.lock(Duration::ZERO)? else { return Ok(()) };
        let spool = self.disk.read(0, u64::MAX)?.unwrap_or_default();
        let SpoolHeader { mut known, stamp, .. } = SpoolHeader::read(&spool)?;
        let (Some(confirmed), Some(rest), true) = (
            spool.get(place.header_bytes as usize..place.confirmed as usize),
            spool.get(place.confirmed as usize..),
            stamp == place.stamp,
        ) else {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "another spool is in its place"));
        };
        note_ids(confirmed, &mut known);
        known.trim(self.limits.remembered);
        let stamp = self.disk.stamp();
        let mut new = SpoolHeader::line(stamp, &known)?;
        let header_bytes = new.len() as u64;
        new.extend_from_slice(whole_lines(rest).0);
        self.disk.replace_spool(&new)?;
        let moved = |offset: u64| offset.saturating_sub(place.confirmed) + header_bytes;
        let (taken, inherited) = (moved(place.taken), moved(place.inherited));
        self.place = Some(SpoolPosition { stamp, header_bytes, confirmed: header_bytes, taken, inherited });
        Ok(())
    }
}

/// Position of a starting reader: the cursor, if it belongs to this spool. Everything present may have been
/// taken before.
fn inherited(disk: &impl MailboxDisk) -> io::Result<Option<SpoolPosition>> {
    let Some(spool) = disk.read(0, u64::MAX)? else { return Ok(None) };
    let SpoolHeader { stamp, bytes, .. } = SpoolHeader::read(&spool)?;
    let length = spool.len() as u64;
    let cursor = disk.cursor()?.and_then(|cursor| serde_json::from_slice::<SpoolCursor>(&cursor).ok());
    let offset = cursor.filter(|cursor| cursor.spool == stamp).map_or(bytes, |cursor| cursor.offset);
    // A cursor past the end means that a power failure took confirmed lines.
    let confirmed = offset.clamp(bytes, length);
    Ok(Some(SpoolPosition { stamp, header_bytes: bytes, confirmed, taken: confirmed, inherited: length }))
}
