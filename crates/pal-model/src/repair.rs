//! Repairs of a damaged log: entries that say how a branch continues across the damage.
//!
//! A repair changes nothing that stands before it. It records which entry follows which where the file no longer says
//! so, and which damage is known. Readers check every link against the log before they use it.

use serde::{Deserialize, Serialize};

use crate::EntryId;

/// Links across damaged places of a log, and the damage that was known when they were recorded.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Repair {
    /// Links that the entries themselves no longer give.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<RepairLink>,
    /// Offset of the entry that the branch begins with, if what it followed is lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<u64>,
    /// Damaged places, so that each is reported only once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub damage: Vec<DamagedRange>,
    /// Lines that start before this offset may end with CRLF.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crlf_before: Option<u64>,
}

/// The entry that another one follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RepairLink {
    /// Offset of the entry that lost its parent.
    pub offset: u64,
    /// The entry that it follows.
    pub parent: EntryId,
    /// Offset of that entry.
    pub parent_offset: u64,
    /// Length of that entry in bytes, without its line end.
    pub parent_bytes: u64,
}

/// A stretch of a log that is damaged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DamagedRange {
    /// Offset of its first byte.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// XXH3-64 hash of its bytes: other damage at the same place is new.
    pub hash: u64,
}
