//! Idle compaction: decides whether the conversation should be compacted in a pause, shortly before its cache
//! expires.
//!
//! While the cache is warm, the summary reads the whole prompt at the price of a cache read, and the first
//! request after the pause writes a short context instead of a long one. The alternative is the pause without
//! it: the next request writes everything again, less the old results that a cold cache lets us clear for
//! free. The value of the compaction is the probability that a next request comes at all after the expiry,
//! times the difference of both; it must be worth twice its price.

use std::time::Duration;

use pal_model::Timestamp;
use pal_model::text::group_digits;
use pal_view::{CacheTtl, View};

use super::expected_cost::{CachedContext, ContextChange, TokenRates, weigh};
use super::keepalive::since;
use super::policy_choice::{compacted, summary_tokens};
use super::ttl_choice::NEEDED;
use super::{CostAwareSettings, SessionForecast};
use crate::LayerContext;
use crate::cache_ttl::cached_messages_ttl;

/// Minimum ratio of value to price: forecasts of pauses are rough.
const WORTH_MIN: f64 = 1.5;
/// Minimum size of the context, as a multiple of what a compaction leaves.
const SHRINKS_MIN: f64 = 1.5;
/// Number of requests over which the carried context is compared.
const HORIZON: f64 = 30.0;

/// Verdict on a compaction in a pause.
#[derive(Clone, PartialEq, Debug)]
pub struct IdleCompactionVerdict {
    /// True if it should start now.
    pub is_worth_it: bool,
    /// Time when it is due; `None` if it never is in this pause.
    pub due: Option<Timestamp>,
    /// Price of the summary in US dollars.
    pub price: f64,
    /// Expected saving beyond the price.
    pub saves: f64,
    /// One-line reason.
    pub reason: String,
}

impl IdleCompactionVerdict {
    fn no(due: Option<Timestamp>, reason: impl Into<String>) -> IdleCompactionVerdict {
        IdleCompactionVerdict { is_worth_it: false, due, price: 0.0, saves: 0.0, reason: reason.into() }
    }
}

/// Time at which an idle compaction is due: shortly before the cached messages expire. `None` if breakpoints
/// do not decide how long they last, or nothing is cached.
pub fn idle_compaction_due(view: &View) -> Option<Timestamp> {
    let (due, _) = due_and_expiry(view)?;
    Some(due)
}

/// Due time of an idle compaction, and the expiry of the cached messages.
fn due_and_expiry(view: &View) -> Option<(Timestamp, Timestamp)> {
    let ttl = cached_messages_ttl(view)?;
    let touched = view.cache_touched_at()?;
    let lasts = Duration::from_millis(ttl.milliseconds());
    Some((touched.after(lasts - lead_time(ttl)), touched.after(lasts)))
}

/// Time before the expiry at which the compaction starts: its request must reach the provider in time, retries
/// included.
fn lead_time(ttl: CacheTtl) -> Duration {
    match ttl {
        CacheTtl::Hour1 => Duration::from_secs(120),
        CacheTtl::Minutes5 | CacheTtl::Hour1ThenMinutes5 => Duration::from_secs(30),
    }
}

/// Judges a compaction that starts now. `clearable` gives the number of tokens that would be cleared if the
/// cache expired; it is called only if it matters.
pub(crate) fn evaluate_idle_compaction(
    context: &LayerContext<'_>,
    clearable: impl FnOnce() -> f64,
) -> IdleCompactionVerdict {
    let view = context.view;
    if !context.policy.idle_compaction {
        return IdleCompactionVerdict::no(None, "idle compaction is switched off");
    }
    if context.limits.auto_compact.is_none() || context.policy.reactive_only {
        return IdleCompactionVerdict::no(None, "automatic compaction is switched off");
    }
    if let Some(hook) = context.blocked_by {
        return IdleCompactionVerdict::no(None, format!("the hook `{hook}` forbids compaction"));
    }
    let measured = view.size().anchor.map(|anchor| anchor.usage.prompt_tokens() as f64);
    let (Some(ttl), Some((due, expiry)), Some(last), Some(prompt)) =
        (cached_messages_ttl(view), due_and_expiry(view), view.last_request_at(), measured)
    else {
        return IdleCompactionVerdict::no(None, "no messages of the conversation are cached");
    };
    if context.now >= expiry {
        return IdleCompactionVerdict::no(None, "the cache has already expired");
    }
    let size = context.size as f64;
    let stake = CompactionStake::of(context, ttl, prompt.min(size));
    if size < SHRINKS_MIN * stake.after {
        let reason = format!(
            "{} tokens are too few: a compaction would leave about {}",
            group_digits(context.size),
            group_digits(stake.after as u64)
        );
        return IdleCompactionVerdict::no(None, reason);
    }
    if context.now < due {
        return IdleCompactionVerdict::no(Some(due), "the cache is still warm");
    }
    let gain = stake.gain(clearable());
    let chance = stake.chance_of_return(since(last, context.now), since(last, expiry));
    let saves = chance * gain - stake.price;
    let is_worth_it = saves > (WORTH_MIN - 1.0) * stake.price;
    let reason = format!(
        "the cache expires in {} seconds; the next request comes later with {:.0}% probability and would then cost \
         ${:.2} less: {} a compaction for ${:.2}",
        since(context.now, expiry).as_secs(),
        100.0 * chance,
        gain,
        if is_worth_it { "worth" } else { "not worth" },
        stake.price,
    );
    IdleCompactionVerdict { is_worth_it, due: Some(due), price: stake.price, saves, reason }
}

/// Values at stake in a pause.
struct CompactionStake<'a> {
    /// Price of the summary: the whole prompt, read from the cache, and its output.
    price: f64,
    /// Tokens that the compaction leaves.
    after: f64,
    /// Context and cache after the expiry.
    cold: CachedContext<'a>,
    forecast: SessionForecast,
    /// Multiplier for the expected price of re-reads.
    weight: f64,
}

impl<'a> CompactionStake<'a> {
    fn of(context: &LayerContext<'a>, ttl: CacheTtl, cached: f64) -> CompactionStake<'a> {
        let view = context.view;
        let settings = context.policy.cost_aware.unwrap_or(CostAwareSettings::STANDARD);
        let card = &view.lens().card;
        let size = context.size as f64;
        let rates = TokenRates::for_prompt(card, ttl, size);
        let prefix = view.fixed_tokens().min(size);
        // The prefix may have a longer TTL than the messages.
        let left = if ttl == CacheTtl::Hour1ThenMinutes5 { prefix } else { 0.0 };
        let cold = CachedContext { card, ttl, size, cached: left, prefix };
        CompactionStake {
            price: rates.read * cached + rates.input * (size - cached) + rates.output * summary_tokens(view),
            after: compacted(context, &cold),
            cold,
            forecast: SessionForecast::from_activity(&view.state().activity, &settings.figures),
            weight: settings.weight(),
        }
    }

    /// Saving of a request after the expiry, and of those that follow it, over the cheaper of leaving the
    /// context as it is and clearing `clearable` tokens of old results.
    fn gain(&self, clearable: f64) -> f64 {
        let horizon = self.forecast.requests_within(HORIZON);
        let cost =
            |change: &ContextChange| weigh(&self.cold, change, &self.forecast, horizon, self.weight).total();
        let unchanged = cost(&ContextChange::nothing(&self.cold));
        let cleared = cost(&ContextChange::clearing(&self.cold, clearable, NEEDED * clearable));
        // The summary is priced apart: it is paid whether or not a request follows.
        let compacted = cost(&ContextChange::notes_compaction(&self.cold, self.after));
        unchanged.min(cleared) - compacted
    }

    /// Probability that the next request comes, and comes after the expiry: the session may be over, and a
    /// request before the expiry cancels the compaction.
    fn chance_of_return(&self, idle: Duration, lost_at: Duration) -> f64 {
        let silent = |time| self.forecast.silence_probability(time);
        let is_over = self.forecast.end_probability();
        (silent(lost_at) - is_over).max(0.0) / silent(idle).max(f64::MIN_POSITIVE)
    }
}
