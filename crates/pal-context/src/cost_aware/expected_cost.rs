//! Expected cost of a move: now, for carrying the remaining context, and for reading removed content again.

use pal_model::{ModelCard, TokenPrices};
use pal_view::CacheTtl;

use super::{SessionForecast, fitted_figures};
use crate::break_cost;

/// Prices per token by kind, in US dollars or any single unit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TokenRates {
    /// Uncached prompt token.
    pub input: f64,
    /// Output token.
    pub output: f64,
    /// Cache write.
    pub write: f64,
    /// Cache read.
    pub read: f64,
}

/// Number of steps in which the price of future requests is evaluated.
const STRIDES: u32 = 8;

impl TokenRates {
    /// Prices of a model for a prompt of this size, in US dollars; typical proportions if the card has no
    /// prices.
    pub fn for_prompt(card: &ModelCard, ttl: CacheTtl, prompt_tokens: f64) -> TokenRates {
        const USUAL: TokenPrices =
            TokenPrices { input: 1.0, output: 5.0, write_5m: 1.25, write_1h: 2.0, read: 0.1, searches: 10.0 };
        let prices = break_cost::prices(card, prompt_tokens.max(0.0) as u64).unwrap_or(USUAL);
        let write = match ttl {
            CacheTtl::Hour1 => prices.write_1h,
            CacheTtl::Minutes5 | CacheTtl::Hour1ThenMinutes5 => prices.write_5m,
        };
        let million = |price: f64| price / 1e6;
        TokenRates {
            input: million(prices.input),
            output: million(prices.output),
            write: million(write),
            read: million(prices.read),
        }
    }
}

/// State of the context and the cache before a request.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CachedContext<'a> {
    /// Card of the model.
    pub card: &'a ModelCard,
    /// TTL of the breakpoints.
    pub ttl: CacheTtl,
    /// Tokens of the next request.
    pub size: f64,
    /// Of these, tokens in the provider's cache.
    pub cached: f64,
    /// Of these, tokens that no clear or compaction changes.
    pub prefix: f64,
}

/// Context after a move.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ContextChange {
    /// Tokens of the request after it.
    pub after: f64,
    /// Of these, unchanged tokens at the front.
    pub unchanged: f64,
    /// Output tokens of a model request for it, which reads the whole conversation; `None` if no model is
    /// asked.
    pub asks_for: Option<f64>,
    /// Tokens expected to be read again because they were removed.
    pub needed_again: f64,
}

impl ContextChange {
    /// No change.
    pub fn nothing(cached_context: &CachedContext<'_>) -> ContextChange {
        ContextChange {
            after: cached_context.size,
            unchanged: cached_context.size,
            asks_for: None,
            needed_again: 0.0,
        }
    }

    /// Clears `freed` tokens; everything behind the prefix is written again.
    pub fn clearing(cached_context: &CachedContext<'_>, freed: f64, needed_again: f64) -> ContextChange {
        let after = (cached_context.size - freed).max(cached_context.prefix);
        ContextChange { after, unchanged: cached_context.prefix, asks_for: None, needed_again }
    }

    /// Compacts the conversation to a model's summary of `summary` tokens.
    pub fn compaction(cached_context: &CachedContext<'_>, after: f64, summary: f64) -> ContextChange {
        let left = (cached_context.size - after).max(0.0);
        ContextChange {
            after,
            unchanged: cached_context.prefix,
            asks_for: Some(summary),
            needed_again: left * fitted_figures::COMPACTED_NEEDED,
        }
    }

    /// Compacts the conversation to its notes, without a model.
    pub fn notes_compaction(cached_context: &CachedContext<'_>, after: f64) -> ContextChange {
        ContextChange { asks_for: None, ..ContextChange::compaction(cached_context, after, 0.0) }
    }

    /// Folds a stretch into a model's short summary.
    pub fn fold(cached_context: &CachedContext<'_>, freed: f64, text: f64) -> ContextChange {
        let needed_again = freed * fitted_figures::COMPACTED_NEEDED;
        ContextChange {
            asks_for: Some(text),
            ..ContextChange::clearing(cached_context, freed - text, needed_again)
        }
    }
}

/// Expected cost of a move.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct ExpectedCost {
    /// Cost of the next request, and of a model request before it.
    pub now: f64,
    /// Cost of carrying the remaining context over the horizon.
    pub later: f64,
    /// Cost of reading removed content again.
    pub loss: f64,
}

impl ExpectedCost {
    /// Total cost.
    pub fn total(&self) -> f64 {
        self.now + self.later + self.loss
    }
}

/// Prices a move over `horizon` requests; `weight` multiplies the losses.
pub fn weigh(
    cached_context: &CachedContext<'_>,
    change: &ContextChange,
    forecast: &SessionForecast,
    horizon: f64,
    weight: f64,
) -> ExpectedCost {
    let rates = |size: f64| TokenRates::for_prompt(cached_context.card, cached_context.ttl, size);
    let at_hand = rates(change.after);
    let read = cached_context.cached.min(change.unchanged).min(change.after);
    let mut now = at_hand.read * read + at_hand.write * (change.after - read);
    if let Some(output) = change.asks_for {
        let asked = rates(cached_context.size);
        now += asked.read * cached_context.cached
            + asked.input * (cached_context.size - cached_context.cached)
            + asked.output * output;
    }
    // In steps, because the price may change with the size.
    let stride = horizon / f64::from(STRIDES);
    let carried = |step: u32| {
        let grown = forecast.growth * stride * (f64::from(step) + 0.5);
        let rates = rates(change.after + grown);
        // After a pause beyond the TTL everything is written again.
        let cold = forecast.pause_beyond_an_hour()
            + if cached_context.ttl == CacheTtl::Hour1 { 0.0 } else { forecast.pause_within_an_hour() };
        let each = rates.read + cold * (rates.write - rates.read);
        stride * (each * change.after + tier_surcharge(cached_context, change.after + grown) * grown)
    };
    let later = (0..STRIDES).map(carried).sum();
    let calls = change.needed_again / fitted_figures::READ_AGAIN_TOKENS;
    let loss = change.needed_again * (at_hand.write + at_hand.read * horizon / 2.0)
        + calls * (at_hand.read * change.after + at_hand.output * fitted_figures::CALL_TOKENS);
    ExpectedCost { now, later, loss: weight * loss }
}

/// Surcharge on future tokens beyond the base price tier: growth is the same for every move, but costs more
/// in a higher tier.
fn tier_surcharge(cached_context: &CachedContext<'_>, size: f64) -> f64 {
    let usual = TokenRates::for_prompt(cached_context.card, cached_context.ttl, 0.0);
    (TokenRates::for_prompt(cached_context.card, cached_context.ttl, size).read - usual.read).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::super::FittedFigures;
    use super::*;
    use pal_model::{ActivityStats, ModelCatalog};

    fn card(model: &str) -> ModelCard {
        ModelCatalog::built_in().find(model).card
    }

    fn cached_context(card: &ModelCard, size: f64, cached: f64) -> CachedContext<'_> {
        CachedContext { card, ttl: CacheTtl::Minutes5, size, cached, prefix: 30_000.0 }
    }

    /// Cost difference to no change for the next request, in cents.
    fn check(cached_context: &CachedContext<'_>, change: &ContextChange) -> i64 {
        let forecast = SessionForecast::from_activity(&ActivityStats::default(), &FittedFigures::SHIPPED);
        let now = |change: &ContextChange| weigh(cached_context, change, &forecast, 0.0, 1.0).now;
        ((now(change) - now(&ContextChange::nothing(cached_context))) * 100.0).round() as i64
    }

    #[test]
    fn a_clear_costs_when_warm_and_saves_when_cold() {
        // Per million: read 0.50, write 6.25, output 25.
        let card = card("claude-opus-5");
        let clear =
            |cached_context: &CachedContext<'_>| ContextChange::clearing(cached_context, 40_000.0, 0.0);
        // Read 30 000, write 40 000, instead of read 109 000 and write 1 000.
        let warm = cached_context(&card, 110_000.0, 109_000.0);
        assert_eq!(check(&warm, &clear(&warm)), 20);
        // 40,000 fewer to write.
        let cold = cached_context(&card, 110_000.0, 0.0);
        assert_eq!(check(&cold, &clear(&cold)), -25);
    }

    #[test]
    fn compaction_pays_off_over_later_requests() {
        let card = card("claude-opus-5");
        let cached_context = cached_context(&card, 150_000.0, 149_000.0);
        let forecast = SessionForecast::from_activity(&ActivityStats::default(), &FittedFigures::SHIPPED);
        let compact = ContextChange::compaction(&cached_context, 55_000.0, 3_000.0);
        let pays = |horizon: f64| {
            let total =
                |change: &ContextChange| weigh(&cached_context, change, &forecast, horizon, 1.0).total();
            total(&compact) < total(&ContextChange::nothing(&cached_context))
        };
        assert!(!pays(2.0) && pays(40.0));
        // Notes need no model.
        let notes = ContextChange::notes_compaction(&cached_context, 55_000.0);
        let total = |change: &ContextChange| weigh(&cached_context, change, &forecast, 10.0, 1.0).total();
        assert!(total(&notes) < total(&compact));
    }

    #[test]
    fn reuse_is_priced_by_loss_weight() {
        let card = card("claude-opus-5");
        let cached_context = cached_context(&card, 110_000.0, 0.0);
        let forecast = SessionForecast::from_activity(&ActivityStats::default(), &FittedFigures::SHIPPED);
        let clear = ContextChange::clearing(&cached_context, 40_000.0, 8_000.0);
        let loss = |weight: f64| weigh(&cached_context, &clear, &forecast, 20.0, weight).loss;
        assert_eq!(loss(0.0), 0.0);
        assert!(loss(1.0) > 0.0 && (loss(2.0) - 2.0 * loss(1.0)).abs() < 1e-12);
    }

    #[test]
    fn price_tier_ahead_increases_the_gain() {
        // Five times the price above 100,000 tokens.
        let card = card("claude-haiku-5-5");
        let without = ModelCard { price_tier: None, ..card.clone() };
        let forecast = SessionForecast::from_activity(&ActivityStats::default(), &FittedFigures::SHIPPED);
        let gain = |card: &ModelCard| {
            let cached_context = cached_context(card, 98_000.0, 97_000.0);
            let total = |change: &ContextChange| weigh(&cached_context, change, &forecast, 30.0, 1.0).total();
            total(&ContextChange::nothing(&cached_context))
                - total(&ContextChange::compaction(&cached_context, 50_000.0, 3_000.0))
        };
        assert!(gain(&card) > gain(&without) + 0.001, "{} {}", gain(&card), gain(&without));
    }
}
