//! Changes of skill and agent definitions on disk, seen by the metadata of their files.

use std::fs;
use std::path::Path;
use std::time::UNIX_EPOCH;

use xxhash_rust::xxh3::Xxh3;

use crate::Workspace;

/// Maximum entries of a folder that count.
const ENTRIES_MAX: usize = 500;

/// Returns a number that changes whenever a skill or an agent definition is added, changed or removed. Reads no file.
pub fn definition_stamp(workspace: &Workspace) -> u64 {
    let mut stamp = Xxh3::new();
    for (folder, _) in workspace.definition_folders("skills") {
        add_entries(&mut stamp, &folder, |entry| entry.join("SKILL.md"));
    }
    for (folder, _) in workspace.definition_folders("agents") {
        add_entries(&mut stamp, &folder, Path::to_path_buf);
    }
    for plugin in &workspace.plugins {
        plugin
            .skills
            .iter()
            .for_each(|folder| add_entries(&mut stamp, folder, |entry| entry.join("SKILL.md")));
        plugin.agents.iter().for_each(|folder| add_entries(&mut stamp, folder, Path::to_path_buf));
    }
    stamp.digest()
}

fn add_entries(stamp: &mut Xxh3, folder: &Path, file: impl Fn(&Path) -> std::path::PathBuf) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut files: Vec<_> = entries.flatten().take(ENTRIES_MAX).map(|entry| file(&entry.path())).collect();
    files.sort_unstable();
    for file in files {
        let Ok(metadata) = fs::metadata(&file) else { continue };
        let changed = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        stamp.update(file.as_os_str().as_encoded_bytes());
        stamp.update(&changed.unwrap_or_default().as_nanos().to_le_bytes());
        stamp.update(&metadata.len().to_le_bytes());
    }
}
