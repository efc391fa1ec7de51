//! Uses of memories: an append-only file with one line per use.

use std::collections::HashMap;

use pal_model::Timestamp;
use serde::{Deserialize, Serialize};

use crate::error::MemoryError;
use crate::memory_dir::MemoryDir;

/// File of uses.
const USES: &str = ".uses.jsonl";

/// Usage statistics of a memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct MemoryUses {
    /// Number of uses.
    pub count: u64,
    /// Time of the last use.
    pub last: Option<Timestamp>,
}

#[derive(Serialize, Deserialize)]
struct UseRecord {
    slug: String,
    at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session: Option<String>,
}

/// Statistics by slug, and the length of the file that was read.
#[derive(Default)]
pub(crate) struct UseLog {
    uses: HashMap<String, MemoryUses>,
    bytes: u64,
}

impl UseLog {
    /// Reads the file, if it has grown.
    pub(crate) fn refresh(&mut self, folder: &MemoryDir) -> Result<(), MemoryError> {
        let bytes = folder.size(USES)?;
        if bytes == self.bytes {
            return Ok(());
        }
        let text = folder.read(USES)?.unwrap_or_default();
        self.uses.clear();
        for line in text.split(|byte| *byte == b'\n') {
            let Ok(used) = serde_json::from_slice::<UseRecord>(line) else { continue };
            let uses = self.uses.entry(used.slug).or_default();
            uses.count += 1;
            uses.last = uses.last.max(Some(used.at));
        }
        self.bytes = text.len() as u64;
        Ok(())
    }

    pub(crate) fn of(&self, slug: &str) -> MemoryUses {
        self.uses.get(slug).copied().unwrap_or_default()
    }
}

/// Records a use.
pub(crate) fn note(
    folder: &MemoryDir,
    slug: &str,
    at: Timestamp,
    session: Option<&str>,
) -> Result<(), MemoryError> {
    let used = UseRecord { slug: slug.to_owned(), at, session: session.map(str::to_owned) };
    let line = serde_json::to_string(&used)
        .map_err(|error| MemoryError::file("write", folder.path(), error.into()))?;
    folder.append_line(USES, &line)?;
    Ok(())
}
