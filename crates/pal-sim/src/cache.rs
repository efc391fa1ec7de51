//! The prefix cache: entries written where marks stand, found again by walking back from a mark.
//!
//! It knows hashes of prefixes and the time, and nothing of what they stand for. An entry lives from the start of the
//! request that wrote or last read it, and is readable from the moment the answer of its writer began.

use pal_model::Timestamp;
use rustc_hash::FxHashMap;

use crate::prompt::{Lifetime, Mark, Rendered};

/// Entries that are kept; one takes about fifty bytes.
const MOST_ENTRIES: usize = 1 << 17;

/// All entries of all models and keys; who may read what is part of the hash.
#[derive(Default)]
pub(crate) struct PrefixCache {
    entries: FxHashMap<u128, Entry>,
}

#[derive(Clone, Copy)]
struct Entry {
    lifetime: Lifetime,
    readable: i64,
    expires: i64,
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
    /// Entries to write.
    pub(crate) writes: Vec<(u128, Lifetime)>,
}

impl PrefixCache {
    /// Looks a prompt up, and refreshes what is read. Nothing is written yet: that takes an answer that begins.
    pub(crate) fn serve(&mut self, now: Timestamp, rendered: &Rendered, look_back: u64) -> Served {
        let now = now.milliseconds();
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
            writes: chains.filter(|(chain, _)| !self.is_readable(now, *chain)).collect(),
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
            if !self.is_readable(now, spot.chain) {
                continue;
            }
            if let Some(entry) = self.entries.get_mut(&spot.chain) {
                entry.expires = entry.expires.max(now + entry.lifetime.milliseconds());
            }
            return Some((index, steps));
        }
        None
    }

    fn is_readable(&self, now: i64, chain: u128) -> bool {
        self.entries.get(&chain).is_some_and(|entry| entry.readable <= now && now < entry.expires)
    }

    /// Writes the entries of a request that started then, and whose answer begins then.
    pub(crate) fn write(&mut self, started: Timestamp, begins: Timestamp, writes: &[(u128, Lifetime)]) {
        let (started, readable) = (started.milliseconds(), begins.milliseconds());
        for &(chain, lifetime) in writes {
            let expires = started + lifetime.milliseconds();
            let entry = self.entries.entry(chain).or_insert(Entry { lifetime, readable, expires });
            if entry.expires <= started {
                *entry = Entry { lifetime, readable, expires };
            } else {
                // Two requests wrote it at the same time: what either is entitled to holds.
                entry.lifetime = entry.lifetime.max(lifetime);
                entry.readable = entry.readable.min(readable);
                entry.expires = entry.expires.max(expires);
            }
        }
        if self.entries.len() > MOST_ENTRIES {
            self.shrink(started);
        }
    }

    /// Forgets what has expired, and the half that expires first if that is not enough.
    fn shrink(&mut self, now: i64) {
        self.entries.retain(|_, entry| now < entry.expires);
        if self.entries.len() > MOST_ENTRIES / 2 {
            let mut ends: Vec<i64> = self.entries.values().map(|entry| entry.expires).collect();
            let half = ends.len() / 2;
            let (_, middle, _) = ends.select_nth_unstable(half);
            let middle = *middle;
            let mut spare = MOST_ENTRIES / 2;
            self.entries.retain(|_, entry| {
                let stays = entry.expires >= middle && spare > 0;
                spare -= usize::from(stays);
                stays
            });
        }
    }
}

#[cfg(test)]
mod tests;
