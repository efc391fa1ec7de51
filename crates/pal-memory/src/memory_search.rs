//! Memory search by words, meaning, recency and use.

use std::collections::{HashMap, HashSet};

use pal_model::Timestamp;
use pal_search::{SearchDocument, SearchError, SearchHit, SearchIndex};
use serde::Serialize;

use crate::error::MemoryError;
use crate::memory_file::MemoryFile;
use crate::memory_store::{MemoryStore, file_of};
use crate::memory_summary::MemorySummary;

/// Index file in the directory.
const INDEX_FILE_NAME: &str = ".index.db";

/// Weights of name, description and text.
const WEIGHTS: [f64; 3] = [4.0, 2.0, 1.0];

/// Maximum bonus for recency, as a share of the score.
const RECENCY_BONUS_MAX: f64 = 0.3;
/// Maximum bonus for use; past use is the best guess where words do not decide.
const USE_BONUS_MAX: f64 = 2.0;
/// Half-life of recency, in days.
const RECENCY_HALF_LIFE_DAYS: f64 = 30.0;
/// Uses that give half of the maximum bonus.
const HALF_BONUS_USES: f64 = 4.0;
/// Factor of hits fetched over hits wanted, since recency and use change the order.
const FETCH_FACTOR: usize = 4;
/// Constant of reciprocal rank fusion, so that first ranks do not dominate.
const RANK_FUSION_CONSTANT: f64 = 60.0;
/// Share of the score that a memory loses if earlier results cover its description.
const REPETITION_PENALTY: f64 = 0.6;

const DAY_MS: f64 = 86_400_000.0;

/// A memory that matches a question.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MemoryHit {
    /// Summary of the memory.
    #[serde(flatten)]
    pub memory: MemorySummary,
    /// Rank score; comparable within one search.
    pub score: f64,
    /// Relevance as a share of the best hit, by words or by meaning.
    pub fit: f64,
}

impl MemoryStore {
    /// Finds the memories that match a question, best first: by words, and by meaning if there are a model and
    /// vectors (`embed_missing`). A corrupt index is rebuilt; if it cannot be stored, it is kept in
    /// memory.
    pub fn search(
        &mut self,
        question: &str,
        most: usize,
        now: Timestamp,
    ) -> Result<Vec<MemoryHit>, MemoryError> {
        let fetched = most.saturating_mul(FETCH_FACTOR).max(50);
        let model = self.embeddings.clone().filter(|_| self.has_vectors());
        // Both take milliseconds, so run them in parallel.
        let (by_words, asked) = std::thread::scope(|scope| {
            let asked = model
                .as_ref()
                .map(|model| scope.spawn(|| Some((model.identity().ok()?, model.embed(question).ok()?))));
            let by_words = self.refresh().map(|()| self.search_by_words(question, fetched));
            (by_words, asked.and_then(|asked| asked.join().ok()?))
        });
        let by_words = by_words?;
        let by_meaning = self.near(asked, fetched);
        let slugs = by_words.iter().chain(&by_meaning).map(|hit| hit.key.as_str());
        let by_slug: HashMap<String, MemorySummary> =
            slugs.filter_map(|slug| Some((slug.to_owned(), self.listed_one(slug)?))).collect();
        let weight = |slug: &str| by_slug.get(slug).map_or(0.0, |memory| weight(memory, now));
        let fits = relevance_by_slug(&by_words, &by_meaning, weight);
        let hits = if by_meaning.is_empty() { by_words } else { fuse_rankings(&[&by_words, &by_meaning]) };
        let mut found: Vec<MemoryHit> = hits
            .into_iter()
            .filter_map(|hit| {
                let memory = by_slug.get(&hit.key)?.clone();
                let fit = fits.get(&hit.key).copied().unwrap_or_default();
                Some(MemoryHit { score: hit.score * weight(&hit.key), fit, memory })
            })
            .collect();
        found.sort_by(|one, other| {
            other.score.total_cmp(&one.score).then_with(|| one.memory.slug.cmp(&other.memory.slug))
        });
        Ok(diversify(found, most))
    }

    /// Memories that share words with a question, best first.
    fn search_by_words(&mut self, question: &str, most: usize) -> Vec<SearchHit> {
        let hits = self.search_index_hits(question, most).or_else(|_| {
            self.search = None;
            // Discard an index that fails in use.
            let _ = self.folder.remove(INDEX_FILE_NAME);
            self.search_index_hits(question, most)
        });
        let hits = hits.or_else(|_| {
            self.search = SearchIndex::in_memory(WEIGHTS.len()).ok();
            self.search_index_hits(question, most)
        });
        hits.unwrap_or_default()
    }

    fn search_index_hits(&mut self, question: &str, most: usize) -> Result<Vec<SearchHit>, SearchError> {
        let mut index = match self.search.take() {
            Some(index) => index,
            None => self.open_index()?,
        };
        self.update_index(&mut index)?;
        let hits = index.search(question, &WEIGHTS, most);
        self.search = Some(index);
        hits
    }

    fn open_index(&self) -> Result<SearchIndex, SearchError> {
        let kept = match self.is_read_only() {
            true => None,
            false => self.folder.claim_file(INDEX_FILE_NAME).ok(),
        };
        kept.map_or_else(
            || SearchIndex::in_memory(WEIGHTS.len()),
            |path| SearchIndex::open(&path, WEIGHTS.len()),
        )
    }

    /// Indexes what changed since the last search.
    fn update_index(&self, index: &mut SearchIndex) -> Result<(), SearchError> {
        let mut stamps = index.stamps()?;
        let mut texts: Vec<(String, String, MemoryFile)> = Vec::new();
        for (file, seen) in self.seen.iter().filter(|(_, seen)| seen.head.is_some()) {
            let slug = crate::memory_store::slug_of(file);
            let stamp = seen.digest.to_string();
            if stamps.remove(slug).is_some_and(|known| known == stamp) {
                continue;
            }
            if let Ok(Some(bytes)) = self.folder.read(&file_of(slug)) {
                texts.push((
                    slug.to_owned(),
                    stamp,
                    MemoryFile::parse(slug, &String::from_utf8_lossy(&bytes)),
                ));
            }
        }
        let fields: Vec<[&str; 3]> = texts
            .iter()
            .map(|(_, _, topic)| [topic.head.name.as_str(), &topic.head.description, &topic.body])
            .collect();
        let documents: Vec<SearchDocument<'_>> = texts
            .iter()
            .zip(&fields)
            .map(|((key, stamp, _), fields)| SearchDocument { key, stamp, fields })
            .collect();
        if !documents.is_empty() {
            index.put(&documents)?;
        }
        let gone: Vec<&str> = stamps.keys().map(String::as_str).collect();
        if !gone.is_empty() {
            index.remove(&gone)?;
        }
        Ok(())
    }
}

/// Merges rankings by reciprocal rank, since their scores are not comparable.
fn fuse_rankings(orders: &[&[SearchHit]]) -> Vec<SearchHit> {
    let mut scores: HashMap<&str, f64> = HashMap::new();
    for order in orders {
        for (place, hit) in order.iter().enumerate() {
            *scores.entry(&hit.key).or_default() += 1.0 / (RANK_FUSION_CONSTANT + (place + 1) as f64);
        }
    }
    let mut hits: Vec<SearchHit> =
        scores.into_iter().map(|(key, score)| SearchHit { key: key.to_owned(), score }).collect();
    hits.sort_by(|one, other| other.score.total_cmp(&one.score).then_with(|| one.key.cmp(&other.key)));
    hits
}

/// Relevance as a share of the best hit: by weighted words or by meaning, whichever is higher. Ranks cannot
/// tell: there is a second one even if only the first hit is relevant.
fn relevance_by_slug(
    by_words: &[SearchHit],
    by_meaning: &[SearchHit],
    weight: impl Fn(&str) -> f64,
) -> HashMap<String, f64> {
    let by_words = by_words.iter().map(|hit| (&hit.key, hit.score * weight(&hit.key))).collect::<Vec<_>>();
    let by_meaning = by_meaning.iter().map(|hit| (&hit.key, hit.score)).collect::<Vec<_>>();
    let mut fits: HashMap<String, f64> = HashMap::new();
    for order in [by_words, by_meaning] {
        let best = order.iter().map(|(_, score)| *score).fold(f64::MIN_POSITIVE, f64::max);
        for (key, score) in order {
            let fit = fits.entry(key.clone()).or_default();
            *fit = fit.max(score / best);
        }
    }
    fits
}

/// Picks `most` results, preferring those whose description is not covered by earlier ones.
fn diversify(mut left: Vec<MemoryHit>, most: usize) -> Vec<MemoryHit> {
    let mut said: HashSet<String> = HashSet::new();
    let mut chosen = Vec::new();
    left.truncate(most.saturating_mul(FETCH_FACTOR));
    let mut topics: Vec<HashSet<String>> =
        left.iter().map(|found| description_words(&found.memory)).collect();
    while !left.is_empty() && chosen.len() < most {
        let worth = |at: usize| {
            let again = topics[at].intersection(&said).count() as f64 / topics[at].len().max(1) as f64;
            left[at].score * (1.0 - REPETITION_PENALTY * again)
        };
        let best =
            (0..left.len()).max_by(|one, other| worth(*one).total_cmp(&worth(*other)).then(other.cmp(one)));
        // There is one as long as `left` is not empty.
        let Some(best) = best else { break };
        said.extend(topics.remove(best));
        chosen.push(left.remove(best));
    }
    chosen
}

/// Words of the description.
fn description_words(memory: &MemorySummary) -> HashSet<String> {
    let words = memory.head.description.split_whitespace();
    let words = words.map(|word| word.trim_matches(|letter: char| !letter.is_alphanumeric()).to_lowercase());
    words.filter(|word| !word.is_empty()).collect()
}

/// Factor from recency and use.
fn weight(memory: &MemorySummary, now: Timestamp) -> f64 {
    let touched = memory.uses.last.map_or(memory.changed, |last| last.max(memory.changed));
    let days = now.milliseconds().saturating_sub(touched.milliseconds()).max(0) as f64 / DAY_MS;
    let recency = 0.5_f64.powf(days / RECENCY_HALF_LIFE_DAYS);
    let uses = memory.uses.count as f64;
    1.0 + RECENCY_BONUS_MAX * recency + USE_BONUS_MAX * uses / (uses + HALF_BONUS_USES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranked_hits(keys: &str) -> Vec<SearchHit> {
        let keys = keys.split_whitespace().enumerate();
        keys.map(|(at, key)| SearchHit { key: key.to_owned(), score: 1_000.0 / (at + 1) as f64 }).collect()
    }

    #[test]
    fn rankings_are_fused_by_rank_alone() {
        let check = |one: &str, other: &str, wanted: &str| {
            let fused = fuse_rankings(&[&ranked_hits(one), &ranked_hits(other)]);
            let keys: Vec<&str> = fused.iter().map(|hit| hit.key.as_str()).collect();
            assert_eq!(keys.join(" "), wanted, "{one} and {other}");
        };
        check("", "", "");
        check("a b c", "", "a b c");
        check("a b", "b a", "a b");
        check("a b c", "c b a", "a c b");
        check("a b c d", "d c", "d c a b");
        check("a b", "c", "a c b");
        let fused = fuse_rankings(&[&ranked_hits("a b"), &ranked_hits("b")]);
        assert_eq!(fused[0], SearchHit { key: "b".into(), score: 1.0 / 62.0 + 1.0 / 61.0 });
        assert_eq!(fused[1], SearchHit { key: "a".into(), score: 1.0 / 61.0 });
    }

    #[test]
    fn relevance_is_the_better_of_words_and_meaning() {
        let fits =
            relevance_by_slug(
                &ranked_hits("a b"),
                &ranked_hits("c b"),
                |key| if key == "b" { 4.0 } else { 1.0 },
            );
        assert_eq!(fits["b"], 1.0, "the best by words, once it is weighed");
        assert_eq!(fits["a"], 0.5);
        assert_eq!(fits["c"], 1.0);
        assert_eq!(fits.len(), 3);
    }
}
