//! Logs of recorded sessions, by repository.

use std::collections::BTreeMap;
use std::path::Path;

use pal_import::{ImportOptions, import};
use pal_testkit::ByteThirds;

/// Imported logs of the sessions in a folder: those of one directory are of one repository. Sessions that cannot be
/// imported are left out.
pub(crate) fn by_repository(folder: &Path) -> Vec<Vec<String>> {
    let mut logs: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in pal_testkit::session_files() {
        if !file.starts_with(folder) {
            continue;
        }
        let Ok(source) = std::fs::read(&file) else { continue };
        let Ok(imported) = import(&source, &ImportOptions { measure: &ByteThirds, strict: false }) else {
            continue;
        };
        let repository = file.parent().unwrap_or(folder).display().to_string();
        logs.entry(repository).or_default().push(imported.log);
    }
    logs.into_values().collect()
}
