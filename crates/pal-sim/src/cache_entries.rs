//! Entries of a prompt cache: prefix hashes with TTL and the time from which they are readable.
//!
//! An entry expires one TTL after the start of the request that wrote or last read it, and is readable from
//! the moment its writer's answer began. Each provider's cache decides which prefixes to write and look up.

use pal_model::Timestamp;
use rustc_hash::FxHashMap;

/// Entries of one cache; `L` is the TTL type.
pub(crate) struct CacheEntries<L> {
    entries: FxHashMap<u128, CacheEntry<L>>,
    /// Maximum number of entries; one takes about fifty bytes.
    most: usize,
}

#[derive(Clone, Copy)]
struct CacheEntry<L> {
    lifetime: L,
    readable: i64,
    expires: i64,
}

/// TTL of a cache entry.
pub(crate) trait EntryLifetime: Copy + Ord {
    /// TTL in milliseconds.
    fn milliseconds(self) -> i64;
}

impl<L: EntryLifetime> CacheEntries<L> {
    pub(crate) fn new(most: usize) -> CacheEntries<L> {
        CacheEntries { entries: FxHashMap::default(), most }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn is_readable(&self, now: i64, chain: u128) -> bool {
        self.entries.get(&chain).is_some_and(|entry| entry.readable <= now && now < entry.expires)
    }

    /// Index of the longest prefix that was ever written, and true if it has expired.
    pub(crate) fn longest_ever(
        &self,
        now: i64,
        chains: impl DoubleEndedIterator<Item = u128> + ExactSizeIterator,
    ) -> Option<(usize, bool)> {
        let known = |(at, chain)| self.entries.get(&chain).map(|entry| (at, entry.expires <= now));
        chains.enumerate().rev().find_map(known)
    }

    /// Restarts the TTL of an entry that is read.
    pub(crate) fn refresh(&mut self, now: i64, chain: u128) {
        if let Some(entry) = self.entries.get_mut(&chain) {
            entry.expires = entry.expires.max(now.saturating_add(entry.lifetime.milliseconds()));
        }
    }

    /// Writes the entries of a request that started at `started`; they are readable from `begins`, when its
    /// answer begins.
    pub(crate) fn write(&mut self, started: Timestamp, begins: Timestamp, writes: &[(u128, L)]) {
        let (started, readable) = (started.milliseconds(), begins.milliseconds());
        for &(chain, lifetime) in writes {
            let expires = started.saturating_add(lifetime.milliseconds());
            let entry = self.entries.entry(chain).or_insert(CacheEntry { lifetime, readable, expires });
            if entry.expires <= started {
                *entry = CacheEntry { lifetime, readable, expires };
            } else {
                // Two concurrent requests wrote it: the more favourable values hold.
                entry.lifetime = entry.lifetime.max(lifetime);
                entry.readable = entry.readable.min(readable);
                entry.expires = entry.expires.max(expires);
            }
        }
        if self.entries.len() > self.most {
            self.shrink(started);
        }
    }

    /// Removes expired entries, and if that is not enough, the half that expires first.
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
