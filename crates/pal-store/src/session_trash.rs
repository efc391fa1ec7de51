//! Removed sessions: `trash/<time>-<id>/` in pal's home, from which they can be restored.
//!
//! A session is moved as a whole, so that nothing is lost until it is deleted for good. An open session is not moved.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use pal_model::Timestamp;
use serde_json::{Value, json};

use crate::atomic_write::replace_private_file;
use crate::error::{FileError, OpenError};
use crate::home_paths::log_path;
use crate::log_open;

/// File that says where a removed session was.
const ORIGIN: &str = "origin.json";
/// Directory of the removed session itself.
const SESSION: &str = "session";

/// A session in the trash.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct TrashedSession {
    /// Time of the removal.
    pub removed: Timestamp,
    /// Id of the session.
    pub id: String,
    /// Directory that it was in.
    pub origin: PathBuf,
    /// Directory that it is in.
    folder: PathBuf,
}

impl TrashedSession {
    /// Directory of the session in the trash.
    pub fn directory(&self) -> PathBuf {
        self.folder.join(SESSION)
    }
}

/// Moves the directory of a closed session to the trash.
pub fn remove_session(home: &Path, session: &Path, now: Timestamp) -> Result<TrashedSession, OpenError> {
    // Held until the end, so that no process opens it meanwhile.
    let _lock = log_open::open_to_append(&log_path(session))?;
    let id = session.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let folder = home.join("trash").join(format!("{}-{id}", now.milliseconds()));
    log_open::create_private_directory(&folder)?;
    let failed = |path: &Path, error| OpenError::from(FileError::new("move to the trash", path, error));
    let origin = json!({"id": id, "origin": session.to_string_lossy(), "removed": now});
    replace_private_file(&folder.join(ORIGIN), origin.to_string().as_bytes())
        .map_err(|error| failed(&folder, error))?;
    if let Err(error) = fs::rename(session, folder.join(SESSION)) {
        // Nothing was moved.
        let _ = fs::remove_dir_all(&folder);
        return Err(failed(session, error));
    }
    Ok(TrashedSession { removed: now, id, origin: session.to_owned(), folder })
}

/// Lists the sessions in the trash, the last removed first.
pub fn list_trash(home: &Path) -> Vec<TrashedSession> {
    let folders = fs::read_dir(home.join("trash")).into_iter().flatten().flatten();
    let mut found: Vec<TrashedSession> = folders.filter_map(|folder| read_trashed(&folder.path())).collect();
    found.sort();
    found.reverse();
    found
}

fn read_trashed(folder: &Path) -> Option<TrashedSession> {
    let origin: Value = serde_json::from_slice(&fs::read(folder.join(ORIGIN)).ok()?).ok()?;
    folder.join(SESSION).is_dir().then_some(())?;
    Some(TrashedSession {
        removed: origin["removed"].as_str()?.parse().ok()?,
        id: origin["id"].as_str()?.to_owned(),
        origin: PathBuf::from(origin["origin"].as_str()?),
        folder: folder.to_owned(),
    })
}

/// Moves a session back to where it was; fails if another session has taken its place.
pub fn restore_session(trashed: &TrashedSession) -> Result<(), FileError> {
    let origin = &trashed.origin;
    if origin.exists() {
        let taken = io::Error::new(io::ErrorKind::AlreadyExists, "a session is there already");
        return Err(FileError::new("restore", origin, taken));
    }
    log_open::create_private_directory(origin.parent().unwrap_or(origin))?;
    fs::rename(trashed.directory(), origin)
        .and_then(|()| fs::remove_dir_all(&trashed.folder))
        .map_err(|error| FileError::new("restore", origin, error))
}

/// Deletes a session in the trash for good.
pub fn delete_trashed(trashed: &TrashedSession) -> Result<(), FileError> {
    fs::remove_dir_all(&trashed.folder).map_err(|error| FileError::new("delete", &trashed.folder, error))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn removed_session_can_be_restored() {
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path();
        let session = home.join("projects/p/sessions/abc");
        fs::create_dir_all(session.join("tool-results")).unwrap();
        fs::write(log_path(&session), "{}\n").unwrap();
        fs::write(session.join("tool-results/1.txt"), "x").unwrap();
        let held = log_open::open_to_append(&log_path(&session)).unwrap();
        let now = Timestamp::from_milliseconds(1_800_000_000_000);
        assert!(matches!(remove_session(home, &session, now), Err(OpenError::Locked { .. })));
        drop(held);
        let removed = remove_session(home, &session, now).unwrap();
        assert!(!session.exists());
        assert_eq!(fs::metadata(home.join("trash")).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(list_trash(home), std::slice::from_ref(&removed));
        restore_session(&removed).unwrap();
        assert_eq!(fs::read_to_string(session.join("tool-results/1.txt")).unwrap(), "x");
        assert_eq!(list_trash(home), []);
        let again = remove_session(home, &session, now).unwrap();
        fs::create_dir_all(&session).unwrap();
        assert!(restore_session(&again).is_err(), "nothing is overwritten");
        delete_trashed(&again).unwrap();
        assert_eq!(list_trash(home), []);
    }
}
