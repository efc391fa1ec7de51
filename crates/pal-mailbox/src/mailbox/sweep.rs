//! Removal of unused mailboxes.

use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::mailbox_dir::MailboxDir;
use super::mailbox_disk::MailboxDisk;
use crate::address::AgentName;

/// Prefix of a mailbox that is being removed. No agent name starts with a dot.
const GONE: &str = ".gone-";

/// Removes the mailboxes under `dir` that have no reader and did not change for `unused`, including unread
/// messages. Returns their owners.
pub fn sweep_mailboxes(dir: &Path, unused: Duration, now: SystemTime) -> io::Result<Vec<AgentName>> {
    let mut removed = Vec::new();
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(removed),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let file_name = entry.file_name().to_string_lossy().into_owned();
        if file_name.starts_with(GONE) {
            // An earlier sweep was killed halfway.
            fs::remove_dir_all(entry.path())?;
        } else if let Ok(name) = file_name.parse::<AgentName>()
            && entry.file_type()?.is_dir()
            && remove(dir, &name, unused, now)?
        {
            removed.push(name);
        }
    }
    removed.sort();
    Ok(removed)
}

/// Renames the directory under both locks, so that it disappears at once: processes that waited for a lock
/// check that the directory is still in place.
fn remove(dir: &Path, name: &AgentName, unused: Duration, now: SystemTime) -> io::Result<bool> {
    let Ok(mut folder) = MailboxDir::open(dir, name) else { return Ok(false) };
    let limit = now.checked_sub(unused).and_then(|limit| limit.duration_since(UNIX_EPOCH).ok());
    let is_old = |folder: &MailboxDir| match (folder.changed(), limit) {
        (Some(changed), Some(limit)) => changed < limit.as_secs() as i64,
        _ => false,
    };
    // Check before locking, since the first lock creates files.
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
