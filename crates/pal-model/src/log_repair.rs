//! Log repairs: entries that continue a branch across a damaged range of the log.
//!
//! A repair changes nothing before it. It records parent links that the file no longer contains, and the known damage.
//! Readers verify every link against the log before using it.

use serde::{Deserialize, Serialize};

use crate::EntryId;

/// Links across damaged ranges of a log, and the damage known when they were recorded.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LogRepair {
    /// Parent links that the entries themselves no longer contain.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<RepairLink>,
    /// Offset of the entry that the branch starts with, if its parent is lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<u64>,
    /// Damaged ranges, so that each is reported only once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub damage: Vec<DamagedRange>,
    /// Offset before which lines may end with CRLF.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crlf_before: Option<u64>,
}

/// Parent link of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RepairLink {
    /// Offset of the entry that lost its parent.
    pub offset: u64,
    /// Parent entry.
    pub parent: EntryId,
    /// Offset of the parent entry.
    pub parent_offset: u64,
    /// Length of the parent entry in bytes, without its line ending.
    pub parent_bytes: u64,
}

/// A damaged byte range of a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DamagedRange {
    /// Offset of the first byte.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// XXH3-64 hash of the bytes; different damage at the same offset counts as new.
    pub hash: u64,
}
