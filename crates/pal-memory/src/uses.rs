//! Which memories were used, and when: a line for every use, only ever appended to.

use std::collections::HashMap;

use pal_model::Timestamp;
use serde::{Deserialize, Serialize};

use crate::error::MemoryError;
use crate::folder::Folder;

/// The file of uses.
const USES: &str = ".uses.jsonl";

/// How often a memory was used, and when last.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Uses {
    /// How often.
    pub count: u64,
    /// When last.
    pub last: Option<Timestamp>,
}

#[derive(Serialize, Deserialize)]
struct Use {
    slug: String,
    at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session: Option<String>,
}

/// All uses, by slug, and how long the file was.
#[derive(Default)]
pub(crate) struct Ledger {
    uses: HashMap<String, Uses>,
    bytes: u64,
}

impl Ledger {
    /// Reads what was used, if anything was since.
    pub(crate) fn refresh(&mut self, folder: &Folder) -> Result<(), MemoryError> {
        let bytes = folder.size(USES)?;
        if bytes == self.bytes {
            return Ok(());
        }
        let text = folder.read(USES)?.unwrap_or_default();
        self.uses.clear();
        for line in text.split(|byte| *byte == b'\n') {
            let Ok(used) = serde_json::from_slice::<Use>(line) else { continue };
            let uses = self.uses.entry(used.slug).or_default();
            uses.count += 1;
            uses.last = uses.last.max(Some(used.at));
        }
        self.bytes = text.len() as u64;
        Ok(())
    }

    pub(crate) fn of(&self, slug: &str) -> Uses {
        self.uses.get(slug).copied().unwrap_or_default()
    }
}

/// Notes a use.
pub(crate) fn note(
    folder: &Folder,
    slug: &str,
    at: Timestamp,
    session: Option<&str>,
) -> Result<(), MemoryError> {
    let used = Use { slug: slug.to_owned(), at, session: session.map(str::to_owned) };
    let line = serde_json::to_string(&used)
        .map_err(|error| MemoryError::file("write", folder.path(), error.into()))?;
    folder.append_line(USES, &line)?;
    Ok(())
}
