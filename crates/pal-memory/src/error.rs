//! What can go wrong, each with what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use pal_store::FileError;

use crate::embeddings::EmbeddingsError;

/// A memory directory or something in it that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// The directory is a link, lies behind one that leads elsewhere, or is another user's.
    #[error("{} cannot hold memories: {what}; move it away", .path.display())]
    NotOurs {
        /// The directory.
        path: PathBuf,
        /// Why not.
        what: &'static str,
    },
    /// There is no such memory.
    #[error("there is no memory `{name}`{}", .near.as_ref().map_or(String::new(), |near| format!("; did you mean `{near}`?")))]
    Unknown {
        /// What was asked for.
        name: String,
        /// The nearest that there is.
        near: Option<String>,
    },
    /// A name that no memory can have.
    #[error("`{name}` cannot be the name of a memory's file: {why}")]
    BadSlug {
        /// The name.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// In the place of the memory's file stands something that is none: a link, a folder, a huge file.
    #[error("{} is {what}, which is never replaced; move it away", .path.display())]
    InTheWay {
        /// The file.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// The text that an edit replaces is not there, or not once.
    #[error(
        "the text to be replaced is in `{slug}` {times} times; name it with so much around it that it is there once"
    )]
    NotOnce {
        /// The memory.
        slug: String,
        /// How often the text is there.
        times: usize,
    },
    /// There is no such point in the history.
    #[error("there is no point {point} in the history; the last one is {last}")]
    NoSuchPoint {
        /// The point.
        point: u64,
        /// The last one that there is.
        last: u64,
    },
    /// An earlier version is not there any more, or not as it was.
    #[error("the version {digest} of {file} is missing or spoilt in {}", .path.display())]
    VersionLost {
        /// The file that it is a version of.
        file: String,
        /// Its hash.
        digest: String,
        /// Where versions are.
        path: PathBuf,
    },
    /// The directory was opened to look only.
    #[error("{} is only read; another program keeps it", .path.display())]
    ReadOnly {
        /// The directory.
        path: PathBuf,
    },
    /// Another process writes, and does not end.
    #[error("{} is being written by another process for more than {seconds} s; wait for it, or end it", .path.display())]
    Busy {
        /// The directory.
        path: PathBuf,
        /// How long was waited.
        seconds: u64,
    },
    /// The model that finds memories by their meaning cannot be used.
    #[error(transparent)]
    Embeddings(#[from] EmbeddingsError),
    /// The system refused something.
    #[error(transparent)]
    File(#[from] FileError),
}

impl MemoryError {
    /// What the system refused.
    pub(crate) fn file(action: &'static str, path: &Path, source: io::Error) -> MemoryError {
        FileError { action, path: path.to_owned(), source }.into()
    }
}
