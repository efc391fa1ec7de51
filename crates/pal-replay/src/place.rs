//! Where the log of a replay lies: in a folder that somebody named, or in one that goes away again.

use std::path::{Path, PathBuf};

use crate::ReplayError;

/// A folder in memory, where the system has one: a replay writes as much as the session did, for nobody.
const MEMORY: &str = "/dev/shm";

/// The folder of one replay.
pub(crate) struct Place {
    folder: PathBuf,
    /// Removes the folder when it is dropped.
    _temporary: Option<tempfile::TempDir>,
}

impl Place {
    pub(crate) fn new(out: Option<&Path>) -> Result<Place, ReplayError> {
        match out {
            Some(folder) => {
                pal_store::create_private_directory(folder)?;
                Ok(Place { folder: folder.to_owned(), _temporary: None })
            }
            None => {
                let temporary = in_memory().map_or_else(tempfile::tempdir, Ok).map_err(|error| {
                    ReplayError::Place { path: PathBuf::from("a temporary folder"), error }
                })?;
                Ok(Place { folder: temporary.path().to_owned(), _temporary: Some(temporary) })
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
    tempfile::Builder::new().prefix("pal-replay-").tempdir_in(MEMORY).ok()
}
