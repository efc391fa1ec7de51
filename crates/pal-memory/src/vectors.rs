//! What a model made of memories: a vector for each, kept in a file beside them by the hash of the memory's file.
//!
//! Vectors can be made again at any time. Those of another model, or of a text that has changed, are never looked at and go with
//! the next writing. A memory without one is found by its words.

#[cfg(test)]
#[cfg(feature = "embeddings")]
mod tests;

use std::collections::{HashMap, HashSet};

use pal_search::Hit;

use crate::error::MemoryError;
use crate::folder::{Folder, Stamp};
use crate::journal::Digest;
use crate::memory::{Memory, file_of, slug_of};
use crate::topic::Topic;

/// The file of vectors.
const VECTORS: &str = ".vectors";

/// How the file begins; another beginning means that it is made anew. The model follows, then how many numbers a vector has.
const FORM: &[u8; 8] = b"vectors1";
const DIGEST_BYTES: usize = 32;

/// The largest file that is taken for one of ours.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// So many new vectors are written at once: a kill costs no more.
const BATCH: usize = 32;

/// How near a memory has to lie to a question to count as being about it.
const NEAR: f32 = 0.3;

/// The vectors of a directory.
#[derive(Default)]
pub(crate) struct Vectors {
    /// The model that they are of.
    model: [u8; 32],
    by_digest: HashMap<Digest, Vec<f32>>,
    /// The file as it was when it was read last.
    file: Option<Stamp>,
}

impl Memory {
    /// Makes vectors of memories that have none yet, until none is left or it is enough, which is asked before each. Whether
    /// none is left. A directory that is only read, or has no model, needs none.
    pub fn embed_some(&mut self, mut is_enough: impl FnMut() -> bool) -> Result<bool, MemoryError> {
        let Some(embeddings) = self.embeddings.clone().filter(|_| !self.is_read_only()) else {
            return Ok(true);
        };
        let mut n_new = 0;
        let is_done = loop {
            self.look()?;
            // A directory without memories has no use for a model, which would have to be read.
            if self.seen.values().all(|seen| seen.head.is_none()) {
                break true;
            }
            if is_enough() {
                break false;
            }
            self.vectors.refresh(&self.folder, embeddings.identity()?)?;
            let Some((slug, digest)) = self.without_vector() else { break true };
            let text = self.folder.read(&file_of(&slug))?.unwrap_or_default();
            if Digest::of(&text) != digest {
                // It is being changed at this moment, and has its turn the next time.
                break true;
            }
            let topic = Topic::read(&slug, &String::from_utf8_lossy(&text));
            let text = format!("{}\n{}\n{}", topic.head.name, topic.head.description, topic.body);
            self.vectors.by_digest.insert(digest, embeddings.embed(&text)?);
            n_new += 1;
            if n_new % BATCH == 0 {
                self.keep_vectors()?;
            }
        };
        if n_new % BATCH != 0 {
            self.keep_vectors()?;
        }
        Ok(is_done)
    }

    /// The memories that lie near a question, the nearest first. None where there is no model, or nothing was made of any
    /// memory yet; what is wrong with a model is told where vectors are made.
    pub(crate) fn near(&mut self, asked: Option<([u8; 32], Vec<f32>)>, most: usize) -> Vec<Hit> {
        let Some((model, question)) = asked else { return Vec::new() };
        if self.vectors.refresh(&self.folder, model).is_err() {
            return Vec::new();
        }
        let near = self.seen.iter().filter(|(_, seen)| seen.head.is_some()).filter_map(|(file, seen)| {
            let score = cosine(self.vectors.by_digest.get(&seen.digest)?, &question);
            (score >= NEAR).then(|| Hit { key: slug_of(file).to_owned(), score: f64::from(score) })
        });
        let mut near: Vec<Hit> = near.collect();
        near.sort_by(|one, other| other.score.total_cmp(&one.score).then_with(|| one.key.cmp(&other.key)));
        near.truncate(most);
        near
    }

    /// Whether anything was ever made of a memory here: if not, a question need not be embedded, either.
    pub(crate) fn has_vectors(&self) -> bool {
        !self.vectors.by_digest.is_empty() || self.folder.has(VECTORS)
    }

    /// A memory that nothing was made of yet.
    fn without_vector(&self) -> Option<(String, Digest)> {
        let mut memories = self.seen.iter().filter(|(_, seen)| seen.head.is_some());
        let (file, seen) = memories.find(|(_, seen)| !self.vectors.by_digest.contains_key(&seen.digest))?;
        Some((slug_of(file).to_owned(), seen.digest))
    }

    /// Writes those of memories that are there, and no others.
    fn keep_vectors(&mut self) -> Result<(), MemoryError> {
        let digests: HashSet<Digest> = self.seen.values().map(|seen| seen.digest).collect();
        self.vectors.by_digest.retain(|digest, _| digests.contains(digest));
        self.put_made(VECTORS, &self.vectors.file())
    }
}

impl Vectors {
    /// Reads what is kept of this model, if it is not known, besides what is known and was not kept yet.
    fn refresh(&mut self, folder: &Folder, model: [u8; 32]) -> Result<(), MemoryError> {
        if self.model != model {
            *self = Vectors { model, ..Vectors::default() };
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
        let mut file = [FORM.as_slice(), &self.model, &(width as u32).to_le_bytes()].concat();
        for (digest, vector) in &self.by_digest {
            file.extend(digest.bytes());
            vector.iter().for_each(|number| file.extend(number.to_le_bytes()));
        }
        file
    }
}

/// What a file holds of a model; none if it is of another one, or not whole.
fn read(file: &[u8], model: &[u8; 32]) -> Option<Vec<(Digest, Vec<f32>)>> {
    let (form, rest) = file.split_first_chunk::<8>()?;
    let (kept, rest) = rest.split_first_chunk::<32>()?;
    let (width, rest) = rest.split_first_chunk::<4>()?;
    let bytes = 4 * u32::from_le_bytes(*width) as usize;
    if form != FORM || kept != model || bytes == 0 || !rest.len().is_multiple_of(DIGEST_BYTES + bytes) {
        return None;
    }
    let vectors = rest.chunks_exact(DIGEST_BYTES + bytes).filter_map(|record| {
        let (digest, numbers) = record.split_first_chunk::<DIGEST_BYTES>()?;
        let numbers = numbers.as_chunks::<4>().0.iter().map(|number| f32::from_le_bytes(*number));
        Some((Digest::from(*digest), numbers.collect()))
    });
    Some(vectors.collect())
}

/// How near two vectors of length one lie: 1 for the same, about 0 for those that have nothing in common. Several numbers at
/// once, since all memories are compared with every question.
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
