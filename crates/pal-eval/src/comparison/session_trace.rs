//! Input of the offline optimum: the content added before each call of a session, and the content each call used.
//!
//! Sizes are the provider's counts from a replay in which nothing was dropped.

use crate::comparison::file_touches::RecordedFileTouch;
use crate::comparison::session_observation::{CompactionResidue, SessionObservation};
use crate::comparison::trace_rates::{MINUTES_5, TraceRates, TtlCost};

/// Files that a compaction puts back.
const FILES_RESTORED: usize = 5;
/// Tokens of the placeholder for a cleared result.
const PLACEHOLDER: f64 = 40.0;

/// A session, call by call.
#[derive(Clone, Debug)]
pub struct SessionTrace {
    /// Tokens before the messages.
    pub prefix: f64,
    /// Of these, tokens that a compaction leaves in the cache.
    pub prefix_cached: f64,
    /// Tokens that a compaction adds for what it drops: summary and restored files.
    pub summary: f64,
    /// Tokens that the model writes for it.
    pub summary_output: f64,
    /// The window.
    pub window: f64,
    /// The calls.
    pub calls: Vec<TraceCall>,
}

/// One call.
#[derive(Clone, Debug, Default)]
pub struct TraceCall {
    /// Time since the call before.
    pub gap_milliseconds: i64,
    /// True if the cache was lost although no time had passed.
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
    pub uses: Vec<ContentUse>,
}

/// Content that was shown before and is used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentUse {
    /// The call whose prompt showed it first, of its newest copy.
    pub shown_at: usize,
    /// First cut after which it is neither kept nor restored.
    pub gone_at_cut: usize,
    /// True if it is a result that may be cleared.
    pub is_clearable: bool,
}

impl ContentUse {
    /// True if it is out of sight.
    pub(crate) fn is_fault(&self, cut: usize, clearing: usize) -> bool {
        cut >= self.gone_at_cut || (self.is_clearable && cut <= self.shown_at && self.shown_at < clearing)
    }
}

impl SessionTrace {
    /// A session of which nothing was dropped.
    pub(crate) fn new(
        seen: &[SessionObservation],
        touches: &[RecordedFileTouch],
        rates: &TraceRates,
        window: u64,
        left: CompactionResidue,
    ) -> SessionTrace {
        let mut calls: Vec<TraceCall> = Vec::with_capacity(seen.len());
        let prefix = seen.first().map_or(0.0, |first| first.prefix.min(first.prompt));
        let mut previous: Option<&SessionObservation> = None;
        for now in seen {
            let (before, gap) = previous
                .map_or((prefix, 0), |previous| (previous.prompt, (now.started - previous.started).max(0)));
            let grown = (now.prompt - before).max(0.0);
            let waiting = now.waiting.min(grown);
            let is_cold = previous.is_some_and(|previous| now.read < 0.5 * previous.prompt);
            let keeps = if rates.write_1h.is_some() { MINUTES_5 } else { i64::MAX };
            calls.push(TraceCall {
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
        SessionTrace {
            prefix,
            prefix_cached: left.cached.min(prefix),
            summary: left.summary,
            summary_output: left.output,
            window: window as f64,
            calls,
        }
    }

    /// Cost of dropping nothing; compared with a replay it shows how well prices and gaps are modelled.
    pub(crate) fn kept_usd(&self, rates: &TraceRates) -> Option<f64> {
        let whole = SessionTrace { window: f64::INFINITY, ..self.clone() };
        let keeps = |lifetime: &TtlCost| {
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
fn used(touch: &RecordedFileTouch, touches: &[RecordedFileTouch]) -> Option<ContentUse> {
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
    // Written content is not restored, only read content.
    let gone_at_cut = if newest.is_read { gone_at_cut } else { newest.call + 2 };
    Some(ContentUse { shown_at: newest.call + 1, gone_at_cut, is_clearable: newest.is_read })
}
