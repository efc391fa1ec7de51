//! Repairs recorded in a log: links across damage, and known damage.

use pal_model::{DamagedRange, LogRepair, RepairLink};
use rustc_hash::{FxHashMap, FxHashSet};
use xxhash_rust::xxh3::Xxh3;

use crate::error::FileError;
use crate::segment::{LogSource, SEGMENT_BYTES};

/// Repairs read so far. Each is verified against the log before use.
#[derive(Default)]
pub(crate) struct KnownRepairs {
    links: FxHashMap<u64, RepairLink>,
    /// Damaged ranges by offset; several may start at one offset.
    damage: FxHashMap<u64, Vec<DamagedRange>>,
    starts: FxHashSet<u64>,
    crlf_before: u64,
}

impl KnownRepairs {
    /// Reports whether the log was never repaired.
    pub(crate) fn is_empty(&self) -> bool {
        self.links.is_empty() && self.damage.is_empty() && self.starts.is_empty() && self.crlf_before == 0
    }

    pub(crate) fn add(&mut self, repair: &LogRepair) {
        for link in &repair.links {
            // Walking back, a newer repair comes first; forwards, repairs agree.
            self.links.entry(link.offset).or_insert(*link);
        }
        for range in &repair.damage {
            self.damage.entry(range.offset).or_default().push(*range);
        }
        self.starts.extend(repair.start);
        self.crlf_before = self.crlf_before.max(repair.crlf_before.unwrap_or(0));
    }

    /// Link of the entry at `offset`.
    pub(crate) fn link(&self, offset: u64) -> Option<RepairLink> {
        self.links.get(&offset).copied()
    }

    /// Reports whether a branch begins with the entry at `offset`, because its parent is lost.
    pub(crate) fn is_start(&self, offset: u64) -> bool {
        self.starts.contains(&offset)
    }

    /// Lines that start before this offset may end with CRLF.
    pub(crate) fn crlf_before(&self) -> u64 {
        self.crlf_before
    }

    /// Reports whether a range is recorded as damaged exactly as it is now.
    pub(crate) fn is_known_damage(
        &self,
        source: LogSource<'_>,
        offset: u64,
        bytes: u64,
    ) -> Result<bool, FileError> {
        let Some(known) = self.damage.get(&offset) else { return Ok(false) };
        let found = KnownRepairs::range(source, offset, bytes)?;
        Ok(known.contains(&found))
    }

    /// Offset, length and hash of a range as it is now.
    pub(crate) fn range(source: LogSource<'_>, offset: u64, bytes: u64) -> Result<DamagedRange, FileError> {
        let mut hash = Xxh3::new();
        let end = source.end.min(offset.saturating_add(bytes));
        let mut from = offset.min(end);
        while from < end {
            let to = end.min(from + SEGMENT_BYTES);
            hash.update(&source.read(from, to)?);
            from = to;
        }
        Ok(DamagedRange { offset, bytes, hash: hash.digest() })
    }
}
