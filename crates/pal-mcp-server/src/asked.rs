//! What clients ask for, as their calls say it.

use pal_memory::Kind;
use serde::Deserialize;

/// The input of `memory_search`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Search {
    pub(crate) query: String,
    #[serde(default)]
    pub(crate) limit: Option<usize>,
}

/// The input of `memory_read`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Read {
    pub(crate) name: String,
}

/// The input of `memory_write`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Write {
    pub(crate) text: String,
    #[serde(default)]
    pub(crate) name: Option<String>,
    #[serde(default)]
    pub(crate) description: Option<String>,
    #[serde(default, rename = "type")]
    pub(crate) kind: Option<Kind>,
    /// The memory that is written anew.
    #[serde(default)]
    pub(crate) replaces: Option<String>,
}
