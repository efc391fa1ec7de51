//! A model ready to embed texts.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::embeddings::bert_config::BertConfig;
use crate::embeddings::bert_encoder::BertEncoder;
use crate::embeddings::error::EmbedError;
use crate::embeddings::tensor_file::{TensorFile, TensorRange};
use crate::embeddings::tokenizer::Vocabulary;

/// Maximum tokens of a text; the models were not trained on longer ones.
const TOKENS_MAX: usize = 256;

/// Sampled numbers per tensor, and sampled word rows, that identify a model.
const SAMPLES: usize = 64;

const WORDS: &str = "embeddings.word_embeddings.weight";

/// A model. Opening reads its configuration; the first text reads its weights.
pub struct Embedder {
    folder: PathBuf,
    config: BertConfig,
    tensors: TensorFile,
    /// Prefix of the tensor names.
    beginning: String,
    /// Word embeddings. They are half of the model and a text needs few rows, so they stay on disk.
    words: TensorRange,
    loaded: OnceLock<LoadedModel>,
}

struct LoadedModel {
    vocabulary: Vocabulary,
    encoder: BertEncoder<Vec<f32>>,
    identity: [u8; 32],
}

impl fmt::Debug for Embedder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Embedder").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl Embedder {
    /// Opens the model in a directory after checking that its files are complete and consistent.
    pub fn open(folder: &Path) -> Result<Embedder, EmbedError> {
        let config = BertConfig::read(folder)?;
        let tensors = TensorFile::open(&folder.join("model.safetensors"))?;
        let beginning = tensors.name_prefix(WORDS);
        let words = format!("{beginning}{WORDS}");
        let words = tensors.place(&words, &[tensors.rows(&words, config.width)?, config.width])?;
        // Report missing tensors now instead of with the first text.
        BertEncoder::load(&config, |name, shape| tensors.place(&format!("{beginning}{name}"), shape))?;
        let folder = folder.to_owned();
        Ok(Embedder { folder, config, tensors, beginning, words, loaded: OnceLock::new() })
    }

    /// Number of components of a vector.
    pub fn width(&self) -> usize {
        self.config.width
    }

    /// Hash of everything that determines the vectors: configuration, vocabulary and samples of all weights.
    /// Equal for copies of one model in different directories.
    pub fn identity(&self) -> Result<[u8; 32], EmbedError> {
        Ok(self.loaded()?.identity)
    }

    /// Unit vector of a text. Only the first tokens of a long text count.
    pub fn embed(&self, text: &str) -> Result<Vec<f32>, EmbedError> {
        let loaded = self.loaded()?;
        let width = self.config.width;
        let tokens = loaded.vocabulary.tokens(text, TOKENS_MAX.min(self.config.n_positions));
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

    fn loaded(&self) -> Result<&LoadedModel, EmbedError> {
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
        let encoder = BertEncoder::load(&self.config, |name, shape| {
            let place = self.tensors.place(&format!("{}{name}", self.beginning), shape)?;
            let numbers = self.tensors.read(&place)?;
            hash(&mut hasher, &numbers);
            Ok(numbers)
        })?;
        let identity = *hasher.finalize().as_bytes();
        // Another thread may have loaded the same weights first.
        Ok(self.loaded.get_or_init(|| LoadedModel { vocabulary, encoder, identity }))
    }
}

/// Hashes the start of a tensor, which training always changes.
fn hash(hasher: &mut blake3::Hasher, numbers: &[f32]) {
    for number in numbers.iter().take(SAMPLES) {
        hasher.update(&number.to_le_bytes());
    }
}
