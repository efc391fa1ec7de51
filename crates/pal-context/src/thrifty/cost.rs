//! What acts cost: now, for as long as what they leave is carried, and for what is read again because it left.

use pal_model::{Card, Prices};
use pal_view::CacheLifetime;

use super::{Forecast, fitted};
use crate::price;

/// Prices of a token of each kind, in any one unit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Tariff {
    /// Of a prompt, neither read nor written.
    pub input: f64,
    /// Of an answer.
    pub output: f64,
    /// Written to the cache.
    pub write: f64,
    /// Read from it.
    pub read: f64,
}

/// How many requests pass, at most, until the price of a long stretch of them is looked at anew.
const STRIDES: u32 = 8;

impl Tariff {
    /// What tokens of a model cost in a prompt of this size, in US dollars. Where the card has no prices, in the usual
    /// proportions.
    pub fn of(card: &Card, lifetime: CacheLifetime, prompt_tokens: f64) -> Tariff {
        const USUAL: Prices = Prices { input: 1.0, output: 5.0, write_5m: 1.25, write_1h: 2.0, read: 0.1 };
        let prices = price::prices(card, prompt_tokens.max(0.0) as u64).unwrap_or(USUAL);
        let write = match lifetime {
            CacheLifetime::Hour1 => prices.write_1h,
            CacheLifetime::Minutes5 | CacheLifetime::Hour1ThenMinutes5 => prices.write_5m,
        };
        let million = |price: f64| price / 1e6;
        Tariff {
            input: million(prices.input),
            output: million(prices.output),
            write: million(write),
            read: million(prices.read),
        }
    }
}

/// How things stand before a request.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Stand<'a> {
    /// The card of the model.
    pub card: &'a Card,
    /// How long what is marked lasts.
    pub lifetime: CacheLifetime,
    /// Tokens of the request that is about to leave.
    pub size: f64,
    /// Of these, what the provider has in its cache.
    pub cached: f64,
    /// Of these, what stays as it is and in the cache whatever is cleared or compacted.
    pub prefix: f64,
}

/// What an act makes of the context.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Change {
    /// Tokens of the request after it.
    pub after: f64,
    /// Of these, how many at the front are as they were sent before.
    pub unchanged: f64,
    /// Tokens that a model writes for it; none if no model is asked. It reads the whole conversation.
    pub asks_for: Option<f64>,
    /// Tokens that are expected to be read again because they left.
    pub needed_again: f64,
}

impl Change {
    /// No change at all.
    pub fn nothing(stand: &Stand<'_>) -> Change {
        Change { after: stand.size, unchanged: stand.size, asks_for: None, needed_again: 0.0 }
    }

    /// So many tokens leave, everything behind what stands before the messages is written anew.
    pub fn clearing(stand: &Stand<'_>, freed: f64, needed_again: f64) -> Change {
        let after = (stand.size - freed).max(stand.prefix);
        Change { after, unchanged: stand.prefix, asks_for: None, needed_again }
    }

    /// The conversation becomes a summary that a model writes.
    pub fn compaction(stand: &Stand<'_>, after: f64) -> Change {
        let left = (stand.size - after).max(0.0);
        Change {
            after,
            unchanged: stand.prefix,
            asks_for: Some(fitted::SUMMARY_TOKENS),
            needed_again: left * fitted::COMPACTED_NEEDED,
        }
    }

    /// The conversation becomes its notes; nobody is asked.
    pub fn notes_compaction(stand: &Stand<'_>, after: f64) -> Change {
        Change { asks_for: None, ..Change::compaction(stand, after) }
    }

    /// A stretch becomes a short summary that a model writes.
    pub fn fold(stand: &Stand<'_>, freed: f64, text: f64) -> Change {
        let needed_again = freed * fitted::COMPACTED_NEEDED;
        Change { asks_for: Some(text), ..Change::clearing(stand, freed - text, needed_again) }
    }
}

/// What an act costs.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Weighed {
    /// For the request at hand, and for asking a model before it.
    pub now: f64,
    /// For carrying what is left as long as it makes a difference.
    pub later: f64,
    /// For what is read again.
    pub loss: f64,
}

impl Weighed {
    /// All of it.
    pub fn total(&self) -> f64 {
        self.now + self.later + self.loss
    }
}

/// Prices an act: over so many requests to come, with losses as heavy as `weight` says.
pub fn weigh(stand: &Stand<'_>, change: &Change, forecast: &Forecast, horizon: f64, weight: f64) -> Weighed {
    let tariff = |size: f64| Tariff::of(stand.card, stand.lifetime, size);
    let at_hand = tariff(change.after);
    let read = stand.cached.min(change.unchanged).min(change.after);
    let mut now = at_hand.read * read + at_hand.write * (change.after - read);
    if let Some(output) = change.asks_for {
        let asked = tariff(stand.size);
        now += asked.read * stand.cached + asked.input * (stand.size - stand.cached) + asked.output * output;
    }
    // Step by step, because a price may change on the way.
    let stride = horizon / f64::from(STRIDES);
    let carried = |step: u32| {
        let grown = forecast.growth * stride * (f64::from(step) + 0.5);
        let tariff = tariff(change.after + grown);
        // A pause over the lifetime of the cache has all of it written anew.
        let cold = forecast.pause_beyond_an_hour()
            + if stand.lifetime == CacheLifetime::Hour1 { 0.0 } else { forecast.pause_within_an_hour() };
        let each = tariff.read + cold * (tariff.write - tariff.read);
        stride * (each * change.after + tariff_step(stand, change.after + grown) * grown)
    };
    let later = (0..STRIDES).map(carried).sum();
    let calls = change.needed_again / fitted::READ_AGAIN_TOKENS;
    let loss = change.needed_again * (at_hand.write + at_hand.read * horizon / 2.0)
        + calls * (at_hand.read * change.after + at_hand.output * fitted::CALL_TOKENS);
    Weighed { now, later, loss: weight * loss }
}

/// What a token that is still to come is read for beyond the lower price: growth is the same whatever is done, but behind a
/// step in price it costs more.
fn tariff_step(stand: &Stand<'_>, size: f64) -> f64 {
    let usual = Tariff::of(stand.card, stand.lifetime, 0.0);
    (Tariff::of(stand.card, stand.lifetime, size).read - usual.read).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pal_model::{Cards, Rhythm};

    fn card(model: &str) -> Card {
        Cards::shipped().find(model).card
    }

    fn stand(card: &Card, size: f64, cached: f64) -> Stand<'_> {
        Stand { card, lifetime: CacheLifetime::Minutes5, size, cached, prefix: 30_000.0 }
    }

    /// Clear and compaction against nothing, in cents, for the request at hand.
    fn check(stand: &Stand<'_>, change: &Change) -> i64 {
        let forecast = Forecast::of(&Rhythm::default());
        let now = |change: &Change| weigh(stand, change, &forecast, 0.0, 1.0).now;
        ((now(change) - now(&Change::nothing(stand))) * 100.0).round() as i64
    }

    #[test]
    fn a_clear_costs_when_warm_and_saves_when_cold() {
        // Per million: read 0.50, write 6.25, output 25.
        let card = card("claude-opus-5");
        let clear = |stand: &Stand<'_>| Change::clearing(stand, 40_000.0, 0.0);
        // Read 30 000, write 40 000, instead of read 109 000 and write 1 000.
        let warm = stand(&card, 110_000.0, 109_000.0);
        assert_eq!(check(&warm, &clear(&warm)), 20);
        // 40 000 fewer to write.
        let cold = stand(&card, 110_000.0, 0.0);
        assert_eq!(check(&cold, &clear(&cold)), -25);
    }

    #[test]
    fn a_compaction_is_paid_for_by_what_it_need_not_carry() {
        let card = card("claude-opus-5");
        let stand = stand(&card, 150_000.0, 149_000.0);
        let forecast = Forecast::of(&Rhythm::default());
        let compact = Change::compaction(&stand, 55_000.0);
        let pays = |horizon: f64| {
            let total = |change: &Change| weigh(&stand, change, &forecast, horizon, 1.0).total();
            total(&compact) < total(&Change::nothing(&stand))
        };
        assert!(!pays(2.0) && pays(40.0));
        // Notes ask nobody.
        let notes = Change::notes_compaction(&stand, 55_000.0);
        let total = |change: &Change| weigh(&stand, change, &forecast, 10.0, 1.0).total();
        assert!(total(&notes) < total(&compact));
    }

    #[test]
    fn what_is_needed_again_is_priced_by_fidelity() {
        let card = card("claude-opus-5");
        let stand = stand(&card, 110_000.0, 0.0);
        let forecast = Forecast::of(&Rhythm::default());
        let clear = Change::clearing(&stand, 40_000.0, 8_000.0);
        let loss = |weight: f64| weigh(&stand, &clear, &forecast, 20.0, weight).loss;
        assert_eq!(loss(0.0), 0.0);
        assert!(loss(1.0) > 0.0 && (loss(2.0) - 2.0 * loss(1.0)).abs() < 1e-12);
    }

    #[test]
    fn a_step_in_price_ahead_makes_shrinking_worth_more() {
        // Five times as dear behind 100 000 tokens.
        let card = card("claude-haiku-5-5");
        let without = Card { cliff: None, ..card.clone() };
        let forecast = Forecast::of(&Rhythm::default());
        let gain = |card: &Card| {
            let stand = stand(card, 98_000.0, 97_000.0);
            let total = |change: &Change| weigh(&stand, change, &forecast, 30.0, 1.0).total();
            total(&Change::nothing(&stand)) - total(&Change::compaction(&stand, 50_000.0))
        };
        assert!(gain(&card) > gain(&without) + 0.001, "{} {}", gain(&card), gain(&without));
    }
}
