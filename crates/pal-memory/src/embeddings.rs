//! The model by which memories are found that say the same in other words, where this program was built with it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

#[cfg(not(feature = "embeddings"))]
use missing::Embedder;
#[cfg(feature = "embeddings")]
use pal_embed::Embedder;

/// A model in a folder. Its weights are read when it is used first.
#[derive(Debug)]
pub struct Embeddings {
    folder: PathBuf,
    embedder: Embedder,
}

/// A model that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("memories are found by their words alone: {0}")]
pub struct EmbeddingsError(String);

impl PartialEq for Embeddings {
    fn eq(&self, other: &Embeddings) -> bool {
        self.folder == other.folder
    }
}

impl Eq for Embeddings {}

impl Embeddings {
    /// Opens the model in a folder.
    pub fn open(folder: &Path) -> Result<Arc<Embeddings>, EmbeddingsError> {
        let embedder = Embedder::open(folder).map_err(refused)?;
        Ok(Arc::new(Embeddings { folder: folder.to_owned(), embedder }))
    }

    /// What makes two models give the same vectors.
    pub(crate) fn identity(&self) -> Result<[u8; 32], EmbeddingsError> {
        self.embedder.identity().map_err(refused)
    }

    /// The vector of a text, of length one.
    pub fn embed(&self, text: &str) -> Result<Vec<f32>, EmbeddingsError> {
        self.embedder.embed(text).map_err(refused)
    }
}

fn refused(error: impl std::fmt::Display) -> EmbeddingsError {
    EmbeddingsError(error.to_string())
}

/// What stands in the place of the model in a program that was built without it: nothing that could ever be asked.
#[cfg(not(feature = "embeddings"))]
mod missing {
    use std::path::Path;

    #[derive(Debug)]
    pub(super) enum Embedder {}

    impl Embedder {
        pub(super) fn open(_: &Path) -> Result<Embedder, &'static str> {
            Err(
                "this program was built without embeddings; build it with `cargo build --release -p pal-cli --features embeddings`, or unset `embeddings`",
            )
        }

        pub(super) fn identity(&self) -> Result<[u8; 32], &'static str> {
            match *self {}
        }

        pub(super) fn embed(&self, _: &str) -> Result<Vec<f32>, &'static str> {
            match *self {}
        }
    }
}
