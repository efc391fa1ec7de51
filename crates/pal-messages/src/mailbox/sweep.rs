//! Mailboxes that nobody uses any more.

use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::disk::Disk;
use super::folder::Folder;
use crate::name::Name;

/// What stands before the name of a mailbox that is on its way out. No name of an agent begins so.
const GONE: &str = ".gone-";

/// Removes the mailboxes under `dir` that nobody reads and nothing changed in for so long, unread messages included.
/// Answers whose they were.
pub fn sweep(dir: &Path, unused: Duration, now: SystemTime) -> io::Result<Vec<Name>> {
    let mut removed = Vec::new();
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(removed),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let file_name = entry.file_name().to_string_lossy().into_owned();
        if file_name.starts_with(GONE) {
            // A sweep was killed half-way.
            fs::remove_dir_all(entry.path())?;
        } else if let Ok(name) = file_name.parse::<Name>()
            && entry.file_type()?.is_dir()
            && remove(dir, &name, unused, now)?
        {
            removed.push(name);
        }
    }
    removed.sort();
    Ok(removed)
}

/// Under both locks the directory is renamed, and so is gone at once for everybody: whoever waited for a lock looks
/// whether the directory is still in its place.
fn remove(dir: &Path, name: &Name, unused: Duration, now: SystemTime) -> io::Result<bool> {
    let Ok(mut folder) = Folder::open(dir, name) else { return Ok(false) };
    let limit = now.checked_sub(unused).and_then(|limit| limit.duration_since(UNIX_EPOCH).ok());
    let is_old = |folder: &Folder| match (folder.changed(), limit) {
        (Some(changed), Some(limit)) => changed < limit.as_secs() as i64,
        _ => false,
    };
    // Looked at before the locks, since taking them for the first time makes files.
    if !is_old(&folder) {
        return Ok(false);
    }
    if !matches!(folder.lock_reader(), Ok(true)) {
        return Ok(false);
    }
    let Some(_writer) = folder.lock(Duration::ZERO)? else { return Ok(false) };
    if !is_old(&folder) {
        return Ok(false);
    }
    let gone = dir.join(format!("{GONE}{name}-{}", std::process::id()));
    fs::rename(dir.join(name.as_str()), &gone)?;
    fs::remove_dir_all(&gone)?;
    Ok(true)
}
