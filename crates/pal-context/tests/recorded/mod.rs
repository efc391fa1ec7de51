//! Entries of recorded sessions, imported with a rough token estimate.

use std::path::Path;

use pal_import::{ImportOptions, TokenEstimator};
use pal_model::{LogEntry, SharedText};

/// Rough estimate: three bytes per token.
struct ByteThirds;

impl TokenEstimator for ByteThirds {
    fn text(&self, _model: &str, text: &str) -> f64 {
        text.len() as f64 / 3.0
    }

    fn json(&self, _model: &str, json: &str) -> f64 {
        json.len() as f64 / 3.0
    }
}

/// Imports the entries of a recorded session; `None` if the file cannot be imported.
pub(crate) fn import_entries(file: &Path) -> Option<Vec<LogEntry>> {
    let source = std::fs::read(file).unwrap();
    if let Some(entries) = pal_testkit::own_entries(&source) {
        return Some(entries);
    }
    let imported =
        pal_import::import(&source, &ImportOptions { measure: &ByteThirds, strict: false }).ok()?;
    let log = SharedText::from(imported.log);
    Some(log.lines().map(|line| LogEntry::parse(log.slice_of(line)).unwrap()).collect())
}
