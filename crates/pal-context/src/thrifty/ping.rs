//! Whether a request that only keeps the cache warm is worth its price: a *ping*, just before what was marked is lost.
//!
//! It buys the time that marks last, counted from when it leaves. What that is worth is how likely the next request comes
//! within that time, not having come yet, times what a lost cache would cost it; less what the loss would have been good for,
//! because behind it old results are cleared for nothing. A ping that is not worth it by itself may be as the first of two,
//! and one that is must be worth twice its price.
//!
//! Bounds that hold whatever the price says: so many pings in one pause, and all pings of a session together a share of what
//! it has cost.

use std::time::Duration;

use pal_model::{Body, Caching, RequestSent, Timestamp};
use pal_view::{CacheLifetime, View};

use super::cost::Tariff;
use super::lifetime::NEEDED;
use super::{Forecast, Thrift};
use crate::Situation;
use crate::cache::LIFETIME_LATCH;

/// Pings in one pause, at most.
pub const PINGS_MOST: u64 = 2;
/// The share of what a session has cost that all of its pings may cost.
const COST_SHARE_MOST: f64 = 0.05;
/// How many times its price a ping must be worth: what is expected of pauses and of clearing is rough.
const WORTH_LEAST: f64 = 2.0;
/// How long before the cache is lost a ping leaves.
const AHEAD: Duration = Duration::from_secs(30);

/// A ping, judged.
#[derive(Clone, PartialEq, Debug)]
pub struct Ping {
    /// Whether it is to be sent.
    pub is_worth_it: bool,
    /// What it costs.
    pub price: f64,
    /// What it saves on average beyond that, with those that may follow it.
    pub saves: f64,
    /// Why, in one line.
    pub reason: String,
}

impl Ping {
    fn no(reason: impl Into<String>) -> Ping {
        Ping { is_worth_it: false, price: 0.0, saves: 0.0, reason: reason.into() }
    }
}

/// When the next ping would have to leave: shortly before the messages are lost. None where they are not kept by marks for
/// five minutes, and where there is nothing to keep.
pub fn ping_due(view: &View) -> Option<Timestamp> {
    let lifetime = lifetime(view)?;
    let lasts = Duration::from_millis(lifetime.milliseconds());
    Some(view.cache_touched_at()?.after(lasts - AHEAD))
}

/// For how long the messages are kept that the last request has marked, if that is five minutes.
fn lifetime(view: &View) -> Option<CacheLifetime> {
    let card = &view.lens().card;
    let last = last_request(view).filter(|request| request.model == card.model)?;
    let latched = || view.state().latches.get(LIFETIME_LATCH).and_then(|name| CacheLifetime::named(name));
    let lifetime = last.lifetime.as_deref().and_then(CacheLifetime::named).or_else(latched)?;
    (card.caching == Caching::Marks && lifetime != CacheLifetime::Hour1).then_some(lifetime)
}

/// The newest request of the conversation, if what it sent still stands.
fn last_request(view: &View) -> Option<&RequestSent> {
    view.last_request_at().filter(|_| view.size().freed == 0)?;
    view.branch().iter().rev().find_map(|entry| match &entry.body {
        Body::Request(request) if request.source.is_conversation() => Some(request),
        _ => None,
    })
}

/// Judges a ping that would leave now. Of what is in sight so many tokens would be cleared if the cache were lost.
pub(crate) fn judged_ping(situation: &Situation<'_>, clearable: f64) -> Ping {
    let view = situation.view;
    let Some(thrift) = situation.policy.thrift.filter(|thrift| thrift.pings) else {
        return Ping::no("pings are switched off");
    };
    let (Some(lifetime), Some(due), Some(last)) = (lifetime(view), ping_due(view), view.last_request_at())
    else {
        return Ping::no("no messages are kept by marks for five minutes");
    };
    if situation.now < due {
        return Ping::no("the cache stays warm for a while");
    }
    if situation.now >= due.after(AHEAD) {
        return Ping::no("the cache is lost already");
    }
    let pings = view.state().pings;
    if pings.in_pause >= PINGS_MOST {
        return Ping::no(format!("{PINGS_MOST} pings in one pause are enough"));
    }
    let stake = Stake::of(situation, thrift, lifetime, clearable);
    let most = COST_SHARE_MOST * (view.state().totals.cost - pings.cost);
    if pings.cost + stake.price > most {
        return Ping::no(format!(
            "with ${:.2} for this one, pings would have cost more than {:.0} % of the session",
            stake.price,
            100.0 * COST_SHARE_MOST
        ));
    }
    let idle = since(last, situation.now);
    let lost_at = since(last, due.after(AHEAD));
    let saves = stake.saves(idle, lost_at, PINGS_MOST - pings.in_pause);
    let is_worth_it = saves > (WORTH_LEAST - 1.0) * stake.price;
    let chance = stake.chance(idle, lost_at);
    let reason = format!(
        "after {} minutes the next request comes in time with {:.0} % and would then save ${:.2}: {} a ping for ${:.2}",
        idle.as_secs() / 60,
        100.0 * chance,
        stake.gain,
        if is_worth_it { "worth" } else { "not worth" },
        stake.price,
    );
    Ping { is_worth_it, price: stake.price, saves, reason }
}

fn since(from: Timestamp, until: Timestamp) -> Duration {
    Duration::from_millis(u64::try_from(until.milliseconds() - from.milliseconds()).unwrap_or(0))
}

/// What is at stake in a pause.
struct Stake {
    /// What a ping costs.
    price: f64,
    /// What a request pays less that finds the cache warm.
    gain: f64,
    /// For how long a ping keeps it so.
    lasts: Duration,
    forecast: Forecast,
}

impl Stake {
    fn of(situation: &Situation<'_>, thrift: Thrift, lifetime: CacheLifetime, clearable: f64) -> Stake {
        let view = situation.view;
        let size = situation.size as f64;
        let forecast = Forecast::of(&view.state().rhythm);
        let tariff = Tariff::of(&view.lens().card, lifetime, size);
        let cached = view.size().anchor.map_or(0.0, |anchor| anchor.usage.prompt_tokens() as f64).min(size);
        // What stands before the messages may last longer than they do.
        let lost = match lifetime {
            CacheLifetime::Hour1ThenMinutes5 => (cached - view.tokens_that_stay()).max(0.0),
            CacheLifetime::Minutes5 | CacheLifetime::Hour1 => cached,
        };
        let cleared = clearable.min(lost);
        // What is not cleared now will be behind the next pause that loses the cache.
        let until_then = 1.0 / (forecast.pause_within_an_hour() + forecast.pause_beyond_an_hour()).max(1e-6);
        let carried = forecast.requests_within(until_then);
        let again = thrift.weight() * NEEDED * cleared * (tariff.write + tariff.read * carried / 2.0);
        let cold = tariff.write * (lost - cleared) + again;
        let warm = tariff.read * (lost + cleared * carried);
        Stake {
            price: tariff.read * cached + tariff.input * (size - cached) + tariff.output,
            gain: cold - warm,
            lasts: Duration::from_millis(lifetime.milliseconds()),
            forecast,
        }
    }

    /// How likely the next request comes when only a ping that leaves now has kept the cache warm.
    fn chance(&self, idle: Duration, lost_at: Duration) -> f64 {
        let silent = |time| self.forecast.silent_beyond(time);
        (silent(lost_at) - silent(idle + self.lasts)) / silent(idle).max(f64::MIN_POSITIVE)
    }

    /// What a ping that leaves now saves beyond its price, with so many as may follow it.
    fn saves(&self, idle: Duration, lost_at: Duration, left: u64) -> f64 {
        if left == 0 {
            return 0.0;
        }
        let next = idle + self.lasts - AHEAD;
        let silent = |time| self.forecast.silent_beyond(time);
        let still_silent = silent(next) / silent(idle).max(f64::MIN_POSITIVE);
        let further = self.saves(next, idle + self.lasts, left - 1).max(0.0);
        self.chance(idle, lost_at) * self.gain - self.price + still_silent * further
    }
}
