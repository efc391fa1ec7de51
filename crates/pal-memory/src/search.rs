//! Memories that fit a question, by their words and their meaning, by when they were written and by how often they were used.

use std::collections::{HashMap, HashSet};

use pal_model::Timestamp;
use pal_search::{Document, Hit, Index, SearchError};
use serde::Serialize;

use crate::error::MemoryError;
use crate::memory::{Listed, Memory, file_of};
use crate::topic::Topic;

/// The file of the index in the directory.
const INDEX: &str = ".index.db";

/// How much a word counts in the name, in the description, in the text.
const WEIGHTS: [f64; 3] = [4.0, 2.0, 1.0];

/// How much newness may add to a score: as much as this share of it.
const RECENCY: f64 = 0.3;
/// How much use may add: what was of use before is the best guess where words alone do not decide.
const USE: f64 = 2.0;
/// Days after which newness has halved.
const HALF_DAYS: f64 = 30.0;
/// Uses that are half as good as endlessly many.
const HALF_USES: f64 = 4.0;
/// How many more are fetched than are wanted, since newness and use change the order.
const FETCHED: usize = 4;
/// What is added to a place before orders are fused, so that the first of them do not count for everything.
const PLACES: f64 = 60.0;
/// How much of its score a memory loses in the order if all it is about was said by those before it.
const SAID: f64 = 0.6;

const DAY_MS: f64 = 86_400_000.0;

/// A memory that was found.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Found {
    /// The memory.
    #[serde(flatten)]
    pub memory: Listed,
    /// How good it is; comparable within one search.
    pub score: f64,
    /// How well it fits, as a share of how well the best one does, by its words or by its meaning.
    pub fit: f64,
}

impl Memory {
    /// The memories that fit a question best, the best first: by their words, and by their meaning as far as there is a model
    /// and vectors were made ([`Memory::embed_some`]). An index that is spoilt is made anew; one that cannot be kept is made
    /// for this process alone.
    pub fn search(&mut self, question: &str, most: usize, now: Timestamp) -> Result<Vec<Found>, MemoryError> {
        let fetched = most.saturating_mul(FETCHED).max(50);
        let model = self.embeddings.clone().filter(|_| self.has_vectors());
        // Both take milliseconds, so neither waits for the other.
        let (by_words, asked) = std::thread::scope(|scope| {
            let asked = model
                .as_ref()
                .map(|model| scope.spawn(|| Some((model.identity().ok()?, model.embed(question).ok()?))));
            let by_words = self.look().map(|()| self.by_words(question, fetched));
            (by_words, asked.and_then(|asked| asked.join().ok()?))
        });
        let by_words = by_words?;
        let by_meaning = self.near(asked, fetched);
        let slugs = by_words.iter().chain(&by_meaning).map(|hit| hit.key.as_str());
        let by_slug: HashMap<String, Listed> =
            slugs.filter_map(|slug| Some((slug.to_owned(), self.listed_one(slug)?))).collect();
        let weight = |slug: &str| by_slug.get(slug).map_or(0.0, |memory| weight(memory, now));
        let fits = fits(&by_words, &by_meaning, weight);
        let hits = if by_meaning.is_empty() { by_words } else { fused(&[&by_words, &by_meaning]) };
        let mut found: Vec<Found> = hits
            .into_iter()
            .filter_map(|hit| {
                let memory = by_slug.get(&hit.key)?.clone();
                let fit = fits.get(&hit.key).copied().unwrap_or_default();
                Some(Found { score: hit.score * weight(&hit.key), fit, memory })
            })
            .collect();
        found.sort_by(|one, other| {
            other.score.total_cmp(&one.score).then_with(|| one.memory.slug.cmp(&other.memory.slug))
        });
        Ok(varied(found, most))
    }

    /// Those that share words with a question, the best first.
    fn by_words(&mut self, question: &str, most: usize) -> Vec<Hit> {
        let hits = self.hits(question, most).or_else(|_| {
            self.search = None;
            // A kept index that fails while it is used is as good as none.
            let _ = self.folder.remove(INDEX);
            self.hits(question, most)
        });
        let hits = hits.or_else(|_| {
            self.search = Index::in_memory(WEIGHTS.len()).ok();
            self.hits(question, most)
        });
        hits.unwrap_or_default()
    }

    fn hits(&mut self, question: &str, most: usize) -> Result<Vec<Hit>, SearchError> {
        let mut index = match self.search.take() {
            Some(index) => index,
            None => self.index()?,
        };
        self.bring_up_to_date(&mut index)?;
        let hits = index.search(question, &WEIGHTS, most);
        self.search = Some(index);
        hits
    }

    fn index(&self) -> Result<Index, SearchError> {
        let kept = match self.is_read_only() {
            true => None,
            false => self.folder.claim(INDEX).ok(),
        };
        kept.map_or_else(|| Index::in_memory(WEIGHTS.len()), |path| Index::open(&path, WEIGHTS.len()))
    }

    /// Reads what changed since it was indexed, and nothing else.
    fn bring_up_to_date(&self, index: &mut Index) -> Result<(), SearchError> {
        let mut stamps = index.stamps()?;
        let mut texts: Vec<(String, String, Topic)> = Vec::new();
        for (file, seen) in self.seen.iter().filter(|(_, seen)| seen.head.is_some()) {
            let slug = crate::memory::slug_of(file);
            let stamp = seen.digest.to_string();
            if stamps.remove(slug).is_some_and(|known| known == stamp) {
                continue;
            }
            if let Ok(Some(bytes)) = self.folder.read(&file_of(slug)) {
                texts.push((slug.to_owned(), stamp, Topic::read(slug, &String::from_utf8_lossy(&bytes))));
            }
        }
        let fields: Vec<[&str; 3]> = texts
            .iter()
            .map(|(_, _, topic)| [topic.head.name.as_str(), &topic.head.description, &topic.body])
            .collect();
        let documents: Vec<Document<'_>> = texts
            .iter()
            .zip(&fields)
            .map(|((key, stamp, _), fields)| Document { key, stamp, fields })
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

/// Several orders as one, by places alone, since their scores cannot be compared: each gives one over a constant and the place.
fn fused(orders: &[&[Hit]]) -> Vec<Hit> {
    let mut scores: HashMap<&str, f64> = HashMap::new();
    for order in orders {
        for (place, hit) in order.iter().enumerate() {
            *scores.entry(&hit.key).or_default() += 1.0 / (PLACES + (place + 1) as f64);
        }
    }
    let mut hits: Vec<Hit> =
        scores.into_iter().map(|(key, score)| Hit { key: key.to_owned(), score }).collect();
    hits.sort_by(|one, other| other.score.total_cmp(&one.score).then_with(|| one.key.cmp(&other.key)));
    hits
}

/// How well each fits, as a share of the best: by its words with what newness and use make of them, or by its meaning,
/// whichever is more. Places say nothing about that: there is a second one even if nothing fits but the first.
fn fits(by_words: &[Hit], by_meaning: &[Hit], weight: impl Fn(&str) -> f64) -> HashMap<String, f64> {
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

/// The first so many of those that fit, in an order in which none says again what others before it said: whoever has room for
/// five memories wants to know five things.
fn varied(mut left: Vec<Found>, most: usize) -> Vec<Found> {
    let mut said: HashSet<String> = HashSet::new();
    let mut chosen = Vec::new();
    left.truncate(most.saturating_mul(FETCHED));
    let mut topics: Vec<HashSet<String>> = left.iter().map(|found| topic(&found.memory)).collect();
    while !left.is_empty() && chosen.len() < most {
        let worth = |at: usize| {
            let again = topics[at].intersection(&said).count() as f64 / topics[at].len().max(1) as f64;
            left[at].score * (1.0 - SAID * again)
        };
        let best =
            (0..left.len()).max_by(|one, other| worth(*one).total_cmp(&worth(*other)).then(other.cmp(one)));
        // There is one as long as any is left.
        let Some(best) = best else { break };
        said.extend(topics.remove(best));
        chosen.push(left.remove(best));
    }
    chosen
}

/// The words by which a memory says what it is about.
fn topic(memory: &Listed) -> HashSet<String> {
    let words = memory.head.description.split_whitespace();
    let words = words.map(|word| word.trim_matches(|letter: char| !letter.is_alphanumeric()).to_lowercase());
    words.filter(|word| !word.is_empty()).collect()
}

/// What newness and use make of a score.
fn weight(memory: &Listed, now: Timestamp) -> f64 {
    let touched = memory.uses.last.map_or(memory.changed, |last| last.max(memory.changed));
    let days = now.milliseconds().saturating_sub(touched.milliseconds()).max(0) as f64 / DAY_MS;
    let recency = 0.5_f64.powf(days / HALF_DAYS);
    let uses = memory.uses.count as f64;
    1.0 + RECENCY * recency + USE * uses / (uses + HALF_USES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hits(keys: &str) -> Vec<Hit> {
        let keys = keys.split_whitespace().enumerate();
        keys.map(|(at, key)| Hit { key: key.to_owned(), score: 1_000.0 / (at + 1) as f64 }).collect()
    }

    #[test]
    fn orders_are_fused_by_their_places_alone() {
        let check = |one: &str, other: &str, wanted: &str| {
            let fused = fused(&[&hits(one), &hits(other)]);
            let keys: Vec<&str> = fused.iter().map(|hit| hit.key.as_str()).collect();
            assert_eq!(keys.join(" "), wanted, "{one} and {other}");
        };
        check("", "", "");
        check("a b c", "", "a b c");
        check("a b", "b a", "a b");
        check("a b c", "c b a", "a c b");
        check("a b c d", "d c", "d c a b");
        check("a b", "c", "a c b");
        let fused = fused(&[&hits("a b"), &hits("b")]);
        assert_eq!(fused[0], Hit { key: "b".into(), score: 1.0 / 62.0 + 1.0 / 61.0 });
        assert_eq!(fused[1], Hit { key: "a".into(), score: 1.0 / 61.0 });
    }

    #[test]
    fn a_memory_fits_as_well_as_its_better_side() {
        let fits = fits(&hits("a b"), &hits("c b"), |key| if key == "b" { 4.0 } else { 1.0 });
        assert_eq!(fits["b"], 1.0, "the best by words, once it is weighed");
        assert_eq!(fits["a"], 0.5);
        assert_eq!(fits["c"], 1.0);
        assert_eq!(fits.len(), 3);
    }
}
