//! What a prompt cache remembers: hashes of prefixes, how long each lives and from when on it can be read.
//!
//! An entry lives from the start of the request that wrote or last read it, and is readable from the moment the answer
//! of its writer began. Which prefixes are written and looked for is the business of each provider's cache.

use pal_model::Timestamp;
use rustc_hash::FxHashMap;

/// Entries of one cache; `L` is how long they live.
pub(crate) struct Entries<L> {
    entries: FxHashMap<u128, Entry<L>>,
    /// Entries that are kept at most; one takes about fifty bytes.
    most: usize,
}

#[derive(Clone, Copy)]
struct Entry<L> {
    lifetime: L,
    readable: i64,
    expires: i64,
}

/// How long an entry lives.
pub(crate) trait Lives: Copy + Ord {
    /// In milliseconds.
    fn milliseconds(self) -> i64;
}

impl<L: Lives> Entries<L> {
    pub(crate) fn new(most: usize) -> Entries<L> {
        Entries { entries: FxHashMap::default(), most }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn is_readable(&self, now: i64, chain: u128) -> bool {
        self.entries.get(&chain).is_some_and(|entry| entry.readable <= now && now < entry.expires)
    }

    /// The last of these places whose prefix was ever written, and whether what was written there has expired.
    pub(crate) fn longest_ever(
        &self,
        now: i64,
        chains: impl DoubleEndedIterator<Item = u128> + ExactSizeIterator,
    ) -> Option<(usize, bool)> {
        let known = |(at, chain)| self.entries.get(&chain).map(|entry| (at, entry.expires <= now));
        chains.enumerate().rev().find_map(known)
    }

    /// An entry that is read lives on from now.
    pub(crate) fn refresh(&mut self, now: i64, chain: u128) {
        if let Some(entry) = self.entries.get_mut(&chain) {
            entry.expires = entry.expires.max(now.saturating_add(entry.lifetime.milliseconds()));
        }
    }

    /// Writes the entries of a request that started then, and whose answer begins then.
    pub(crate) fn write(&mut self, started: Timestamp, begins: Timestamp, writes: &[(u128, L)]) {
        let (started, readable) = (started.milliseconds(), begins.milliseconds());
        for &(chain, lifetime) in writes {
            let expires = started.saturating_add(lifetime.milliseconds());
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
        if self.entries.len() > self.most {
            self.shrink(started);
        }
    }

    /// Forgets what has expired, and the half that expires first if that is not enough.
    fn shrink(&mut self, now: i64) {
        self.entries.retain(|_, entry| now < entry.expires);
        if self.entries.len() > self.most / 2 {
            let mut ends: Vec<i64> = self.entries.values().map(|entry| entry.expires).collect();
            let half = ends.len() / 2;
            let (_, middle, _) = ends.select_nth_unstable(half);
            let middle = *middle;
            let mut spare = self.most / 2;
            self.entries.retain(|_, entry| {
                let stays = entry.expires >= middle && spare > 0;
                spare -= usize::from(stays);
                stays
            });
        }
    }
}
