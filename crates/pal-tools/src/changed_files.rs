//! Files that changed on disk after the model saw them.

use std::path::PathBuf;

use crate::Workspace;
use crate::files::file_fingerprint;
use crate::workspace::SeenFileStamp;

/// A file that is not what the model saw.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChangedFile {
    /// Resolved path.
    pub path: PathBuf,
    /// True if it no longer exists.
    pub is_gone: bool,
}

/// Returns the files that differ from what the model saw, each once per change; files of the program are left out. Content
/// is compared only where the metadata has changed.
pub fn take_changed_files(workspace: &Workspace) -> Vec<ChangedFile> {
    let mut changed = Vec::new();
    for (path, known) in workspace.ordinary_seen_files() {
        let metadata = std::fs::metadata(&path).ok();
        let stamp = SeenFileStamp {
            modified: metadata.as_ref().and_then(|metadata| metadata.modified().ok()),
            bytes: metadata.map_or(0, |metadata| metadata.len()),
            seen: known.fingerprint.clone(),
        };
        let is_gone = stamp.modified.is_none();
        if !workspace.begin_comparison(&path, stamp) {
            continue;
        }
        // A file that cannot be read counts as unchanged.
        let is_other = || file_fingerprint(&path).is_some_and(|print| print != known.fingerprint);
        if is_gone || is_other() {
            changed.push(ChangedFile { path, is_gone });
        }
    }
    changed
}
