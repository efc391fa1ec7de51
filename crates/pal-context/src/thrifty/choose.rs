//! Which act is the cheapest now, and why in one line.
//!
//! When the cache is warm, a rewrite is never urgent: the question is when to stop paying rent. What was paid for carrying
//! more than a compaction would leave is the rent; when it is well over the price of the compaction, re-reads included, the
//! acts are weighed (for steady growth the cheapest rhythm there is lies near that, and it is flat there). When the cache is cold everything is
//! written anew, so a clear is weighed at once.

use pal_model::Body;
use pal_view::CacheLifetime;

use super::cost::{Change, Stand, Tariff, Weighed, weigh};
use super::{Forecast, Thrift, fitted};
use crate::Situation;
use crate::cache::LIFETIME_LATCH;
use crate::words::grouped;

/// What is to be done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deed {
    /// Nothing.
    Nothing,
    /// Old results are cleared.
    Clear,
    /// The conversation is compacted.
    Compact,
}

/// What was chosen.
#[derive(Clone, Debug)]
pub struct Choice {
    /// What is to be done.
    pub deed: Deed,
    /// What it costs.
    pub weighed: Weighed,
    /// What going on as it is costs.
    pub nothing: Weighed,
    /// Why, in one line.
    pub reason: String,
}

/// How far one looks ahead at least and at most, in requests.
const CYCLE: (f64, f64) = (10.0, 200.0);
/// Shares of its tokens that an act must free to be worth the trouble.
const FREED_LEAST: f64 = 0.05;

/// Results that are worth clearing.
pub(crate) struct Clearable {
    /// Tokens that leave.
    pub(crate) freed: f64,
    /// Tokens of these that are expected to be needed again.
    pub(crate) needed: f64,
}

/// What is known when acts are weighed.
struct Weighing<'a> {
    stand: Stand<'a>,
    forecast: Forecast,
    weight: f64,
    /// Tokens that a compaction would leave.
    compacted: f64,
    /// What a compaction costs beyond going on as it is.
    price: f64,
    /// Requests over which a difference lasts.
    horizon: f64,
}

/// Picks the cheapest act. `clearable` is asked only when it matters.
pub(crate) fn choose(
    situation: &Situation<'_>,
    thrift: Thrift,
    clearable: impl FnOnce(&dyn Fn(f64, f64) -> bool) -> Clearable,
) -> Choice {
    let weighing = Weighing::of(situation, thrift);
    let nothing = weighing.weigh(&Change::nothing(&weighing.stand));
    let rent = weighing.rent(situation);
    let is_cold = situation.is_cold();
    let is_paid = rent >= fitted::RENT * weighing.price;
    if !is_cold && !is_paid {
        let reason = format!(
            "{} tokens: carrying them has cost {} % of what makes compacting worth it",
            grouped(situation.size),
            percent(rent, fitted::RENT * weighing.price)
        );
        return Choice { deed: Deed::Nothing, weighed: nothing, nothing, reason };
    }
    let moment = match is_cold {
        true => format!("cold after {} minutes", situation.idle().unwrap_or_default().as_secs() / 60),
        false => format!("{} tokens have cost enough to carry", grouped(situation.size)),
    };
    let mut acts = vec![(Deed::Nothing, nothing)];
    if situation.may_rewrite() {
        let found = clearable(&|tokens, needed| worth(&weighing, is_cold, tokens, needed));
        if found.freed > FREED_LEAST * weighing.stand.size {
            let change = Change::clearing(&weighing.stand, found.freed, found.needed);
            acts.push((Deed::Clear, weighing.weigh(&change)));
        }
    }
    let may_compact = situation.limits.auto_compact.is_some() && situation.blocked_by.is_none();
    if may_compact && is_paid && weighing.compacted < (1.0 - FREED_LEAST) * weighing.stand.size {
        let change = Change::compaction(&weighing.stand, weighing.compacted);
        acts.push((Deed::Compact, weighing.weigh(&change)));
    }
    let cheapest = acts.into_iter().min_by(|one, other| one.1.total().total_cmp(&other.1.total()));
    let (deed, weighed) = cheapest.unwrap_or((Deed::Nothing, nothing));
    let horizon = weighing.horizon.round();
    let reason = match deed {
        Deed::Nothing => {
            format!("{moment}, but going on as it is stays the cheapest over {horizon} requests")
        }
        Deed::Clear | Deed::Compact => format!(
            "{moment}: {} costs {} % of going on as it is over {horizon} requests (${:.2}, not ${:.2})",
            if deed == Deed::Clear { "clearing old results" } else { "compacting" },
            percent(weighed.total(), nothing.total()),
            weighed.total(),
            nothing.total(),
        ),
    };
    Choice { deed, weighed, nothing, reason }
}

/// Which results are worth clearing now, by their tokens and by how likely they are needed again.
pub(crate) fn worth_clearing(situation: &Situation<'_>, thrift: Thrift) -> impl Fn(f64, f64) -> bool {
    let weighing = Weighing::of(situation, thrift);
    let is_cold = situation.is_cold();
    move |tokens, needed| worth(&weighing, is_cold, tokens, needed)
}

/// Whether what a result costs from here on is more than what reading it again is expected to cost.
fn worth(weighing: &Weighing<'_>, is_cold: bool, tokens: f64, needed: f64) -> bool {
    let stand = &weighing.stand;
    let tariff = Tariff::of(stand.card, stand.lifetime, stand.size);
    let carry = tariff.read * weighing.horizon;
    let saved = tokens * (carry + if is_cold { tariff.write } else { 0.0 });
    let again = tokens * (tariff.write + carry / 2.0)
        + tariff.read * stand.size
        + tariff.output * fitted::CALL_TOKENS;
    saved > weighing.weight * needed * again
}

impl<'a> Weighing<'a> {
    fn of(situation: &Situation<'a>, thrift: Thrift) -> Weighing<'a> {
        let view = situation.view;
        let stand = stand(situation);
        let forecast = Forecast::of(&view.state().rhythm);
        let weight = thrift.weight();
        let compacted = compacted(situation, &stand);
        let tariff = Tariff::of(stand.card, stand.lifetime, stand.size);
        let change = Change::compaction(&stand, compacted);
        let beyond = |horizon: f64| {
            let nothing = weigh(&stand, &Change::nothing(&stand), &forecast, 0.0, weight);
            let compaction = weigh(&stand, &change, &forecast, 0.0, weight);
            let again = weight * change.needed_again * tariff.read * horizon / 2.0;
            (compaction.total() + again - nothing.total()).max(0.0)
        };
        // What grows by so much a request and costs so much to compact is cheapest when compacted in this rhythm.
        let cycle = |price: f64| {
            (2.0 * price / (tariff.read * forecast.growth).max(f64::MIN_POSITIVE))
                .sqrt()
                .clamp(CYCLE.0, CYCLE.1)
        };
        let price = beyond(cycle(beyond(0.0)));
        let horizon = forecast.requests_within(cycle(price));
        Weighing { stand, forecast, weight, compacted, price, horizon }
    }

    fn weigh(&self, change: &Change) -> Weighed {
        weigh(&self.stand, change, &self.forecast, self.horizon, self.weight)
    }

    /// What was paid since the last compaction for carrying more than it would leave.
    fn rent(&self, situation: &Situation<'_>) -> f64 {
        let rhythm = &situation.view.state().rhythm;
        let carried = rhythm.prompt_tokens as f64 - rhythm.prompts as f64 * self.compacted;
        Tariff::of(self.stand.card, self.stand.lifetime, self.stand.size).read * carried.max(0.0)
    }
}

/// How things stand before the request at hand.
fn stand<'a>(situation: &Situation<'a>) -> Stand<'a> {
    let view = situation.view;
    let latched = view.state().latches.get(LIFETIME_LATCH).and_then(|name| CacheLifetime::named(name));
    let lifetime = latched.unwrap_or_default();
    let size = situation.size as f64;
    // What opens the messages has a mark of its own only where that lasts longer than theirs.
    let prefix = match lifetime {
        CacheLifetime::Hour1ThenMinutes5 => view.tokens_that_stay(),
        CacheLifetime::Minutes5 | CacheLifetime::Hour1 => view.tokens_before_messages(),
    };
    let prefix = prefix.min(size);
    let known = view.size();
    let cached = match known.anchor {
        _ if situation.is_cold() => match lifetime {
            CacheLifetime::Hour1ThenMinutes5 if situation.idle() <= Some(HOUR) => prefix,
            _ => 0.0,
        },
        // What changed since then stands somewhere behind what stands before the messages.
        _ if known.freed > 0 => prefix,
        Some(anchor) => anchor.usage.prompt_tokens() as f64,
        None => 0.0,
    };
    Stand { card: &view.lens().card, lifetime, size, cached: cached.min(size), prefix }
}

const HOUR: std::time::Duration = std::time::Duration::from_secs(60 * 60);

/// Tokens that a compaction would leave: as many as the last one did, or as they usually do.
fn compacted(situation: &Situation<'_>, stand: &Stand<'_>) -> f64 {
    let last = match situation.view.boundary().map(|entry| &entry.body) {
        Some(Body::Boundary(boundary)) => boundary.tokens_after,
        _ => None,
    };
    let usual =
        situation.view.tokens_that_stay() + situation.budgets().of(fitted::COMPACTED_TOKENS as u64) as f64;
    last.map_or(usual, |tokens| tokens as f64).min(stand.size)
}

fn percent(part: f64, whole: f64) -> u64 {
    if whole > 0.0 { (100.0 * part / whole).round() as u64 } else { 100 }
}
