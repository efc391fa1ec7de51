//! Sentence embeddings on this machine: texts as vectors that lie near each other where the texts mean nearly the same.
//!
//! It runs models of one family, BERT encoders for lower-case text whose vector is the mean over all tokens, such as
//! all-MiniLM-L6-v2, from a folder with `config.json`, `vocab.txt` (or `tokenizer.json`) and `model.safetensors`. It fetches
//! nothing, trains nothing and runs on one processor. What does not fit together is refused when the folder is opened; the
//! weights are read when the first text comes.
//!
//! ```no_run
//! use pal_embed::Embedder;
//!
//! let embedder = Embedder::open("models/all-MiniLM-L6-v2".as_ref())?;
//! let sun = embedder.embed("It's so sunny outside!")?;
//! let weather = embedder.embed("The weather is lovely today.")?;
//! let nearness: f32 = sun.iter().zip(&weather).map(|(one, other)| one * other).sum();
//! assert!(nearness > 0.6);
//! # Ok::<(), pal_embed::EmbedError>(())
//! ```

mod config;
mod embedder;
mod encoder;
mod error;
mod product;
mod tensors;
mod words;

pub use embedder::Embedder;
pub use error::EmbedError;
