//! Prices of a model and the cache TTLs that it offers.

use pal_model::{CacheMode, ModelCard};

/// Short and long TTL of the cache in milliseconds.
pub(crate) const MINUTES_5: i64 = 5 * 60 * 1_000;
const HOUR_1: i64 = 60 * 60 * 1_000;

/// Prices of a model in US dollars a token, below any step in price.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TraceRates {
    /// Read from the cache.
    pub read: f64,
    /// Answered.
    pub output: f64,
    /// Written to the cache for a short while.
    pub write_5m: f64,
    /// The same for an hour, where one can choose.
    pub write_1h: Option<f64>,
}

impl TraceRates {
    /// The prices of a card, if it has any.
    pub fn of(card: &ModelCard) -> Option<TraceRates> {
        let prices = card.prices?;
        Some(TraceRates {
            read: prices.read / 1e6,
            output: prices.output / 1e6,
            write_5m: prices.write_5m / 1e6,
            write_1h: (card.caching == CacheMode::Explicit).then_some(prices.write_1h / 1e6),
        })
    }

    /// For how long one may have the cache keep. Where the provider decides, that it forgot is in the trace.
    pub(crate) fn lifetimes(&self) -> Vec<TtlCost> {
        match self.write_1h {
            None => vec![TtlCost { milliseconds: i64::MAX, write: self.write_5m }],
            Some(write_1h) => vec![
                TtlCost { milliseconds: MINUTES_5, write: self.write_5m },
                TtlCost { milliseconds: HOUR_1, write: write_1h },
            ],
        }
    }
}

/// TTL of the cache, and its price of writing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TtlCost {
    pub(crate) milliseconds: i64,
    pub(crate) write: f64,
}
