//! Errors of embedding models, each with a next step.

use std::io;
use std::path::{Path, PathBuf};

/// A model cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EmbedError {
    /// A file of the model cannot be read.
    #[error(
        "cannot read {}: {source}; a model directory contains config.json, vocab.txt and model.safetensors",
        .path.display()
    )]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// A file of the model is malformed.
    #[error("{} is malformed: {what}; download the model again", .path.display())]
    Broken {
        /// Path of the file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The model is of an unsupported family.
    #[error("{} describes an unsupported model: {what}; use all-MiniLM-L6-v2 or a similar one", .path.display())]
    Foreign {
        /// File that shows it.
        path: PathBuf,
        /// Unsupported property.
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
