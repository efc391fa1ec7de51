//! Errors of memory directories, each with a next step.

use std::io;
use std::path::{Path, PathBuf};

use pal_store::FileError;

use crate::embedding_model::EmbeddingModelError;

/// A memory directory or a file in it cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// The directory is a link, lies outside the project, or belongs to another user.
    #[error("cannot keep memories in {}: {what}; move it away", .path.display())]
    NotOurs {
        /// Path of the directory.
        path: PathBuf,
        /// Reason why it is refused.
        what: &'static str,
    },
    /// No memory has this name.
    #[error("there is no memory `{name}`{}", .near.as_ref().map_or(String::new(), |near| format!("; did you mean `{near}`?")))]
    Unknown {
        /// Name that was given.
        name: String,
        /// Closest existing slug.
        near: Option<String>,
    },
    /// The name cannot be a slug.
    #[error("`{name}` cannot be the name of a memory's file: {why}")]
    BadSlug {
        /// Name that was given.
        name: String,
        /// Rule that it breaks.
        why: &'static str,
    },
    /// A link, directory or oversized file blocks the memory's file.
    #[error("{} is {what}, which is never replaced; move it away", .path.display())]
    InTheWay {
        /// Path that is blocked.
        path: PathBuf,
        /// File type with its article.
        what: &'static str,
    },
    /// The text to replace does not occur exactly once.
    #[error(
        "the text to replace occurs {times} times in `{slug}`; include more context so that it occurs exactly once"
    )]
    NotOnce {
        /// Slug of the memory.
        slug: String,
        /// Number of occurrences.
        times: usize,
    },
    /// The history has no such point.
    #[error("there is no point {point} in the history; the last one is {last}")]
    NoSuchPoint {
        /// Point that was given.
        point: u64,
        /// Last existing point.
        last: u64,
    },
    /// A stored version is missing or corrupt.
    #[error("the version {digest} of {file} is missing or corrupt in {}", .path.display())]
    VersionLost {
        /// File that it is a version of.
        file: String,
        /// Hash of the version.
        digest: String,
        /// Directory of the versions.
        path: PathBuf,
    },
    /// The directory was opened read-only.
    #[error("{} is read-only: another program maintains it", .path.display())]
    ReadOnly {
        /// Path of the directory.
        path: PathBuf,
    },
    /// Another process holds the lock for too long.
    #[error("another process has been writing to {} for more than {seconds} s; wait for it or stop it", .path.display())]
    Busy {
        /// Path of the directory.
        path: PathBuf,
        /// Seconds waited.
        seconds: u64,
    },
    /// The embedding model cannot be used.
    #[error(transparent)]
    Embeddings(#[from] EmbeddingModelError),
    /// A system call failed.
    #[error(transparent)]
    File(#[from] FileError),
}

impl MemoryError {
    /// Wraps an error of the operating system.
    pub(crate) fn file(action: &'static str, path: &Path, source: io::Error) -> MemoryError {
        FileError { action, path: path.to_owned(), source }.into()
    }
}
