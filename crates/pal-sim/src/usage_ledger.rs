//! Requests answered so far and their cost.

use std::collections::VecDeque;

use serde::Serialize;

use crate::ModelExchange;

/// Maximum number of exchanges kept individually.
const EXCHANGES_MAX: usize = 16_384;

/// Exchanges of a simulated provider. Totals cover all of them; the oldest individual records are dropped.
#[derive(Clone, Debug, Default)]
pub struct UsageLedger {
    exchanges: VecDeque<ModelExchange>,
    totals: LedgerTotals,
}

/// Totals over all exchanges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LedgerTotals {
    /// Requests that a model answered.
    pub exchanges: u64,
    /// Prompt tokens neither read from nor written to the cache.
    pub uncached: u64,
    /// Prompt tokens written to the cache.
    pub written: u64,
    /// Prompt tokens read from the cache.
    pub read: u64,
    /// Output tokens.
    pub output: u64,
    /// Cost in US dollars; models without prices count as 0.
    pub cost: f64,
}

impl UsageLedger {
    /// The latest exchanges, oldest first.
    pub fn exchanges(&self) -> impl DoubleEndedIterator<Item = &ModelExchange> {
        self.exchanges.iter()
    }

    /// The latest exchange.
    pub fn last(&self) -> Option<&ModelExchange> {
        self.exchanges.back()
    }

    /// Totals over all exchanges.
    pub fn totals(&self) -> LedgerTotals {
        self.totals
    }

    pub(crate) fn push(&mut self, exchange: ModelExchange) {
        let totals = &mut self.totals;
        totals.exchanges += 1;
        totals.uncached += exchange.usage.input_tokens;
        totals.written += exchange.usage.cache_creation_input_tokens;
        totals.read += exchange.usage.cache_read_input_tokens;
        totals.output += exchange.usage.output_tokens;
        totals.cost += exchange.cost.unwrap_or(0.0);
        if self.exchanges.len() >= EXCHANGES_MAX {
            self.exchanges.pop_front();
        }
        self.exchanges.push_back(exchange);
    }
}
