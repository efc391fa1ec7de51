//! The bytes of a spool and of a cursor. Nothing here touches a disk.

use std::io;

use serde::{Deserialize, Serialize};

use crate::known::Known;
use crate::message::id_of;

/// Ends what is torn: no JSON ends in it.
pub(super) const CANCEL: &[u8] = b"\x18\n";

/// The first line of a spool.
#[derive(Debug)]
pub(super) struct Header {
    /// Which spool this is.
    pub(super) stamp: u64,
    /// What is remembered of earlier ones.
    pub(super) known: Known,
    /// How long the line is, its end included.
    pub(super) bytes: u64,
}

#[derive(Serialize, Deserialize)]
struct HeaderLine {
    spool: String,
    floor: Option<String>,
    known: Vec<String>,
}

/// How far the reader has confirmed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Cursor {
    /// In which spool.
    pub(super) spool: u64,
    /// Up to which byte.
    pub(super) offset: u64,
}

impl Header {
    /// How many bytes from the start tell which spool this is: `{"spool":"0123456789abcdef"`.
    pub(super) const STAMP_BYTES: u64 = 27;

    /// The line of a new spool.
    pub(super) fn line(stamp: u64, known: &Known) -> io::Result<Vec<u8>> {
        let line = HeaderLine {
            spool: format!("{stamp:016x}"),
            floor: known.floor().map(|id| id.to_string()),
            known: known.ids().map(|id| id.to_string()).collect(),
        };
        let mut line = serde_json::to_vec(&line)?;
        line.push(b'\n');
        Ok(line)
    }

    /// Reads the header at the start of a spool.
    pub(super) fn read(spool: &[u8]) -> io::Result<Header> {
        let end = spool.iter().position(|byte| *byte == b'\n').ok_or_else(damaged)?;
        let line: HeaderLine = serde_json::from_slice(&spool[..end]).map_err(|_| damaged())?;
        let stamp = u64::from_str_radix(&line.spool, 16).map_err(|_| damaged())?;
        let floor = line.floor.and_then(|id| id.parse().ok());
        let known = Known::new(line.known.iter().filter_map(|id| id.parse().ok()), floor);
        Ok(Header { stamp, known, bytes: end as u64 + 1 })
    }

    /// Whether a spool that begins so is the one of this stamp.
    pub(super) fn is_of(start: &[u8], stamp: u64) -> bool {
        start.starts_with(format!(r#"{{"spool":"{stamp:016x}""#).as_bytes())
    }
}

/// What ends in a line end, and the rest, which is torn or just being written.
pub(super) fn whole_lines(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    bytes.split_at(end)
}

/// Notes the ids of all messages in these lines.
pub(super) fn note_ids(lines: &[u8], known: &mut Known) {
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
    fn a_header_reads_as_it_is_written() {
        let id = |number| pal_model::EntryId::from_bits(number).into();
        let known = Known::new([id(7), id(9)], Some(id(3)));
        let line = Header::line(0xab, &known).unwrap();
        let header = Header::read(&line).unwrap();
        assert_eq!((header.stamp, header.bytes, &header.known), (0xab, line.len() as u64, &known));
        let start = &line[..Header::STAMP_BYTES as usize];
        assert!(Header::is_of(start, 0xab) && !Header::is_of(start, 0xac));
        assert!(Header::read(&line[..line.len() - 1]).is_err());
    }
}
