//! What was asked and what it cost, request by request.

use std::collections::VecDeque;

use serde::Serialize;

use crate::Exchange;

/// Exchanges that are kept one by one.
const MOST_EXCHANGES: usize = 16_384;

/// The exchanges of a simulator. The totals are of all of them; the oldest ones are forgotten one by one.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    exchanges: VecDeque<Exchange>,
    totals: LedgerTotals,
}

/// Sums over all exchanges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LedgerTotals {
    /// Requests that a model answered.
    pub exchanges: u64,
    /// Prompt tokens that were neither read from nor written to the cache.
    pub uncached: u64,
    /// Prompt tokens written to the cache.
    pub written: u64,
    /// Prompt tokens read from the cache.
    pub read: u64,
    /// Tokens of answers.
    pub output: u64,
    /// US dollars, as far as prices are known.
    pub cost: f64,
}

impl Ledger {
    /// The latest exchanges, oldest first.
    pub fn exchanges(&self) -> impl DoubleEndedIterator<Item = &Exchange> {
        self.exchanges.iter()
    }

    /// The latest exchange.
    pub fn last(&self) -> Option<&Exchange> {
        self.exchanges.back()
    }

    /// The sums.
    pub fn totals(&self) -> LedgerTotals {
        self.totals
    }

    pub(crate) fn push(&mut self, exchange: Exchange) {
        let totals = &mut self.totals;
        totals.exchanges += 1;
        totals.uncached += exchange.usage.input_tokens;
        totals.written += exchange.usage.cache_creation_input_tokens;
        totals.read += exchange.usage.cache_read_input_tokens;
        totals.output += exchange.usage.output_tokens;
        totals.cost += exchange.cost.unwrap_or(0.0);
        if self.exchanges.len() >= MOST_EXCHANGES {
            self.exchanges.pop_front();
        }
        self.exchanges.push_back(exchange);
    }
}
