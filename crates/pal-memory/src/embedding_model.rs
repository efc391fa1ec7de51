//! Embedding model for semantic search, if the program was built with it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

#[cfg(not(feature = "embeddings"))]
use missing::NoEmbedder as Embedder;
#[cfg(feature = "embeddings")]
use pal_search::embeddings::Embedder;

/// A model in a directory. Its weights are read on first use.
#[derive(Debug)]
pub struct EmbeddingModel {
    folder: PathBuf,
    embedder: Embedder,
}

/// The model cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("semantic memory search is off: {0}")]
pub struct EmbeddingModelError(String);

impl PartialEq for EmbeddingModel {
    fn eq(&self, other: &EmbeddingModel) -> bool {
        self.folder == other.folder
    }
}

impl Eq for EmbeddingModel {}

impl EmbeddingModel {
    /// Opens the model in a directory.
    pub fn open(folder: &Path) -> Result<Arc<EmbeddingModel>, EmbeddingModelError> {
        let embedder = Embedder::open(folder).map_err(refused)?;
        Ok(Arc::new(EmbeddingModel { folder: folder.to_owned(), embedder }))
    }

    /// Hash of everything that determines the vectors.
    pub(crate) fn identity(&self) -> Result<[u8; 32], EmbeddingModelError> {
        self.embedder.identity().map_err(refused)
    }

    /// Unit vector of a text.
    pub fn embed(&self, text: &str) -> Result<Vec<f32>, EmbeddingModelError> {
        self.embedder.embed(text).map_err(refused)
    }
}

fn refused(error: impl std::fmt::Display) -> EmbeddingModelError {
    EmbeddingModelError(error.to_string())
}

/// Stand-in for builds without embeddings; it can never be constructed.
#[cfg(not(feature = "embeddings"))]
mod missing {
    use std::path::Path;

    #[derive(Debug)]
    pub(super) enum NoEmbedder {}

    impl NoEmbedder {
        pub(super) fn open(_: &Path) -> Result<NoEmbedder, &'static str> {
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
