//! Byte formats of spool and cursor. Pure.

use std::io;

use serde::{Deserialize, Serialize};

use crate::envelope::id_of;
use crate::known_ids::KnownIds;

/// Terminates a torn line: no JSON ends with this character.
pub(super) const CANCEL: &[u8] = b"\x18\n";

/// First line of a spool.
#[derive(Debug)]
pub(super) struct SpoolHeader {
    /// Identity of the spool.
    pub(super) stamp: u64,
    /// Ids remembered from earlier spools.
    pub(super) known: KnownIds,
    /// Length of the line, line end included.
    pub(super) bytes: u64,
}

#[derive(Serialize, Deserialize)]
struct SpoolHeaderLine {
    spool: String,
    floor: Option<String>,
    known: Vec<String>,
}

/// Position that the reader confirmed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct SpoolCursor {
    /// Identity of the spool.
    pub(super) spool: u64,
    /// Byte offset in it.
    pub(super) offset: u64,
}

impl SpoolHeader {
    /// Bytes from the start that identify a spool: `{"spool":"0123456789abcdef"`.
    pub(super) const STAMP_BYTES: u64 = 27;

    /// Builds the header of a new spool.
    pub(super) fn line(stamp: u64, known: &KnownIds) -> io::Result<Vec<u8>> {
        let line = SpoolHeaderLine {
            spool: format!("{stamp:016x}"),
            floor: known.floor().map(|id| id.to_string()),
            known: known.ids().map(|id| id.to_string()).collect(),
        };
        let mut line = serde_json::to_vec(&line)?;
        line.push(b'\n');
        Ok(line)
    }

    /// Parses the header at the start of a spool.
    pub(super) fn read(spool: &[u8]) -> io::Result<SpoolHeader> {
        let end = spool.iter().position(|byte| *byte == b'\n').ok_or_else(damaged)?;
        let line: SpoolHeaderLine = serde_json::from_slice(&spool[..end]).map_err(|_| damaged())?;
        let stamp = u64::from_str_radix(&line.spool, 16).map_err(|_| damaged())?;
        let floor = line.floor.and_then(|id| id.parse().ok());
        let known = KnownIds::new(line.known.iter().filter_map(|id| id.parse().ok()), floor);
        Ok(SpoolHeader { stamp, known, bytes: end as u64 + 1 })
    }

    /// Reports whether a spool that starts like this has the given stamp.
    pub(super) fn is_of(start: &[u8], stamp: u64) -> bool {
        start.starts_with(format!(r#"{{"spool":"{stamp:016x}""#).as_bytes())
    }
}

/// Splits off the rest after the last line end, which is torn or still being written.
pub(super) fn whole_lines(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    bytes.split_at(end)
}

/// Records the ids of all messages in these lines.
pub(super) fn note_ids(lines: &[u8], known: &mut KnownIds) {
    let lines = lines.split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
    lines.filter_map(id_of).for_each(|id| known.note(id));
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the header of spool.jsonl is damaged; move the file away")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_round_trips() {
        let id = |number| pal_model::EntryId::from_bits(number).into();
        let known = KnownIds::new([id(7), id(9)], Some(id(3)));
        let line = SpoolHeader::line(0xab, &known).unwrap();
        let header = SpoolHeader::read(&line).unwrap();
        assert_eq!((header.stamp, header.bytes, &header.known), (0xab, line.len() as u64, &known));
        let start = &line[..SpoolHeader::STAMP_BYTES as usize];
        assert!(SpoolHeader::is_of(start, 0xab) && !SpoolHeader::is_of(start, 0xac));
        assert!(SpoolHeader::read(&line[..line.len() - 1]).is_err());
    }
}
