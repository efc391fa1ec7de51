//! Project files for the completion of `@` mentions, listed on demand on a background thread.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of listed files.
const FILES_MAX: usize = 50_000;
/// Maximum age of a list before it is read again.
const FRESH: Duration = Duration::from_secs(20);

/// Cached list of the files in a directory.
#[derive(Clone)]
pub(crate) struct ProjectFiles {
    directory: PathBuf,
    list: Arc<Mutex<FileList>>,
}

#[derive(Default)]
struct FileList {
    paths: Arc<Vec<String>>,
    read_at: Option<Instant>,
    is_reading: bool,
}

impl ProjectFiles {
    /// Creates an empty list; reads nothing yet.
    pub(crate) fn new(directory: PathBuf) -> ProjectFiles {
        ProjectFiles { directory, list: Arc::default() }
    }

    /// Returns the cached list; refreshes an old one in the background.
    pub(crate) fn snapshot(&self) -> Arc<Vec<String>> {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        let is_old = list.read_at.is_none_or(|at| at.elapsed() > FRESH);
        if is_old && !list.is_reading {
            list.is_reading = true;
            let (directory, shared) = (self.directory.clone(), Arc::clone(&self.list));
            std::thread::spawn(move || {
                let paths = Arc::new(read(&directory));
                let mut list = shared.lock().unwrap_or_else(PoisonError::into_inner);
                *list = FileList { paths, read_at: Some(Instant::now()), is_reading: false };
            });
        }
        Arc::clone(&list.paths)
    }

    /// Returns `true` while the list is being read.
    pub(crate) fn is_reading(&self) -> bool {
        self.list.lock().unwrap_or_else(PoisonError::into_inner).is_reading
    }
}

fn read(directory: &Path) -> Vec<String> {
    let walk = ignore::WalkBuilder::new(directory).build();
    let paths = walk.filter_map(Result::ok).filter(|entry| entry.depth() > 0).filter_map(|entry| {
        let path = entry.path().strip_prefix(directory).ok()?.to_str()?.to_owned();
        let is_directory = entry.file_type().is_some_and(|kind| kind.is_dir());
        Some(if is_directory { format!("{path}/") } else { path })
    });
    let mut paths: Vec<String> = paths.take(FILES_MAX).collect();
    paths.sort_by_key(|path| (path.matches('/').count(), path.len()));
    paths
}
