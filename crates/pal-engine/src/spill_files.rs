//! Writes files into the session's directory: spilled tool results, and diffs of cache breaks.

use std::path::{Component, Path};

use pal_context::SpillFile;
use pal_model::EntryId;
use pal_store::{create_private_directory, replace_private_file};

/// Writes a spilled text, readable by its owner only, atomically. Fails for paths outside of the directory.
pub(crate) fn write_spill(directory: &Path, file: &SpillFile) -> std::io::Result<()> {
    let relative = Path::new(&file.path);
    let is_inside = relative.components().all(|part| matches!(part, Component::Normal(_)));
    if !is_inside {
        return Err(std::io::Error::other(format!("{} is no path inside the session's folder", file.path)));
    }
    let path = directory.join(relative);
    let folder = path.parent().unwrap_or(directory);
    create_private_directory(folder).map_err(std::io::Error::other)?;
    replace_private_file(&path, file.text.as_bytes())
}

/// Writes the diff of two requests and returns its path relative to the session's directory; none if that
/// fails, since the cause is in the log.
pub(crate) fn write_break(directory: &Path, request: EntryId, diff: &str) -> Option<String> {
    let file = SpillFile { path: format!("breaks/{request}.diff"), text: diff.to_owned() };
    write_spill(directory, &file).ok().map(|()| file.path)
}
