//! An entry with the position of its line, and the parser that verifies its checksum.

use pal_model::{LogEntry, SharedText};

use crate::checksum::{ChecksumState, verify};
use crate::error::LineFault;

/// An entry and where its line starts.
#[derive(Clone, Debug)]
pub(crate) struct LocatedEntry {
    pub(crate) offset: u64,
    pub(crate) entry: LogEntry,
    /// The line no longer matches its checksum. Its body is then disarmed, so that it hides nothing.
    pub(crate) is_altered: bool,
    /// The line ends with CRLF, which this program never writes.
    pub(crate) has_crlf: bool,
    pub(crate) has_checksum: bool,
    /// Found inside a line that is not an entry itself.
    pub(crate) is_salvaged: bool,
}

impl LocatedEntry {
    /// Length in bytes, without the line end.
    pub(crate) fn bytes(&self) -> u64 {
        self.entry.line.len() as u64
    }
}

/// Parses the entry of a line that starts at `offset` and verifies its checksum.
pub(crate) fn read_entry(offset: u64, line: &SharedText) -> Result<LocatedEntry, LineFault> {
    let inner = line.strip_suffix('\r').unwrap_or(line);
    let has_crlf = inner.len() < line.len();
    let seal = verify(inner.as_bytes());
    match LogEntry::parse(line.slice_of(inner)) {
        Ok(mut entry) => {
            let is_altered = seal == ChecksumState::Broken;
            if is_altered {
                entry.drop_hiding_body();
            }
            let has_checksum = seal != ChecksumState::Absent;
            Ok(LocatedEntry { offset, entry, is_altered, has_crlf, has_checksum, is_salvaged: false })
        }
        // Damage may have hit the version field: do not blame a newer program.
        Err(pal_model::EntryError::Version(_)) if seal == ChecksumState::Broken => Err(LineFault::Checksum),
        Err(error) => Err(error.into()),
    }
}
