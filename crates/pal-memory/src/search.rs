//! Memories that fit a question, by their words, by when they were written and by how often they were used.

use std::collections::HashSet;

use pal_model::Timestamp;
use pal_search::{Document, Index, SearchError};
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
/// How much of its score a memory loses in the order if all it is about was said by those before it.
const SAID: f64 = 0.6;

const DAY_MS: f64 = 86_400_000.0;

/// A memory that was found.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Found {
    /// The memory.
    #[serde(flatten)]
    pub memory: Listed,
    /// How well it fits; comparable within one search.
    pub score: f64,
}

impl Memory {
    /// The memories that fit a question best, the best first. An index that is spoilt is made anew; one that cannot be kept
    /// is made for this process alone.
    pub fn search(&mut self, question: &str, most: usize, now: Timestamp) -> Result<Vec<Found>, MemoryError> {
        self.look()?;
        let fetched = most.saturating_mul(FETCHED).max(50);
        let hits = self.hits(question, fetched).or_else(|_| {
            self.search = None;
            // A kept index that fails while it is used is as good as none.
            let _ = self.folder.remove(INDEX);
            self.hits(question, fetched)
        });
        let hits = hits.or_else(|_| {
            self.search = Index::in_memory(WEIGHTS.len()).ok();
            self.hits(question, fetched)
        });
        let listed = self.listed();
        let by_slug: std::collections::HashMap<&str, &Listed> =
            listed.iter().map(|listed| (listed.slug.as_str(), listed)).collect();
        let mut found: Vec<Found> = hits
            .unwrap_or_default()
            .into_iter()
            .filter_map(|hit| {
                let memory = (*by_slug.get(hit.key.as_str())?).clone();
                Some(Found { score: hit.score * weight(&memory, now), memory })
            })
            .collect();
        found.sort_by(|one, other| {
            other.score.total_cmp(&one.score).then_with(|| one.memory.slug.cmp(&other.memory.slug))
        });
        Ok(varied(found, most))
    }

    fn hits(&mut self, question: &str, most: usize) -> Result<Vec<pal_search::Hit>, SearchError> {
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
