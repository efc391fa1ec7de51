//! Inputs of the tools.

use pal_memory::MemoryKind;
use serde::Deserialize;

/// Input of `memory_search`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MemorySearchInput {
    pub(crate) query: String,
    #[serde(default)]
    pub(crate) limit: Option<usize>,
}

/// Input of `memory_read`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MemoryReadInput {
    pub(crate) name: String,
}

/// Input of `memory_write`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MemoryWriteInput {
    pub(crate) text: String,
    #[serde(default)]
    pub(crate) name: Option<String>,
    #[serde(default)]
    pub(crate) description: Option<String>,
    #[serde(default, rename = "type")]
    pub(crate) kind: Option<MemoryKind>,
    /// Memory to replace.
    #[serde(default)]
    pub(crate) replaces: Option<String>,
}
