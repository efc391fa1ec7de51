//! Local sentence embeddings: texts of similar meaning get nearby vectors.
//!
//! Runs BERT encoders for lower-case text with mean pooling, such as all-MiniLM-L6-v2, from a directory with
//! `config.json`, `vocab.txt` (or `tokenizer.json`) and `model.safetensors`. Downloads nothing, trains
//! nothing and uses one CPU core. Inconsistent files are refused when the directory is opened; the weights
//! are read with the first text.
//!
//! ```no_run
//! use pal_search::embeddings::Embedder;
//!
//! let embedder = Embedder::open("models/all-MiniLM-L6-v2".as_ref())?;
//! let sun = embedder.embed("It's so sunny outside!")?;
//! let weather = embedder.embed("The weather is lovely today.")?;
//! let nearness: f32 = sun.iter().zip(&weather).map(|(one, other)| one * other).sum();
//! assert!(nearness > 0.6);
//! # Ok::<(), pal_search::embeddings::EmbedError>(())
//! ```

mod bert_config;
mod bert_encoder;
mod embedder;
mod error;
mod matrix_product;
mod tensor_file;
mod tokenizer;

pub use embedder::Embedder;
pub use error::EmbedError;
