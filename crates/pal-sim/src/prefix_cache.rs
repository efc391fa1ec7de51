//! Prefix cache of the Messages dialect: entries are written at breakpoints and found by walking back from a
//! breakpoint.
//!
//! It knows only prefix hashes and time.

use pal_model::Timestamp;

use crate::cache_entries::CacheEntries;
use crate::parsed_prompt::{CacheablePrompt, MessagesCacheTtl, PromptBreakpoint};

/// Maximum number of entries.
const ENTRIES_MAX: usize = 1 << 17;

/// Entries of all models and keys; the hash includes the model and the key.
pub(crate) struct PrefixCache {
    entries: CacheEntries<MessagesCacheTtl>,
}

impl Default for PrefixCache {
    fn default() -> PrefixCache {
        PrefixCache { entries: CacheEntries::new(ENTRIES_MAX) }
    }
}

/// Result of looking up one prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CacheLookup {
    /// Tokens read from the cache.
    pub(crate) read: u64,
    /// Tokens written for five minutes.
    pub(crate) written_5m: u64,
    /// Tokens written for an hour.
    pub(crate) written_1h: u64,
    /// Tokens neither read nor written.
    pub(crate) uncached: u64,
    /// Breakpoints that counted.
    pub(crate) marks: usize,
    /// Positions from the breakpoint back to the longest entry found.
    pub(crate) steps_back: Option<u64>,
    /// Tokens of the longest prefix ever written.
    pub(crate) known: u64,
    /// True if that prefix has expired.
    pub(crate) lapsed: bool,
    /// Entries to write once the answer begins.
    pub(crate) writes: Vec<(u128, MessagesCacheTtl)>,
}

impl PrefixCache {
    /// Looks up a prompt and refreshes the entries that are read. Writes nothing: entries are written when
    /// the answer begins.
    pub(crate) fn look_up(
        &mut self,
        now: Timestamp,
        rendered: &CacheablePrompt,
        look_back: u64,
    ) -> CacheLookup {
        let now = now.milliseconds();
        // Must precede the refresh below.
        let ever = self.entries.longest_ever(now, rendered.block_ends.iter().map(|spot| spot.chain));
        let mut longest: Option<(usize, u64)> = None;
        for mark in &rendered.breakpoints {
            let Some((found, steps)) = self.walk_back(now, rendered, *mark, look_back) else { continue };
            if longest.is_none_or(|(spot, _)| found > spot) {
                longest = Some((found, steps));
            }
        }
        let tokens_at = |spot: usize| rendered.block_ends.get(spot).map_or(0, |spot| spot.tokens);
        let read = longest.map_or(0, |(spot, _)| tokens_at(spot));
        let end_of = |lifetime| {
            let last = rendered.breakpoints.iter().rev().find(|mark| mark.ttl == lifetime);
            last.map_or(0, |mark| tokens_at(mark.block_end))
        };
        let long = end_of(MessagesCacheTtl::OneHour).max(read);
        let short = end_of(MessagesCacheTtl::FiveMinutes).max(long);
        let chains = rendered
            .breakpoints
            .iter()
            .filter_map(|mark| rendered.block_ends.get(mark.block_end).map(|spot| (spot.chain, mark.ttl)));
        CacheLookup {
            read,
            written_5m: short - long,
            written_1h: long - read,
            uncached: rendered.tokens.saturating_sub(short),
            marks: rendered.breakpoints.len(),
            steps_back: longest.map(|(_, steps)| steps),
            known: ever.map_or(0, |(spot, _)| tokens_at(spot)),
            lapsed: ever.is_some_and(|(_, lapsed)| lapsed),
            writes: chains.filter(|(chain, _)| !self.entries.is_readable(now, *chain)).collect(),
        }
    }

    /// Nearest entry at or before a breakpoint, within `look_back` positions, with the distance to it.
    fn walk_back(
        &mut self,
        now: i64,
        rendered: &CacheablePrompt,
        mark: PromptBreakpoint,
        look_back: u64,
    ) -> Option<(usize, u64)> {
        let start = rendered.block_ends.get(mark.block_end)?.position;
        for (index, spot) in rendered.block_ends.get(..=mark.block_end)?.iter().enumerate().rev() {
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

    /// Writes the entries of a request that started at `started` and whose answer begins at `begins`.
    pub(crate) fn write(
        &mut self,
        started: Timestamp,
        begins: Timestamp,
        writes: &[(u128, MessagesCacheTtl)],
    ) {
        self.entries.write(started, begins, writes);
    }
}

#[cfg(test)]
mod tests;
