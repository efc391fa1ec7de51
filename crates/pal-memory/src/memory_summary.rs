//! Summary of a memory, shared by lists, search and the index.

use pal_model::Timestamp;
use serde::Serialize;

use crate::memory_file::MemoryHeader;
use crate::memory_uses::MemoryUses;

/// Summary of a memory, for lists.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MemorySummary {
    /// File name without `.md`.
    pub slug: String,
    /// Front matter.
    #[serde(flatten)]
    pub head: MemoryHeader,
    /// Time of the last change, from the front matter or else the file.
    pub changed: Timestamp,
    /// Size in bytes.
    pub bytes: u64,
    /// Usage statistics.
    pub uses: MemoryUses,
}
