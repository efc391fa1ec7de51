//! Cache misses of sessions, found in token counts alone: cheap enough for every session, with the causes that counts,
//! times and models show. `pal breaks` looks closer at one session.

use pal_context::cache::{cache_read_drop, cache_ttl_ms};
use pal_context::price_of_break;
use pal_import::{RECORDED_CAUSES, UsageFlags, UsageRow};

use super::priced_models::{PricedModels, usage_of};

/// Cause of a drop that a compaction or another decision announced.
pub(super) const EXPECTED: &str = "expected";
const HOUR_MS: u64 = 3_600_000;

/// A request that read less from the cache than the one before.
pub(super) struct CacheMiss {
    pub(super) cause: &'static str,
    pub(super) tokens: u64,
    /// Extra cost in US dollars; `None` if no price is known.
    pub(super) cost: Option<f64>,
}

/// Compares each request of a session with the one before.
#[derive(Default)]
pub(super) struct MissDetector {
    last: Option<LastRequest>,
}

struct LastRequest {
    read: u64,
    at_ms: i64,
    model: usize,
    ttl_ms: u64,
}

impl MissDetector {
    pub(super) fn judge(
        &mut self,
        row: &UsageRow,
        model: usize,
        models: &PricedModels<'_>,
    ) -> Option<CacheMiss> {
        let is_beside = row.flags.has(UsageFlags::SUBAGENT) || row.flags.has(UsageFlags::EXTRA_PASS);
        if row.cause > 0 {
            let cause = RECORDED_CAUSES.get(usize::from(row.cause) - 1).copied().unwrap_or("other");
            return Some(self.miss(row, model, models, cause, u64::from(row.break_tokens)));
        }
        // Requests of pal itself were compared when they were sent; those of subagents have caches of their own.
        if row.flags.has(UsageFlags::OWN) || is_beside || !row.has_prompt() {
            return None;
        }
        let card = models.card(model, row.at_ms);
        let ttl_ms = if row.written_1h > 0 { HOUR_MS } else { cache_ttl_ms(card, Default::default()) };
        let now = LastRequest { read: u64::from(row.read), at_ms: row.at_ms, model, ttl_ms };
        let last = self.last.replace(now)?;
        let tokens = cache_read_drop(last.read, u64::from(row.read))?;
        let idle_ms = u64::try_from(row.at_ms.saturating_sub(last.at_ms)).unwrap_or(0);
        let cause = if row.flags.has(UsageFlags::AFTER_CHANGE) {
            EXPECTED
        } else if last.model != model {
            "model"
        } else if last.at_ms != 0 && row.at_ms != 0 && idle_ms >= last.ttl_ms {
            "expired"
        } else {
            "unseen"
        };
        Some(self.miss(row, model, models, cause, tokens))
    }

    fn miss(
        &self,
        row: &UsageRow,
        model: usize,
        models: &PricedModels<'_>,
        cause: &'static str,
        tokens: u64,
    ) -> CacheMiss {
        let cost = price_of_break(models.card(model, row.at_ms), &usage_of(row), tokens);
        CacheMiss { cause, tokens, cost }
    }
}

/// Cause in words.
pub(super) fn cause_text(cause: &str) -> &'static str {
    match cause {
        EXPECTED => "expected: a compaction or cleared results",
        "model" => "the model changed",
        "expired" => "the cache expired during a pause",
        "unseen" => "the transcript does not show the cause",
        "provider" => "no cause on this side: the provider",
        "tool" => "tool definitions changed",
        "section" => "the system prompt changed",
        "message" => "sent messages changed",
        "effort" | "thinking" => "effort or thinking changed",
        "look_back" => "too many blocks since the last cache breakpoint",
        "unmarked" => "no cache breakpoint",
        "lifetimes" => "the TTL changed",
        _ => "request parameters changed",
    }
}
