//! OpenAI's prompt caches: automatic on older models, with breakpoints on newer ones.
//!
//! Automatic: any shared prefix of at least 1,024 tokens, in steps of 128, written for free. Breakpoints:
//! exact and billed; explicit ones after content parts, and an implicit one at the end of the prompt unless
//! the request disables it. A request writes at most four and looks up the latest eighty. In implicit mode it
//! also looks up the ends of its items, so that earlier implicit breakpoints are found.

use pal_model::Timestamp;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use super::openai_request::{OpenAiCacheTtl, OpenAiRequest, RequestBlock};
use crate::block_facts::BlockFacts;
use crate::block_identity::mix;
use crate::cache_entries::CacheEntries;

/// Step of the automatic cache, in tokens.
const STEP_TOKENS: u64 = 128;
/// Maximum breakpoints written per request.
const WRITES_MAX: usize = 4;
/// Maximum breakpoints looked up per request.
const LOOKS_MAX: usize = 80;
/// Distance in bytes between two points of a long block at which the automatic cache distinguishes prompts.
const STRIDE_BYTES: usize = 1024;
/// Maximum number of entries.
const ENTRIES_MAX: usize = 1 << 18;

/// A point in a prompt at which its prefix is hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PrefixPoint {
    /// Hash of the prefix up to here.
    pub(crate) chain: u128,
    /// Tokens up to here.
    pub(crate) tokens: u64,
    /// Explicit breakpoint.
    mark: Option<OpenAiCacheTtl>,
    ends_item: bool,
}

/// A request as the cache sees it.
#[derive(Clone, Debug, Default)]
pub(crate) struct RenderedRequest {
    pub(crate) spots: Vec<PrefixPoint>,
    /// Tokens of the whole prompt.
    pub(crate) tokens: u64,
}

impl RenderedRequest {
    /// Appends a block.
    pub(crate) fn push(&mut self, seed: u128, piece: &RequestBlock, facts: &BlockFacts, tokens: u64) {
        let before = self.spots.last().map_or(seed, |spot| spot.chain);
        let start = self.tokens;
        let length = piece.raw.len();
        let strides = piece.raw.as_bytes().chunks_exact(STRIDE_BYTES);
        for (at, stride) in (1..).zip(strides.take((length / STRIDE_BYTES).saturating_sub(1))) {
            let chain = mix(self.spots.last().map_or(before, |spot| spot.chain), xxh3_128(stride));
            let share = start + tokens * at * STRIDE_BYTES as u64 / length as u64;
            self.spots.push(PrefixPoint { chain, tokens: share, mark: None, ends_item: false });
        }
        self.tokens = start + tokens;
        let role = xxh3_64(format!("{:?}", piece.place).as_bytes());
        self.spots.push(PrefixPoint {
            chain: mix(before, mix(facts.cache, u128::from(role))),
            tokens: self.tokens,
            mark: piece.mark,
            ends_item: piece.ends_item,
        });
    }
}

/// Result of looking up one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OpenAiCacheLookup {
    pub(crate) read: u64,
    /// Tokens written and billed, for the shorter and the longer TTL.
    pub(crate) written_short: u64,
    pub(crate) written_long: u64,
    pub(crate) uncached: u64,
    /// Breakpoints that counted.
    pub(crate) marks: usize,
    /// Tokens of the longest prefix ever written, and true if it has expired.
    pub(crate) known: u64,
    pub(crate) lapsed: bool,
    pub(crate) writes: Vec<(u128, OpenAiCacheTtl)>,
}

/// Entries of all models and keys; the hash includes the model and the key.
pub(crate) struct OpenAiCache {
    entries: CacheEntries<OpenAiCacheTtl>,
}

impl Default for OpenAiCache {
    fn default() -> OpenAiCache {
        OpenAiCache { entries: CacheEntries::new(ENTRIES_MAX) }
    }
}

impl OpenAiCache {
    /// Tokens of the longest prefix ever written, and true if it has expired.
    fn longest_ever_written(&self, now: i64, rendered: &RenderedRequest) -> (u64, bool) {
        let ever = self.entries.longest_ever(now, rendered.spots.iter().map(|spot| spot.chain));
        let tokens = |at: usize| rendered.spots.get(at).map_or(0, |spot| spot.tokens);
        ever.map_or((0, false), |(at, lapsed)| (tokens(at), lapsed))
    }

    /// Looks up a request for a model with automatic caching.
    pub(crate) fn look_up_automatic(
        &mut self,
        now: Timestamp,
        rendered: &RenderedRequest,
        turn: &OpenAiRequest,
        least: u64,
    ) -> OpenAiCacheLookup {
        let now = now.milliseconds();
        let (known_tokens, lapsed) = self.longest_ever_written(now, rendered);
        let none = OpenAiCacheLookup {
            uncached: rendered.tokens,
            known: known_tokens,
            lapsed,
            ..OpenAiCacheLookup::default()
        };
        if rendered.tokens < least {
            return none;
        }
        let found = rendered.spots.iter().rposition(|spot| self.entries.is_readable(now, spot.chain));
        let known = found.map_or(0, |found| found + 1);
        for spot in rendered.spots.iter().take(known) {
            self.entries.refresh(now, spot.chain);
        }
        let tokens = found.and_then(|found| rendered.spots.get(found)).map_or(0, |spot| spot.tokens);
        let rounded = tokens / STEP_TOKENS * STEP_TOKENS;
        let read = if rounded >= least { rounded } else { 0 };
        let fresh = rendered.spots.iter().skip(known);
        OpenAiCacheLookup {
            read,
            uncached: rendered.tokens - read,
            writes: fresh.map(|spot| (spot.chain, turn.caching.ttl)).collect(),
            ..none
        }
    }

    /// Looks up a request for a model with breakpoints.
    pub(crate) fn look_up_breakpoints(
        &mut self,
        now: Timestamp,
        rendered: &RenderedRequest,
        turn: &OpenAiRequest,
        least: u64,
    ) -> OpenAiCacheLookup {
        let now = now.milliseconds();
        let (known, lapsed) = self.longest_ever_written(now, rendered);
        let explicit = |spot: &&PrefixPoint| spot.mark.is_some();
        let last = rendered.spots.last().filter(|_| turn.caching.is_implicit);
        let looks = rendered
            .spots
            .iter()
            .rev()
            .filter(|spot| spot.mark.is_some() || (turn.caching.is_implicit && spot.ends_item));
        let found = looks
            .take(LOOKS_MAX)
            .find(|spot| spot.tokens >= least && self.entries.is_readable(now, spot.chain));
        let found = found.copied();
        if let Some(spot) = found {
            self.entries.refresh(now, spot.chain);
        }
        let read = found.map_or(0, |spot| spot.tokens);
        let room = WRITES_MAX - usize::from(last.is_some());
        let mut wanted: Vec<(&PrefixPoint, OpenAiCacheTtl)> = rendered
            .spots
            .iter()
            .rev()
            .filter(explicit)
            .take(room)
            .map(|spot| (spot, spot.mark.unwrap_or(turn.caching.ttl)))
            .collect();
        wanted.reverse();
        if let Some(last) = last.filter(|last| last.mark.is_none()) {
            wanted.push((last, turn.caching.ttl));
        }
        wanted.retain(|(spot, _)| spot.tokens >= least);
        let mut served =
            OpenAiCacheLookup { read, marks: wanted.len(), known, lapsed, ..OpenAiCacheLookup::default() };
        let mut end = read;
        for (spot, keep) in wanted {
            if !self.entries.is_readable(now, spot.chain) {
                served.writes.push((spot.chain, keep));
            }
            let tokens = spot.tokens.saturating_sub(end);
            end = end.max(spot.tokens);
            if keep > OpenAiCacheTtl::HalfHour {
                served.written_long += tokens
            } else {
                served.written_short += tokens
            }
        }
        served.uncached = rendered.tokens - end;
        served
    }

    /// Writes the entries of a request that started at `started` and whose answer begins at `begins`.
    pub(crate) fn write(&mut self, started: Timestamp, begins: Timestamp, writes: &[(u128, OpenAiCacheTtl)]) {
        self.entries.write(started, begins, writes);
    }
}
