//! A model that is ready to embed texts.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::config::Config;
use crate::encoder::Encoder;
use crate::error::EmbedError;
use crate::tensors::{Place, Tensors};
use crate::words::Vocabulary;

/// Most tokens of a text that are looked at; the models were not trained on longer ones.
const TOKENS_MOST: usize = 256;

/// Numbers of each tensor, and rows of words, by which a model is told from others.
const SAMPLES: usize = 64;

const WORDS: &str = "embeddings.word_embeddings.weight";

/// A model. Opening it reads what it says of itself; the first text reads its weights.
pub struct Embedder {
    folder: PathBuf,
    config: Config,
    tensors: Tensors,
    /// How the names of the tensors begin.
    beginning: String,
    /// The rows of words. They are half of the model, and a text needs few of them, so they stay on disk.
    words: Place,
    loaded: OnceLock<Loaded>,
}

struct Loaded {
    vocabulary: Vocabulary,
    encoder: Encoder<Vec<f32>>,
    identity: [u8; 32],
}

impl fmt::Debug for Embedder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Embedder").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl Embedder {
    /// Opens the model in a folder, if all that it needs is there and fits together.
    pub fn open(folder: &Path) -> Result<Embedder, EmbedError> {
        let config = Config::read(folder)?;
        let tensors = Tensors::open(&folder.join("model.safetensors"))?;
        let beginning = tensors.beginning(WORDS);
        let words = format!("{beginning}{WORDS}");
        let words = tensors.place(&words, &[tensors.rows(&words, config.width)?, config.width])?;
        // Whatever would be missing later is said now.
        Encoder::taken(&config, |name, shape| tensors.place(&format!("{beginning}{name}"), shape))?;
        let folder = folder.to_owned();
        Ok(Embedder { folder, config, tensors, beginning, words, loaded: OnceLock::new() })
    }

    /// Numbers of a vector.
    pub fn width(&self) -> usize {
        self.config.width
    }

    /// What makes two models give the same vectors. It is taken from what the model says of itself, its words and samples of all
    /// its weights, so it costs no second reading; the same in another folder is the same model.
    pub fn identity(&self) -> Result<[u8; 32], EmbedError> {
        Ok(self.loaded()?.identity)
    }

    /// The vector of a text, of length one. Only the beginning of a long text counts.
    pub fn embed(&self, text: &str) -> Result<Vec<f32>, EmbedError> {
        let loaded = self.loaded()?;
        let width = self.config.width;
        let tokens = loaded.vocabulary.tokens(text, TOKENS_MOST.min(self.config.n_positions));
        let mut rows = vec![0.0; tokens.len() * width];
        for (row, token) in rows.chunks_exact_mut(width).zip(&tokens) {
            self.tensors.fill(&self.words, *token as usize * width, row)?;
        }
        let rows = loaded.encoder.encode(rows, &self.config);
        let mut sum = vec![0.0; width];
        for row in rows.chunks_exact(width) {
            sum.iter_mut().zip(row).for_each(|(sum, number)| *sum += number);
        }
        // The mean has the same direction as the sum.
        let length = sum.iter().map(|number| number * number).sum::<f32>().sqrt();
        match length.is_finite() && length > 0.0 {
            true => Ok(sum.into_iter().map(|number| number / length).collect()),
            false => Err(EmbedError::broken(&self.folder, "its weights give no vector")),
        }
    }

    fn loaded(&self) -> Result<&Loaded, EmbedError> {
        if let Some(loaded) = self.loaded.get() {
            return Ok(loaded);
        }
        let n_rows = self.words.count / self.config.width;
        let vocabulary = Vocabulary::read(&self.folder, n_rows)?;
        let mut hasher = blake3::Hasher::new();
        hasher.update(format!("{:?}", self.config).as_bytes());
        hasher.update(&vocabulary.digest);
        let mut row = vec![0.0; self.config.width];
        for sample in 0..SAMPLES {
            self.tensors.fill(&self.words, sample * n_rows / SAMPLES * self.config.width, &mut row)?;
            hash(&mut hasher, &row);
        }
        let encoder = Encoder::taken(&self.config, |name, shape| {
            let place = self.tensors.place(&format!("{}{name}", self.beginning), shape)?;
            let numbers = self.tensors.read(&place)?;
            hash(&mut hasher, &numbers);
            Ok(numbers)
        })?;
        let identity = *hasher.finalize().as_bytes();
        // If another thread was faster, its weights are the same.
        Ok(self.loaded.get_or_init(|| Loaded { vocabulary, encoder, identity }))
    }
}

/// Adds the beginning of a tensor: training leaves none as it was.
fn hash(hasher: &mut blake3::Hasher, numbers: &[f32]) {
    for number in numbers.iter().take(SAMPLES) {
        hasher.update(&number.to_le_bytes());
    }
}
