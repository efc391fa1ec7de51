//! The prefix cache: entries written where marks stand, found again by walking back from a mark.
//!
//! It knows hashes of prefixes and the time, and nothing of what they stand for.

use pal_model::Timestamp;

use crate::entries::Entries;
use crate::prompt::{Lifetime, Mark, Rendered};

/// Entries that are kept.
const MOST_ENTRIES: usize = 1 << 17;

/// All entries of all models and keys; who may read what is part of the hash.
pub(crate) struct PrefixCache {
    entries: Entries<Lifetime>,
}

impl Default for PrefixCache {
    fn default() -> PrefixCache {
        PrefixCache { entries: Entries::new(MOST_ENTRIES) }
    }
}

/// What the cache does for one prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Served {
    /// Tokens read.
    pub(crate) read: u64,
    /// Tokens written for five minutes.
    pub(crate) written_5m: u64,
    /// Tokens written for an hour.
    pub(crate) written_1h: u64,
    /// Tokens that were neither.
    pub(crate) uncached: u64,
    /// Marks that counted.
    pub(crate) marks: usize,
    /// Steps from its mark back to the longest entry that was found.
    pub(crate) steps_back: Option<u64>,
    /// Tokens of the longest prefix that was ever written.
    pub(crate) known: u64,
    /// Whether it has expired.
    pub(crate) lapsed: bool,
    /// Entries to write.
    pub(crate) writes: Vec<(u128, Lifetime)>,
}

impl PrefixCache {
    /// Looks a prompt up, and refreshes what is read. Nothing is written yet: that takes an answer that begins.
    pub(crate) fn serve(&mut self, now: Timestamp, rendered: &Rendered, look_back: u64) -> Served {
        let now = now.milliseconds();
        // Looked for before anything is refreshed.
        let ever = self.entries.longest_ever(now, rendered.spots.iter().map(|spot| spot.chain));
        let mut longest: Option<(usize, u64)> = None;
        for mark in &rendered.marks {
            let Some((found, steps)) = self.walk_back(now, rendered, *mark, look_back) else { continue };
            if longest.is_none_or(|(spot, _)| found > spot) {
                longest = Some((found, steps));
            }
        }
        let tokens_at = |spot: usize| rendered.spots.get(spot).map_or(0, |spot| spot.tokens);
        let read = longest.map_or(0, |(spot, _)| tokens_at(spot));
        let end_of = |lifetime| {
            let last = rendered.marks.iter().rev().find(|mark| mark.lifetime == lifetime);
            last.map_or(0, |mark| tokens_at(mark.spot))
        };
        let long = end_of(Lifetime::OneHour).max(read);
        let short = end_of(Lifetime::FiveMinutes).max(long);
        let chains = rendered
            .marks
            .iter()
            .filter_map(|mark| rendered.spots.get(mark.spot).map(|spot| (spot.chain, mark.lifetime)));
        Served {
            read,
            written_5m: short - long,
            written_1h: long - read,
            uncached: rendered.tokens.saturating_sub(short),
            marks: rendered.marks.len(),
            steps_back: longest.map(|(_, steps)| steps),
            known: ever.map_or(0, |(spot, _)| tokens_at(spot)),
            lapsed: ever.is_some_and(|(_, lapsed)| lapsed),
            writes: chains.filter(|(chain, _)| !self.entries.is_readable(now, *chain)).collect(),
        }
    }

    /// The nearest entry at or before a mark, within so many positions, with the steps to it.
    fn walk_back(
        &mut self,
        now: i64,
        rendered: &Rendered,
        mark: Mark,
        look_back: u64,
    ) -> Option<(usize, u64)> {
        let start = rendered.spots.get(mark.spot)?.position;
        for (index, spot) in rendered.spots.get(..=mark.spot)?.iter().enumerate().rev() {
            let steps = start - spot.position;
            if steps >= look_back {
                return None;
            }
            if self.entries.is_readable(now, spot.chain) {
                self.entries.refresh(now, spot.chain);
                return Some((index, steps));
            }
        }
        None
    }

    /// Writes the entries of a request that started then, and whose answer begins then.
    pub(crate) fn write(&mut self, started: Timestamp, begins: Timestamp, writes: &[(u128, Lifetime)]) {
        self.entries.write(started, begins, writes);
    }
}

#[cfg(test)]
mod tests;
