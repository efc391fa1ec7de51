//! Falls of the reads, judged from what a log holds: for sessions whose requests were not watched as they left.

use pal_model::{BreakCause, CacheBreak, Card, Source, Timestamp, Usage};
use smol_str::SmolStr;

use crate::cache::{self, Baseline, Expected, judge, kept_ms, reads_fell};
use crate::price::price_of_break;

const MINUTE_MS: u64 = 60_000;
/// How a compaction is called among decisions.
pub(super) const BOUNDARY: &str = "boundary";
/// The source whose requests share the conversation's cache.
const COMPACT: &str = "compact";

/// Requests that find each other's prompts in the cache.
#[derive(Default)]
pub(super) struct Lane {
    /// What the newest request read of which that is known.
    read: Option<u64>,
    /// When the newest request that was answered left.
    last_started: Option<Timestamp>,
    /// The newest request that carried the conversation.
    asked: Option<cache::Asked>,
    /// For how long what was written last is kept, where responses say so.
    reported_ms: Option<u64>,
    /// What was announced since the previous request.
    expected: Option<Expected>,
}

/// A request that was answered, as it is compared with those before.
pub(super) struct Asked<'a> {
    pub(super) source: &'a Source,
    pub(super) card: &'a Card,
    pub(super) started: Option<Timestamp>,
    /// As it would be rendered; none for requests beside the conversation.
    pub(super) asked: Option<cache::Asked>,
    /// What stands before the messages is not, or not all, in the transcript.
    pub(super) is_beginning_unseen: bool,
}

impl Lane {
    /// A decision changes what will be sent. A compaction counts more than what else was decided with it.
    pub(super) fn announce(&mut self, what: &str) {
        if what == BOUNDARY || self.expected.is_none() {
            self.expected = Some(Expected { what: SmolStr::new(what) });
        }
    }

    /// Milliseconds from the newest request that was answered to one that left at this time.
    pub(super) fn idle_ms(&self, started: Option<Timestamp>) -> Option<u64> {
        let idle = started?.milliseconds().saturating_sub(self.last_started?.milliseconds());
        Some(u64::try_from(idle).unwrap_or(0))
    }

    /// The fall that a response shows, if it shows one. The next one is compared with this one.
    pub(super) fn judge(&mut self, asked: Asked<'_>, usage: &Usage) -> Option<CacheBreak> {
        if !usage.has_prompt() {
            self.last_started = asked.started.or(self.last_started);
            return None;
        }
        let read = usage.cache_read_input_tokens;
        let fell = self.read.and_then(|before| reads_fell(before, read));
        let verdict = fell.map(|tokens| self.verdict(tokens, &asked, usage));
        self.read = Some(read);
        self.last_started = asked.started.or(self.last_started);
        self.asked = asked.asked.or(self.asked.take());
        self.reported_ms = lifetime_of(usage).or(self.reported_ms);
        self.expected = None;
        verdict
    }

    fn verdict(&self, tokens: u64, asked: &Asked<'_>, usage: &Usage) -> CacheBreak {
        let lifetime_ms = self.reported_ms.unwrap_or_else(|| kept_ms(asked.card, Default::default()));
        let started = self.last_started.or(asked.started).unwrap_or_default();
        let (Some(before), Some(now)) = (&self.asked, &asked.asked) else {
            let cause = self.cause_beside(asked, lifetime_ms);
            let cost = price_of_break(asked.card, usage, tokens);
            return CacheBreak { tokens, cause, cost, provider: None, diff: None };
        };
        let fall = cache::Fall {
            tokens,
            baseline: &Baseline { started, lifetime_ms, read: self.read.unwrap_or(0) },
            before,
            now,
            started: asked.started.unwrap_or(started),
            usage,
            expected: self.expected.as_ref(),
            has_unseen: asked.is_beginning_unseen,
            provider: None,
        };
        judge(&fall, asked.card)
    }

    /// Why reads fell with a request that is not the conversation's own.
    fn cause_beside(&self, asked: &Asked<'_>, lifetime_ms: u64) -> BreakCause {
        match (&self.expected, self.idle_ms(asked.started)) {
            (Some(expected), _) => BreakCause::Expected { what: expected.what.clone() },
            (None, Some(idle_ms)) if idle_ms >= lifetime_ms => BreakCause::Expired { idle_ms, lifetime_ms },
            // A summary may be asked for by a request of its own, which shares nothing.
            _ if asked.source.as_str() == COMPACT => BreakCause::Expected { what: COMPACT.into() },
            _ if asked.is_beginning_unseen => BreakCause::Unseen,
            _ => BreakCause::Provider,
        }
    }
}

/// For how long the tokens are kept that a response wrote, if it says so.
fn lifetime_of(usage: &Usage) -> Option<u64> {
    let written = usage.cache_creation?;
    match (written.ephemeral_1h_input_tokens, written.ephemeral_5m_input_tokens) {
        (0, 0) => None,
        (0, _) => Some(5 * MINUTE_MS),
        _ => Some(60 * MINUTE_MS),
    }
}
