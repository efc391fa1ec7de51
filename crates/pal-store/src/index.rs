//! Where every entry of a log stands: the slow way to a parent, taken only when the file does not say the truth.
//!
//! It reads the whole file once and keeps a few bytes per line. A healthy log never needs it.

use pal_model::EntryId;

use crate::error::{BadLine, FileError, OpenError};
use crate::segment::{Bad, Forward, SEGMENT_BYTES, Source};

/// The places of all lines.
pub(crate) struct Index {
    /// Sorted. An id may stand in a file more than once.
    places: Vec<(EntryId, u64)>,
    /// Where bad lines start, sorted, with their numbers.
    bad: Vec<BadPlace>,
}

struct BadPlace {
    offset: u64,
    end: u64,
    number: u64,
}

impl Index {
    /// Reads all of `source`.
    pub(crate) fn read(source: Source<'_>) -> Result<Index, OpenError> {
        let mut index = Index { places: Vec::new(), bad: Vec::new() };
        let mut lines = Forward::new(source, 0);
        let mut number = 0;
        while let Some(line) = lines.next_line()? {
            number += 1;
            match line.parse() {
                Ok(located) => index.places.push((located.entry.id, located.offset)),
                Err(bad) => {
                    let Bad { offset, end, .. } = bad.unless_newer(source.path)?;
                    index.bad.push(BadPlace { offset, end, number });
                }
            }
        }
        index.places.sort_unstable();
        Ok(index)
    }

    /// The newest line of `id` before `before`.
    pub(crate) fn newest(&self, id: EntryId, before: u64) -> Option<u64> {
        let behind = self.places.partition_point(|place| *place < (id, before));
        let (found, offset) = *self.places.get(behind.checked_sub(1)?)?;
        (found == id).then_some(offset)
    }

    /// Whether the line of `id` starts at `offset`.
    pub(crate) fn stands_at(&self, id: EntryId, offset: u64) -> bool {
        self.places.binary_search(&(id, offset)).is_ok()
    }

    /// Where the bad line starts that ends at `end`.
    pub(crate) fn bad_ending(&self, end: u64) -> Option<u64> {
        let at = self.bad.binary_search_by_key(&end, |bad| bad.end).ok()?;
        self.bad.get(at).map(|bad| bad.offset)
    }

    /// Whether a bad line starts at `offset`.
    pub(crate) fn bad_starting(&self, offset: u64) -> Option<u64> {
        self.bad.binary_search_by_key(&offset, |bad| bad.offset).is_ok().then_some(offset)
    }

    /// The bad line with its number.
    pub(crate) fn numbered(&self, bad: Bad) -> BadLine {
        let at = self.bad.binary_search_by_key(&bad.offset, |place| place.offset);
        let number = at.ok().and_then(|at| self.bad.get(at)).map_or(0, |place| place.number);
        BadLine { number, offset: bad.offset, bytes: bad.end - bad.offset, why: bad.why }
    }
}

/// The number of the line that starts at `offset`, counted from the start of the file.
pub(crate) fn line_number(source: Source<'_>, offset: u64) -> Result<u64, FileError> {
    let mut number = 1;
    let mut from = 0;
    while from < offset {
        let to = offset.min(from + SEGMENT_BYTES);
        number += memchr::memchr_iter(b'\n', &source.read(from, to)?).count() as u64;
        from = to;
    }
    Ok(number)
}
