//! Vectors of memories, stored in one file by the hash of the memory's file.
//!
//! Vectors are derived data. Those of another model or of a changed text are ignored and dropped with the
//! next write. A memory without a vector is still found by its words.

#[cfg(test)]
#[cfg(feature = "embeddings")]
mod tests;

use std::collections::{HashMap, HashSet};

use pal_search::SearchHit;

use crate::error::MemoryError;
use crate::memory_dir::{FileStamp, MemoryDir};
use crate::memory_file::MemoryFile;
use crate::memory_history::FileDigest;
use crate::memory_store::{MemoryStore, file_of, slug_of};

/// File of vectors.
const VECTORS: &str = ".vectors";

/// Magic number; another one means that the file is rebuilt. The model's hash and the vector size follow.
const MAGIC: &[u8; 8] = b"vectors1";
const DIGEST_BYTES: usize = 32;

/// Maximum size of the file that is read.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// New vectors per write; a kill loses no more.
const BATCH: usize = 32;

/// Minimum cosine similarity of a hit.
const SIMILARITY_MIN: f32 = 0.3;

/// Vectors of a directory.
#[derive(Default)]
pub(crate) struct VectorStore {
    /// Hash of their model.
    model: [u8; 32],
    by_digest: HashMap<FileDigest, Vec<f32>>,
    /// Stamp of the file when it was last read.
    file: Option<FileStamp>,
}

impl MemoryStore {
    /// Makes missing vectors until `is_enough` returns true, which is checked before each. Returns whether
    /// none is missing. A read-only directory, or one without a model, needs none.
    pub fn embed_missing(&mut self, mut is_enough: impl FnMut() -> bool) -> Result<bool, MemoryError> {
        let Some(embeddings) = self.embeddings.clone().filter(|_| !self.is_read_only()) else {
            return Ok(true);
        };
        let mut n_new = 0;
        let is_done = loop {
            self.refresh()?;
            // Do not load a model for an empty directory.
            if self.seen.values().all(|seen| seen.head.is_none()) {
                break true;
            }
            if is_enough() {
                break false;
            }
            self.vectors.refresh(&self.folder, embeddings.identity()?)?;
            let Some((slug, digest)) = self.next_without_vector() else { break true };
            let text = self.folder.read(&file_of(&slug))?.unwrap_or_default();
            if FileDigest::of(&text) != digest {
                // It is being changed; leave it for the next time.
                break true;
            }
            let topic = MemoryFile::parse(&slug, &String::from_utf8_lossy(&text));
            let text = format!("{}\n{}\n{}", topic.head.name, topic.head.description, topic.body);
            self.vectors.by_digest.insert(digest, embeddings.embed(&text)?);
            n_new += 1;
            if n_new % BATCH == 0 {
                self.save_vectors()?;
            }
        };
        if n_new % BATCH != 0 {
            self.save_vectors()?;
        }
        Ok(is_done)
    }

    /// Memories near a question, nearest first. Empty without a model or vectors; model errors are reported
    /// when vectors are made.
    pub(crate) fn near(&mut self, asked: Option<([u8; 32], Vec<f32>)>, most: usize) -> Vec<SearchHit> {
        let Some((model, question)) = asked else { return Vec::new() };
        if self.vectors.refresh(&self.folder, model).is_err() {
            return Vec::new();
        }
        let near = self.seen.iter().filter(|(_, seen)| seen.head.is_some()).filter_map(|(file, seen)| {
            let score = cosine(self.vectors.by_digest.get(&seen.digest)?, &question);
            (score >= SIMILARITY_MIN)
                .then(|| SearchHit { key: slug_of(file).to_owned(), score: f64::from(score) })
        });
        let mut near: Vec<SearchHit> = near.collect();
        near.sort_by(|one, other| other.score.total_cmp(&one.score).then_with(|| one.key.cmp(&other.key)));
        near.truncate(most);
        near
    }

    /// Reports whether there are vectors, so that the question has to be embedded.
    pub(crate) fn has_vectors(&self) -> bool {
        !self.vectors.by_digest.is_empty() || self.folder.exists(VECTORS)
    }

    /// A memory without a vector.
    fn next_without_vector(&self) -> Option<(String, FileDigest)> {
        let mut memories = self.seen.iter().filter(|(_, seen)| seen.head.is_some());
        let (file, seen) = memories.find(|(_, seen)| !self.vectors.by_digest.contains_key(&seen.digest))?;
        Some((slug_of(file).to_owned(), seen.digest))
    }

    /// Stores the vectors of existing memories only.
    fn save_vectors(&mut self) -> Result<(), MemoryError> {
        let digests: HashSet<FileDigest> = self.seen.values().map(|seen| seen.digest).collect();
        self.vectors.by_digest.retain(|digest, _| digests.contains(digest));
        self.replace_derived_file(VECTORS, &self.vectors.file())
    }
}

impl VectorStore {
    /// Reads stored vectors of this model, if the file changed, and keeps unsaved ones.
    fn refresh(&mut self, folder: &MemoryDir, model: [u8; 32]) -> Result<(), MemoryError> {
        if self.model != model {
            *self = VectorStore { model, ..VectorStore::default() };
        }
        let stamp = folder.stamp(VECTORS)?.filter(|stamp| stamp.bytes() <= FILE_BYTES_MAX);
        if stamp == self.file {
            return Ok(());
        }
        self.file = stamp;
        let file = folder.read(VECTORS)?.unwrap_or_default();
        for (digest, vector) in read(&file, &model).unwrap_or_default() {
            self.by_digest.entry(digest).or_insert(vector);
        }
        Ok(())
    }

    fn file(&self) -> Vec<u8> {
        let width = self.by_digest.values().next().map_or(0, Vec::len);
        let mut file = [MAGIC.as_slice(), &self.model, &(width as u32).to_le_bytes()].concat();
        for (digest, vector) in &self.by_digest {
            file.extend(digest.bytes());
            vector.iter().for_each(|number| file.extend(number.to_le_bytes()));
        }
        file
    }
}

/// Parses the file; none if it is of another model or malformed.
fn read(file: &[u8], model: &[u8; 32]) -> Option<Vec<(FileDigest, Vec<f32>)>> {
    let (form, rest) = file.split_first_chunk::<8>()?;
    let (kept, rest) = rest.split_first_chunk::<32>()?;
    let (width, rest) = rest.split_first_chunk::<4>()?;
    let bytes = 4 * u32::from_le_bytes(*width) as usize;
    if form != MAGIC || kept != model || bytes == 0 || !rest.len().is_multiple_of(DIGEST_BYTES + bytes) {
        return None;
    }
    let vectors = rest.chunks_exact(DIGEST_BYTES + bytes).filter_map(|record| {
        let (digest, numbers) = record.split_first_chunk::<DIGEST_BYTES>()?;
        let numbers = numbers.as_chunks::<4>().0.iter().map(|number| f32::from_le_bytes(*number));
        Some((FileDigest::from(*digest), numbers.collect()))
    });
    Some(vectors.collect())
}

/// Cosine similarity of two unit vectors, in lanes, since every question is compared with all memories.
fn cosine(one: &[f32], other: &[f32]) -> f32 {
    let (ones, one_rest) = one.as_chunks::<8>();
    let (others, other_rest) = other.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for (one, other) in ones.iter().zip(others) {
        for lane in 0..8 {
            sums[lane] += one[lane] * other[lane];
        }
    }
    let rest: f32 = one_rest.iter().zip(other_rest).map(|(one, other)| one * other).sum();
    sums.iter().sum::<f32>() + rest
}
