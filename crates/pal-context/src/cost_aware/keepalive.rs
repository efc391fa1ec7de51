//! Cache keep-alive: decides whether a request that only keeps the cache warm, sent just before the TTL
//! expires, is worth its price.
//!
//! A keep-alive extends the cache by one TTL. Its value is the probability that the next request comes within
//! that time, times the cost of a cold cache; less the benefit of the expiry, after which old results are
//! cleared for free. A keep-alive that does not pay by itself may do so as the first of two, and it must be
//! worth twice its price.
//!
//! Hard limits: a maximum number per pause, and a maximum share of the session's cost.

use std::time::Duration;

use pal_model::Timestamp;
use pal_view::{CacheTtl, View};

use super::expected_cost::TokenRates;
use super::ttl_choice::NEEDED;
use super::{CostAwareSettings, SessionForecast};
use crate::LayerContext;
use crate::cache_ttl::cached_messages_ttl;

/// Maximum keep-alive requests in one pause.
pub const KEEPALIVES_PER_PAUSE_MAX: u64 = 2;
/// Maximum share of the session's cost that all its keep-alive requests may take.
const COST_SHARE_MAX: f64 = 0.05;
/// Minimum ratio of value to price: forecasts of pauses and clearing are rough.
const WORTH_MIN: f64 = 2.0;
/// Lead time before the cache expires.
const AHEAD: Duration = Duration::from_secs(30);

/// Verdict on a keep-alive request.
#[derive(Clone, PartialEq, Debug)]
pub struct KeepaliveVerdict {
    /// True if it should be sent.
    pub is_worth_it: bool,
    /// Its price in US dollars.
    pub price: f64,
    /// Expected saving beyond the price, including possible follow-ups.
    pub saves: f64,
    /// One-line reason.
    pub reason: String,
}

impl KeepaliveVerdict {
    fn no(reason: impl Into<String>) -> KeepaliveVerdict {
        KeepaliveVerdict { is_worth_it: false, price: 0.0, saves: 0.0, reason: reason.into() }
    }
}

/// Time of the next keep-alive: shortly before the cached messages expire. `None` if they are not kept by
/// five-minute breakpoints, or nothing is cached.
pub fn keepalive_due(view: &View) -> Option<Timestamp> {
    let ttl = keepalive_ttl(view)?;
    let lasts = Duration::from_millis(ttl.milliseconds());
    Some(view.cache_touched_at()?.after(lasts - AHEAD))
}

/// TTL of the last request's messages, if it is five minutes.
fn keepalive_ttl(view: &View) -> Option<CacheTtl> {
    cached_messages_ttl(view).filter(|ttl| *ttl != CacheTtl::Hour1)
}

/// Judges a keep-alive sent now. `clearable` is the number of tokens that would be cleared if the cache
/// expired.
pub(crate) fn evaluate_keepalive(context: &LayerContext<'_>, clearable: f64) -> KeepaliveVerdict {
    let view = context.view;
    let Some(settings) = context.policy.cost_aware.filter(|settings| settings.cache_keepalive) else {
        return KeepaliveVerdict::no("cache keep-alive is switched off");
    };
    let (Some(ttl), Some(due), Some(last)) =
        (keepalive_ttl(view), keepalive_due(view), view.last_request_at())
    else {
        return KeepaliveVerdict::no("no messages are cached with a five-minute TTL");
    };
    if context.now < due {
        return KeepaliveVerdict::no("the cache is still warm");
    }
    if context.now >= due.after(AHEAD) {
        return KeepaliveVerdict::no("the cache has already expired");
    }
    let pings = view.state().keepalive;
    if pings.in_pause >= KEEPALIVES_PER_PAUSE_MAX {
        return KeepaliveVerdict::no(format!(
            "at most {KEEPALIVES_PER_PAUSE_MAX} keep-alive requests per pause"
        ));
    }
    let stake = KeepaliveStake::of(context, settings, ttl, clearable);
    let most = COST_SHARE_MAX * (view.state().totals.cost - pings.cost);
    if pings.cost + stake.price > most {
        return KeepaliveVerdict::no(format!(
            "with ${:.2} for this one, keep-alive requests would exceed {:.0}% of the session's cost",
            stake.price,
            100.0 * COST_SHARE_MAX
        ));
    }
    let idle = since(last, context.now);
    let lost_at = since(last, due.after(AHEAD));
    let saves = stake.saves(idle, lost_at, KEEPALIVES_PER_PAUSE_MAX - pings.in_pause);
    let is_worth_it = saves > (WORTH_MIN - 1.0) * stake.price;
    let chance = stake.chance(idle, lost_at);
    let reason = format!(
        "after {} minutes the next request comes in time with {:.0}% probability and would then save ${:.2}: {} a \
         keep-alive request for ${:.2}",
        idle.as_secs() / 60,
        100.0 * chance,
        stake.gain,
        if is_worth_it { "worth" } else { "not worth" },
        stake.price,
    );
    KeepaliveVerdict { is_worth_it, price: stake.price, saves, reason }
}

pub(super) fn since(from: Timestamp, until: Timestamp) -> Duration {
    Duration::from_millis(u64::try_from(until.milliseconds() - from.milliseconds()).unwrap_or(0))
}

/// Values at stake in a pause.
struct KeepaliveStake {
    /// Price of a keep-alive.
    price: f64,
    /// Saving of a request that finds the cache warm.
    gain: f64,
    /// Extension by a keep-alive.
    lasts: Duration,
    forecast: SessionForecast,
}

impl KeepaliveStake {
    fn of(
        context: &LayerContext<'_>,
        settings: CostAwareSettings,
        ttl: CacheTtl,
        clearable: f64,
    ) -> KeepaliveStake {
        let view = context.view;
        let size = context.size as f64;
        let forecast = SessionForecast::from_activity(&view.state().activity, &settings.figures);
        let rates = TokenRates::for_prompt(&view.lens().card, ttl, size);
        let cached = view.size().anchor.map_or(0.0, |anchor| anchor.usage.prompt_tokens() as f64).min(size);
        // The prefix may have a longer TTL than the messages.
        let lost = match ttl {
            CacheTtl::Hour1ThenMinutes5 => (cached - view.fixed_tokens()).max(0.0),
            CacheTtl::Minutes5 | CacheTtl::Hour1 => cached,
        };
        let cleared = clearable.min(lost);
        // Results not cleared now will be after the next pause that expires the cache.
        let until_then = 1.0 / (forecast.pause_within_an_hour() + forecast.pause_beyond_an_hour()).max(1e-6);
        let carried = forecast.requests_within(until_then);
        let again = settings.weight() * NEEDED * cleared * (rates.write + rates.read * carried / 2.0);
        let cold = rates.write * (lost - cleared) + again;
        let warm = rates.read * (lost + cleared * carried);
        KeepaliveStake {
            price: rates.read * cached + rates.input * (size - cached) + rates.output,
            gain: cold - warm,
            lasts: Duration::from_millis(ttl.milliseconds()),
            forecast,
        }
    }

    /// Probability that the next request comes while only a keep-alive sent now has kept the cache warm.
    fn chance(&self, idle: Duration, lost_at: Duration) -> f64 {
        let silent = |time| self.forecast.silence_probability(time);
        (silent(lost_at) - silent(idle + self.lasts)) / silent(idle).max(f64::MIN_POSITIVE)
    }

    /// Expected saving of a keep-alive sent now beyond its price, with at most `left` in all.
    fn saves(&self, idle: Duration, lost_at: Duration, left: u64) -> f64 {
        if left == 0 {
            return 0.0;
        }
        let next = idle + self.lasts - AHEAD;
        let silent = |time| self.forecast.silence_probability(time);
        let still_silent = silent(next) / silent(idle).max(f64::MIN_POSITIVE);
        let further = self.saves(next, idle + self.lasts, left - 1).max(0.0);
        self.chance(idle, lost_at) * self.gain - self.price + still_silent * further
    }
}
