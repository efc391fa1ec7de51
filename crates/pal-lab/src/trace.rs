//! A session as the clairvoyant sees it: what joined the context before each call, and which content each call used.
//!
//! Sizes are those that the provider counted while everything was sent and nothing was dropped.

use pal_model::{Caching, Card};

use crate::clairvoyant::Lifetime;
use crate::measure::Seen;
use crate::touches::Touch;

/// Milliseconds for which the cache keeps what was marked for a short and for a long while.
const MINUTES_5: i64 = 5 * 60 * 1_000;
const HOUR_1: i64 = 60 * 60 * 1_000;
/// Files that a compaction puts back.
const FILES_RESTORED: usize = 5;
/// Tokens of what stands in place of a cleared result.
const PLACEHOLDER: f64 = 40.0;

/// A session, call by call.
#[derive(Clone, Debug)]
pub struct Trace {
    /// Tokens before the messages.
    pub prefix: f64,
    /// Of these, tokens that a compaction leaves in the cache.
    pub prefix_cached: f64,
    /// Tokens that a compaction puts in place of what it drops: summary and restored files.
    pub summary: f64,
    /// Tokens that the model writes for it.
    pub summary_output: f64,
    /// The window.
    pub window: f64,
    /// The calls.
    pub calls: Vec<Call>,
}

/// One call.
#[derive(Clone, Debug, Default)]
pub struct Call {
    /// Time since the call before.
    pub gap_milliseconds: i64,
    /// Whether the cache was lost although no time had passed.
    pub is_lost: bool,
    /// Tokens that other sessions keep in the cache, when ours is cold.
    pub shared_read: f64,
    /// Tokens that joined the prompt since the call before, its answer included.
    pub grown: f64,
    /// Of these, tokens that wait to be sent: results, words of the user.
    pub waiting: f64,
    /// Of these, tokens that clearing the results would free.
    pub clearable: f64,
    /// Tokens of the answer.
    pub output: f64,
    /// Earlier content that the answer uses.
    pub uses: Vec<Use>,
}

/// Content that was shown before and is used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    /// The call whose prompt showed it first, of its newest copy.
    pub shown_at: usize,
    /// The first cut behind which it is neither kept nor put back.
    pub gone_at_cut: usize,
    /// Whether it is a result that may be cleared.
    pub is_clearable: bool,
}

impl Use {
    /// Whether it is out of sight.
    pub(crate) fn is_fault(&self, cut: usize, clearing: usize) -> bool {
        cut >= self.gone_at_cut || (self.is_clearable && cut <= self.shown_at && self.shown_at < clearing)
    }
}

/// Prices of a model in US dollars a token, below any step in price.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Read from the cache.
    pub read: f64,
    /// Answered.
    pub output: f64,
    /// Written to the cache for a short while.
    pub write_5m: f64,
    /// The same for an hour, where one can choose.
    pub write_1h: Option<f64>,
}

impl Rates {
    /// The prices of a card, if it has any.
    pub fn of(card: &Card) -> Option<Rates> {
        let prices = card.prices?;
        Some(Rates {
            read: prices.read / 1e6,
            output: prices.output / 1e6,
            write_5m: prices.write_5m / 1e6,
            write_1h: (card.caching == Caching::Marks).then_some(prices.write_1h / 1e6),
        })
    }

    /// For how long one may have the cache keep. Where the provider decides, that it forgot is in the trace.
    pub(crate) fn lifetimes(&self) -> Vec<Lifetime> {
        match self.write_1h {
            None => vec![Lifetime { milliseconds: i64::MAX, write: self.write_5m }],
            Some(write_1h) => vec![
                Lifetime { milliseconds: MINUTES_5, write: self.write_5m },
                Lifetime { milliseconds: HOUR_1, write: write_1h },
            ],
        }
    }
}

/// What compactions left in replays of a session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Left {
    /// Tokens of summary and restored files.
    pub(crate) summary: f64,
    /// Tokens that the model wrote for it.
    pub(crate) output: f64,
    /// Tokens that the next call read from the cache.
    pub(crate) cached: f64,
}

impl Trace {
    /// A session of which nothing was dropped.
    pub(crate) fn new(seen: &[Seen], touches: &[Touch], rates: &Rates, window: u64, left: Left) -> Trace {
        let mut calls: Vec<Call> = Vec::with_capacity(seen.len());
        let prefix = seen.first().map_or(0.0, |first| first.prefix.min(first.prompt));
        let mut previous: Option<&Seen> = None;
        for now in seen {
            let (before, gap) = previous
                .map_or((prefix, 0), |previous| (previous.prompt, (now.started - previous.started).max(0)));
            let grown = (now.prompt - before).max(0.0);
            let waiting = now.waiting.min(grown);
            let is_cold = previous.is_some_and(|previous| now.read < 0.5 * previous.prompt);
            let keeps = if rates.write_1h.is_some() { MINUTES_5 } else { i64::MAX };
            calls.push(Call {
                gap_milliseconds: gap,
                is_lost: is_cold && gap < keeps,
                shared_read: if is_cold || previous.is_none() { now.read } else { 0.0 },
                grown,
                waiting,
                clearable: (now.clearable - PLACEHOLDER * now.results as f64).clamp(0.0, waiting),
                output: now.output,
                uses: Vec::new(),
            });
            previous = Some(now);
        }
        for touch in touches {
            if let (Some(call), Some(used)) = (calls.get_mut(touch.call), used(touch, touches)) {
                call.uses.push(used);
            }
        }
        Trace {
            prefix,
            prefix_cached: left.cached.min(prefix),
            summary: left.summary,
            summary_output: left.output,
            window: window as f64,
            calls,
        }
    }

    /// What it costs to drop nothing: how well prices and gaps are understood is told by comparing it with a replay.
    pub(crate) fn kept_usd(&self, rates: &Rates) -> Option<f64> {
        let whole = Trace { window: f64::INFINITY, ..self.clone() };
        let keeps = |lifetime: &Lifetime| {
            let mut prompt = self.prefix;
            let mut sum = 0.0;
            for (at, call) in whole.calls.iter().enumerate() {
                let is_cold = at == 0 || call.is_lost || call.gap_milliseconds >= lifetime.milliseconds;
                let read = if is_cold { call.shared_read } else { prompt };
                prompt += call.grown;
                sum += rates.read * read + lifetime.write * (prompt - read) + rates.output * call.output;
            }
            sum
        };
        rates.lifetimes().iter().map(keeps).min_by(f64::total_cmp)
    }
}

/// The use of earlier content that a touch is, if it is one.
fn used(touch: &Touch, touches: &[Touch]) -> Option<Use> {
    let newest = touch.earlier.last()?;
    // A cut puts the files back that were read last before it.
    let mut others: Vec<&str> = Vec::new();
    let mut gone_at_cut = usize::MAX;
    for other in touches.iter().filter(|other| other.is_read && other.call + 1 > newest.call) {
        if other.call + 1 > touch.call {
            break;
        }
        if other.path != touch.path && !others.contains(&other.path.as_str()) {
            others.push(&other.path);
            if others.len() == FILES_RESTORED {
                gone_at_cut = other.call + 2;
                break;
            }
        }
    }
    // What was written, not read, is not put back.
    let gone_at_cut = if newest.is_read { gone_at_cut } else { newest.call + 2 };
    Some(Use { shown_at: newest.call + 1, gone_at_cut, is_clearable: newest.is_read })
}
