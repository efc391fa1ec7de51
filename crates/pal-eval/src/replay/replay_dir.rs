//! Location of a replay's log: a given folder, or a temporary one.

use std::path::{Path, PathBuf};

use crate::replay::ReplayError;

/// A folder in memory, where the system has one: a replay writes as much as the session did.
const MEMORY: &str = "/dev/shm";

/// The folder of one replay.
pub(crate) struct ReplayDir {
    folder: PathBuf,
    /// Removes the folder when it is dropped.
    _temporary: Option<tempfile::TempDir>,
}

impl ReplayDir {
    pub(crate) fn new(out: Option<&Path>) -> Result<ReplayDir, ReplayError> {
        match out {
            Some(folder) => {
                pal_store::create_private_directory(folder)?;
                Ok(ReplayDir { folder: folder.to_owned(), _temporary: None })
            }
            None => {
                let temporary = in_memory().map_or_else(tempfile::tempdir, Ok).map_err(|error| {
                    ReplayError::Place { path: PathBuf::from("a temporary folder"), error }
                })?;
                Ok(ReplayDir { folder: temporary.path().to_owned(), _temporary: Some(temporary) })
            }
        }
    }

    /// The log in it.
    pub(crate) fn log(&self) -> PathBuf {
        pal_store::log_path(&self.folder)
    }
}

fn in_memory() -> Option<tempfile::TempDir> {
    if !Path::new(MEMORY).is_dir() {
        return None;
    }
    tempfile::Builder::new().prefix("pal-eval-").tempdir_in(MEMORY).ok()
}
