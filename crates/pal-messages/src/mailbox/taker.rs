//! Taking and confirming: the reader's half of the protocol.

use std::io;
use std::time::Duration;

use super::Limits;
use super::disk::Disk;
use super::folder::fault;
use super::spool::{Cursor, Header, note_ids, whole_lines};
use crate::message::Message;
use crate::private::FolderError;

/// One message that came.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Delivery {
    /// The message.
    pub message: Message,
    /// Whether an earlier reader may have taken it and was killed before it confirmed. Whoever keeps messages looks
    /// whether it has this one.
    pub perhaps_seen: bool,
}

/// The one reader.
pub(super) struct Taker<D> {
    disk: D,
    limits: Limits,
    /// Where it is in the spool; none as long as there is no spool, or it is to be looked for.
    place: Option<Place>,
    /// Whether there was no spool when it came, so that no earlier reader can have taken anything.
    came_first: bool,
    skipped: u64,
}

/// Where the reader is. Never in the order `taken` before `confirmed`.
#[derive(Clone, Copy)]
struct Place {
    /// In which spool.
    stamp: u64,
    /// Where its header ends.
    header_bytes: u64,
    /// Up to here everything is confirmed.
    confirmed: u64,
    /// Up to here everything is taken.
    taken: u64,
    /// Up to here it may have been taken by an earlier reader.
    inherited: u64,
}

impl<D: Disk> Taker<D> {
    /// A reader that goes on where the last one confirmed.
    pub(super) fn new(disk: D, limits: Limits) -> Result<Taker<D>, FolderError> {
        let place = inherited(&disk).map_err(|error| fault(&disk, "read", error))?;
        Ok(Taker { disk, limits, place, came_first: place.is_none(), skipped: 0 })
    }

    /// Takes the whole lines behind the place.
    pub(super) fn take(&mut self) -> Result<Vec<Delivery>, FolderError> {
        self.take_lines().map_err(|error| fault(&self.disk, "read", error))
    }

    /// Moves the cursor to the place.
    pub(super) fn confirm(&mut self) -> Result<(), FolderError> {
        let Some(place) = self.place.filter(|place| place.taken > place.confirmed) else { return Ok(()) };
        let cursor = Cursor { spool: place.stamp, offset: place.taken };
        let line = serde_json::to_vec(&cursor).map_err(io::Error::from);
        line.and_then(|line| self.disk.replace_cursor(&line))
            .map_err(|error| fault(&self.disk, "write", error))?;
        let place = Place { confirmed: place.taken, ..place };
        self.place = Some(place);
        if place.confirmed - place.header_bytes >= self.limits.clean_at_bytes
            && let Err(error) = self.clean(place)
        {
            // The confirm is done; this is tried again at the next one. Which spool is there now is anybody's guess,
            // and the next take looks.
            tracing::debug!(%error, "a mailbox was not cleaned");
            (self.place, self.came_first) = (None, false);
        }
        Ok(())
    }

    /// How many lines were no messages.
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
            match std::str::from_utf8(line).ok().and_then(|line| Message::parse(line).ok()) {
                Some(message) => deliveries.push(Delivery { message, perhaps_seen }),
                None => self.skipped += 1,
            }
        }
        self.place = Some(place);
        Ok(deliveries)
    }

    fn place(&self) -> io::Result<Option<Place>> {
        match (self.place, self.came_first) {
            (Some(place), _) => Ok(Some(place)),
            (None, false) => inherited(&self.disk),
            (None, true) => Ok(inherited(&self.disk)?.map(|place| Place { inherited: 0, ..place })),
        }
    }

    /// Replaces the spool by one that remembers what was confirmed and holds what was not. The cursor stays as it is:
    /// its stamp is not the new one's, which means the first line there.
    fn clean(&mut self, place: Place) -> io::Result<()> {
        let Some(_lock) = self.disk.lock(Duration::ZERO)? else { return Ok(()) };
        let spool = self.disk.read(0, u64::MAX)?.unwrap_or_default();
        let Header { mut known, stamp, .. } = Header::read(&spool)?;
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
        let mut new = Header::line(stamp, &known)?;
        let header_bytes = new.len() as u64;
        new.extend_from_slice(whole_lines(rest).0);
        self.disk.replace_spool(&new)?;
        let moved = |offset: u64| offset.saturating_sub(place.confirmed) + header_bytes;
        let (taken, inherited) = (moved(place.taken), moved(place.inherited));
        self.place = Some(Place { stamp, header_bytes, confirmed: header_bytes, taken, inherited });
        Ok(())
    }
}

/// The place of a reader that starts: the cursor, if it is of this spool. Everything that is there may have been taken.
fn inherited(disk: &impl Disk) -> io::Result<Option<Place>> {
    let Some(spool) = disk.read(0, u64::MAX)? else { return Ok(None) };
    let Header { stamp, bytes, .. } = Header::read(&spool)?;
    let length = spool.len() as u64;
    let cursor = disk.cursor()?.and_then(|cursor| serde_json::from_slice::<Cursor>(&cursor).ok());
    let offset = cursor.filter(|cursor| cursor.spool == stamp).map_or(bytes, |cursor| cursor.offset);
    // Behind the end is a cursor only where a loss of power took lines that were confirmed already.
    let confirmed = offset.clamp(bytes, length);
    Ok(Some(Place { stamp, header_bytes: bytes, confirmed, taken: confirmed, inherited: length }))
}
