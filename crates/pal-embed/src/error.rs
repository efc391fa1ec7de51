//! What can go wrong with a model, each with what to do about it.

use std::io;
use std::path::{Path, PathBuf};

/// A model that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EmbedError {
    /// A file of it cannot be read.
    #[error(
        "{} cannot be read: {source}; the folder of a model holds config.json, vocab.txt and model.safetensors",
        .path.display()
    )]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file of it is not what it should be.
    #[error("{} is broken: {what}; fetch the model anew", .path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// It is a model of another family.
    #[error("{} describes a model that cannot be run here: {what}; take all-MiniLM-L6-v2 or one like it", .path.display())]
    Foreign {
        /// The file that says so.
        path: PathBuf,
        /// What is other than it should be.
        what: String,
    },
}

impl EmbedError {
    pub(crate) fn read(path: &Path) -> impl Fn(io::Error) -> EmbedError {
        move |source| EmbedError::Read { path: path.to_owned(), source }
    }

    pub(crate) fn broken(path: &Path, what: impl Into<String>) -> EmbedError {
        EmbedError::Broken { path: path.to_owned(), what: what.into() }
    }

    pub(crate) fn foreign(path: &Path, what: impl Into<String>) -> EmbedError {
        EmbedError::Foreign { path: path.to_owned(), what: what.into() }
    }
}
