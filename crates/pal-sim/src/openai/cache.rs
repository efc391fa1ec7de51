//! OpenAI's prompt caches: the automatic one of older models, and the one with breakpoints of newer ones.
//!
//! Automatic: whatever two prompts begin with, in steps of 128 tokens from 1 024 tokens on, written for free.
//! Breakpoints: exact, written for a price; explicit ones behind content parts, and an implicit one at the end of the
//! prompt unless the request does without. A request writes four at most and looks for the latest eighty. That a later
//! request finds an implicit one again needs places to look at: in implicit mode these are the ends of its items.

use pal_model::Timestamp;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use super::turn::{Keep, Piece, Turn};
use crate::entries::Entries;
use crate::facts::Facts;
use crate::identity::mix;

/// Steps of the automatic cache.
const STEP_TOKENS: u64 = 128;
/// Breakpoints that one request writes.
const WRITES_MOST: usize = 4;
/// Breakpoints at which a request looks for what is remembered.
const LOOKS_MOST: usize = 80;
/// Bytes of a long block between two places at which the automatic cache can tell prompts apart.
const STRIDE_BYTES: usize = 1024;
/// Entries that are kept.
const ENTRIES_MOST: usize = 1 << 18;

/// A place in a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    /// The hash of everything up to here.
    pub(crate) chain: u128,
    /// Tokens up to here.
    pub(crate) tokens: u64,
    /// An explicit breakpoint.
    mark: Option<Keep>,
    ends_item: bool,
}

/// A prompt as the cache sees it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rendered {
    pub(crate) spots: Vec<Spot>,
    /// Tokens of the whole prompt.
    pub(crate) tokens: u64,
}

impl Rendered {
    /// Puts a block at the end.
    pub(crate) fn push(&mut self, seed: u128, piece: &Piece, facts: &Facts, tokens: u64) {
        let before = self.spots.last().map_or(seed, |spot| spot.chain);
        let start = self.tokens;
        let length = piece.raw.len();
        let strides = piece.raw.as_bytes().chunks_exact(STRIDE_BYTES);
        for (at, stride) in (1..).zip(strides.take((length / STRIDE_BYTES).saturating_sub(1))) {
            let chain = mix(self.spots.last().map_or(before, |spot| spot.chain), xxh3_128(stride));
            let share = start + tokens * at * STRIDE_BYTES as u64 / length as u64;
            self.spots.push(Spot { chain, tokens: share, mark: None, ends_item: false });
        }
        self.tokens = start + tokens;
        let role = xxh3_64(format!("{:?}", piece.place).as_bytes());
        self.spots.push(Spot {
            chain: mix(before, mix(facts.cache, u128::from(role))),
            tokens: self.tokens,
            mark: piece.mark,
            ends_item: piece.ends_item,
        });
    }
}

/// What the cache does for one prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Served {
    pub(crate) read: u64,
    /// Tokens that are written and billed, for the shorter and the longer time.
    pub(crate) written_short: u64,
    pub(crate) written_long: u64,
    pub(crate) uncached: u64,
    /// Breakpoints that counted.
    pub(crate) marks: usize,
    /// Tokens of the longest prefix that was ever written, and whether it has expired.
    pub(crate) known: u64,
    pub(crate) lapsed: bool,
    pub(crate) writes: Vec<(u128, Keep)>,
}

/// All entries of all models and keys; who may read what is part of the hash.
pub(crate) struct Cache {
    entries: Entries<Keep>,
}

impl Default for Cache {
    fn default() -> Cache {
        Cache { entries: Entries::new(ENTRIES_MOST) }
    }
}

impl Cache {
    /// Tokens of the longest prefix that was ever written, and whether it has expired.
    fn ever(&self, now: i64, rendered: &Rendered) -> (u64, bool) {
        let ever = self.entries.longest_ever(now, rendered.spots.iter().map(|spot| spot.chain));
        let tokens = |at: usize| rendered.spots.get(at).map_or(0, |spot| spot.tokens);
        ever.map_or((0, false), |(at, lapsed)| (tokens(at), lapsed))
    }

    /// Looks up a prompt for a model whose cache is automatic.
    pub(crate) fn serve_automatic(
        &mut self,
        now: Timestamp,
        rendered: &Rendered,
        turn: &Turn,
        least: u64,
    ) -> Served {
        let now = now.milliseconds();
        let (known_tokens, lapsed) = self.ever(now, rendered);
        let none = Served { uncached: rendered.tokens, known: known_tokens, lapsed, ..Served::default() };
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
        Served {
            read,
            uncached: rendered.tokens - read,
            writes: fresh.map(|spot| (spot.chain, turn.wish.keep)).collect(),
            ..none
        }
    }

    /// Looks up a prompt for a model that takes breakpoints.
    pub(crate) fn serve_breakpoints(
        &mut self,
        now: Timestamp,
        rendered: &Rendered,
        turn: &Turn,
        least: u64,
    ) -> Served {
        let now = now.milliseconds();
        let (known, lapsed) = self.ever(now, rendered);
        let explicit = |spot: &&Spot| spot.mark.is_some();
        let last = rendered.spots.last().filter(|_| turn.wish.is_implicit);
        let looks = rendered
            .spots
            .iter()
            .rev()
            .filter(|spot| spot.mark.is_some() || (turn.wish.is_implicit && spot.ends_item));
        let found = looks
            .take(LOOKS_MOST)
            .find(|spot| spot.tokens >= least && self.entries.is_readable(now, spot.chain));
        let found = found.copied();
        if let Some(spot) = found {
            self.entries.refresh(now, spot.chain);
        }
        let read = found.map_or(0, |spot| spot.tokens);
        let room = WRITES_MOST - usize::from(last.is_some());
        let mut wanted: Vec<(&Spot, Keep)> = rendered
            .spots
            .iter()
            .rev()
            .filter(explicit)
            .take(room)
            .map(|spot| (spot, spot.mark.unwrap_or(turn.wish.keep)))
            .collect();
        wanted.reverse();
        if let Some(last) = last.filter(|last| last.mark.is_none()) {
            wanted.push((last, turn.wish.keep));
        }
        wanted.retain(|(spot, _)| spot.tokens >= least);
        let mut served = Served { read, marks: wanted.len(), known, lapsed, ..Served::default() };
        let mut end = read;
        for (spot, keep) in wanted {
            if !self.entries.is_readable(now, spot.chain) {
                served.writes.push((spot.chain, keep));
            }
            let tokens = spot.tokens.saturating_sub(end);
            end = end.max(spot.tokens);
            if keep > Keep::HalfHour { served.written_long += tokens } else { served.written_short += tokens }
        }
        served.uncached = rendered.tokens - end;
        served
    }

    /// Writes the entries of a request that started then, and whose answer begins then.
    pub(crate) fn write(&mut self, started: Timestamp, begins: Timestamp, writes: &[(u128, Keep)]) {
        self.entries.write(started, begins, writes);
    }
}
