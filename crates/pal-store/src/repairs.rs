//! What the repairs of a log say: links across damage, and damage that is known.

use pal_model::{DamagedRange, Repair, RepairLink};
use rustc_hash::{FxHashMap, FxHashSet};
use xxhash_rust::xxh3::Xxh3;

use crate::error::FileError;
use crate::segment::{SEGMENT_BYTES, Source};

/// The repairs that were read so far. Nothing in them is believed without a look at the log.
#[derive(Default)]
pub(crate) struct Repairs {
    links: FxHashMap<u64, RepairLink>,
    /// Length and hash by offset. Damage may begin at one place in several ways.
    damage: FxHashMap<u64, Vec<DamagedRange>>,
    starts: FxHashSet<u64>,
    crlf_before: u64,
}

impl Repairs {
    /// Whether nothing was ever repaired.
    pub(crate) fn is_empty(&self) -> bool {
        self.links.is_empty() && self.damage.is_empty() && self.starts.is_empty() && self.crlf_before == 0
    }

    pub(crate) fn add(&mut self, repair: &Repair) {
        for link in &repair.links {
            // A newer repair is read first, going back; going forward they agree.
            self.links.entry(link.offset).or_insert(*link);
        }
        for range in &repair.damage {
            self.damage.entry(range.offset).or_default().push(*range);
        }
        self.starts.extend(repair.start);
        self.crlf_before = self.crlf_before.max(repair.crlf_before.unwrap_or(0));
    }

    /// The link of the entry at `offset`.
    pub(crate) fn link(&self, offset: u64) -> Option<RepairLink> {
        self.links.get(&offset).copied()
    }

    /// Whether a branch begins with the entry at `offset`, because what it followed is lost.
    pub(crate) fn is_start(&self, offset: u64) -> bool {
        self.starts.contains(&offset)
    }

    /// Lines that start before this offset may end with CRLF.
    pub(crate) fn crlf_before(&self) -> u64 {
        self.crlf_before
    }

    /// Whether the damage of a stretch was known as it is now.
    pub(crate) fn knows(&self, source: Source<'_>, offset: u64, bytes: u64) -> Result<bool, FileError> {
        let Some(known) = self.damage.get(&offset) else { return Ok(false) };
        let found = Repairs::range(source, offset, bytes)?;
        Ok(known.contains(&found))
    }

    /// A stretch of the file as it is now.
    pub(crate) fn range(source: Source<'_>, offset: u64, bytes: u64) -> Result<DamagedRange, FileError> {
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
