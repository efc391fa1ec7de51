//! Cache-read drops inferred from a log: for sessions whose requests were not watched while sent.

use pal_model::{BreakCause, CacheBreak, ModelCard, RequestSource, Timestamp, Usage};
use smol_str::SmolStr;

use crate::break_cost::price_of_break;
use crate::cache::{self, CacheBaseline, ExpectedDrop, cache_read_drop, cache_ttl_ms, diagnose_drop};

const MINUTE_MS: u64 = 60_000;
/// Name of a compaction among decision kinds.
pub(super) const BOUNDARY: &str = "boundary";
/// Source of summary requests, which share the conversation's cache.
const COMPACT: &str = "compact";

/// Requests that share cached prompts.
#[derive(Default)]
pub(super) struct CacheLane {
    /// Cache reads of the newest request that reported them.
    read: Option<u64>,
    /// Start time of the newest answered request.
    last_started: Option<Timestamp>,
    /// Newest request of the conversation.
    asked: Option<cache::SentRequest>,
    /// TTL of the last cache write, if reported.
    reported_ms: Option<u64>,
    /// Drop expected since the previous request.
    expected: Option<ExpectedDrop>,
}

/// An answered request, for comparison with the previous ones.
pub(super) struct LaneRequest<'a> {
    pub(super) source: &'a RequestSource,
    pub(super) card: &'a ModelCard,
    pub(super) started: Option<Timestamp>,
    /// The rendered request; `None` outside the conversation.
    pub(super) asked: Option<cache::SentRequest>,
    /// True if all or part of the prefix is missing from the transcript.
    pub(super) is_beginning_unseen: bool,
}

impl CacheLane {
    /// Announces a change of the sent content. A compaction takes precedence over other decisions.
    pub(super) fn announce(&mut self, what: &str) {
        if what == BOUNDARY || self.expected.is_none() {
            self.expected = Some(ExpectedDrop { kind: SmolStr::new(what) });
        }
    }

    /// Milliseconds from the newest answered request to `started`.
    pub(super) fn idle_ms(&self, started: Option<Timestamp>) -> Option<u64> {
        let idle = started?.milliseconds().saturating_sub(self.last_started?.milliseconds());
        Some(u64::try_from(idle).unwrap_or(0))
    }

    /// Returns the drop that a response shows, if any, and makes this response the new baseline.
    pub(super) fn judge(&mut self, asked: LaneRequest<'_>, usage: &Usage) -> Option<CacheBreak> {
        if !usage.has_prompt() {
            self.last_started = asked.started.or(self.last_started);
            return None;
        }
        let read = usage.cache_read_input_tokens;
        let fell = self.read.and_then(|before| cache_read_drop(before, read));
        let verdict = fell.map(|tokens| self.verdict(tokens, &asked, usage));
        self.read = Some(read);
        self.last_started = asked.started.or(self.last_started);
        self.asked = asked.asked.or(self.asked.take());
        self.reported_ms = lifetime_of(usage).or(self.reported_ms);
        self.expected = None;
        verdict
    }

    fn verdict(&self, tokens: u64, asked: &LaneRequest<'_>, usage: &Usage) -> CacheBreak {
        let lifetime_ms = self.reported_ms.unwrap_or_else(|| cache_ttl_ms(asked.card, Default::default()));
        let started = self.last_started.or(asked.started).unwrap_or_default();
        let (Some(before), Some(now)) = (&self.asked, &asked.asked) else {
            let cause = self.cause_beside(asked, lifetime_ms);
            let cost = price_of_break(asked.card, usage, tokens);
            return CacheBreak { tokens, cause, also: Vec::new(), cost, provider: None, diff: None };
        };
        let fall = cache::CacheReadDrop {
            tokens,
            baseline: &CacheBaseline { started, ttl_ms: lifetime_ms, read: self.read.unwrap_or(0) },
            before,
            now,
            started: asked.started.unwrap_or(started),
            usage,
            expected: self.expected.as_ref(),
            has_unseen: asked.is_beginning_unseen,
            provider: None,
        };
        diagnose_drop(&fall, asked.card)
    }

    /// Cause of a drop in a request outside the conversation.
    fn cause_beside(&self, asked: &LaneRequest<'_>, lifetime_ms: u64) -> BreakCause {
        match (&self.expected, self.idle_ms(asked.started)) {
            (Some(expected), _) => BreakCause::Expected { what: expected.kind.clone() },
            (None, Some(idle_ms)) if idle_ms >= lifetime_ms => BreakCause::Expired { idle_ms, lifetime_ms },
            // A separate summary request shares nothing with the cache.
            _ if asked.source.as_str() == COMPACT => BreakCause::Expected { what: COMPACT.into() },
            _ if asked.is_beginning_unseen => BreakCause::Unseen,
            _ => BreakCause::Provider,
        }
    }
}

/// TTL of the tokens that a response wrote, if reported.
fn lifetime_of(usage: &Usage) -> Option<u64> {
    let written = usage.cache_creation?;
    match (written.ephemeral_1h_input_tokens, written.ephemeral_5m_input_tokens) {
        (0, 0) => None,
        (0, _) => Some(5 * MINUTE_MS),
        _ => Some(60 * MINUTE_MS),
    }
}
