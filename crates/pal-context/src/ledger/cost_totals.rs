//! Totals over rows: tokens by kind, cost, and the numbers of unknown values.

use pal_model::{CacheBreak, UsageBasis};
use smol_str::SmolStr;

use super::{LedgerRow, PromptTokens};

/// Totals over rows.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct CostTotals {
    /// Answered requests.
    pub requests: u64,
    /// Of these, requests with an unreported prompt.
    pub unreported: u64,
    /// Of the others, requests to models without prices.
    pub unpriced: u64,
    /// Requests whose output tokens are estimated.
    pub estimated: u64,
    /// Requests that the simulator answered.
    pub simulated: u64,
    /// Reported prompt tokens.
    pub prompt: PromptTokens,
    /// Output tokens.
    pub output: u64,
    /// Tokens billed besides these.
    pub additional: u64,
    /// Cost of all rows with a price, in US dollars.
    pub cost: f64,
    /// Saving by the cache.
    pub saved: f64,
}

/// Savings of one kind of decision.
#[derive(Clone, PartialEq, Debug)]
pub struct DecisionSaving {
    /// Kind of decision; `boundary` for compactions.
    pub kind: SmolStr,
    /// Number of decisions.
    pub decisions: u64,
    /// Tokens removed from the context, without those of undone decisions.
    pub tokens_freed: u64,
    /// Tokens that later requests did not carry, summed over requests.
    pub tokens_not_sent: u64,
    /// Minimum saving in US dollars: the cost of these tokens if all had been cache reads.
    pub cost: f64,
}

/// Cache-read drops with one cause.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct DropTotals {
    /// Number of drops.
    pub drops: u64,
    /// Total tokens.
    pub tokens: u64,
    /// Known cost in US dollars.
    pub cost: f64,
    /// Number of drops without a price.
    pub unpriced: u64,
}

impl CostTotals {
    /// Adds a row.
    pub(super) fn add(&mut self, row: &LedgerRow) {
        self.requests += 1;
        self.estimated += u64::from(row.basis == UsageBasis::Estimated);
        self.simulated += u64::from(row.basis == UsageBasis::Simulated);
        self.output = self.output.saturating_add(row.output);
        self.additional = self.additional.saturating_add(row.additional);
        match row.prompt {
            None => self.unreported += 1,
            Some(prompt) => {
                self.prompt.read = self.prompt.read.saturating_add(prompt.read);
                self.prompt.written = self.prompt.written.saturating_add(prompt.written);
                self.prompt.written_1h = self.prompt.written_1h.saturating_add(prompt.written_1h);
                self.prompt.uncached = self.prompt.uncached.saturating_add(prompt.uncached);
                self.unpriced += u64::from(row.cost.is_none());
            }
        }
        self.cost += row.cost.unwrap_or(0.0);
        self.saved += row.saved.unwrap_or(0.0);
    }

    /// Cost; `None` if nothing has a price.
    pub fn known_cost(&self) -> Option<f64> {
        (self.requests > self.unreported + self.unpriced).then_some(self.cost)
    }

    /// Share of cache reads in all prompt tokens; `None` if no prompt was reported.
    pub fn share_read(&self) -> Option<f64> {
        let total = self.prompt.total();
        (total > 0).then(|| self.prompt.read as f64 / total as f64)
    }
}

impl DropTotals {
    /// Adds a drop.
    pub fn add(&mut self, fall: &CacheBreak) {
        self.drops += 1;
        self.tokens = self.tokens.saturating_add(fall.tokens);
        self.cost += fall.cost.unwrap_or(0.0);
        self.unpriced += u64::from(fall.cost.is_none());
    }

    pub(super) fn by_cause<'a>(
        falls: impl Iterator<Item = &'a CacheBreak>,
    ) -> Vec<(&'static str, DropTotals)> {
        let mut found: Vec<(&'static str, DropTotals)> = Vec::new();
        for fall in falls {
            let name = fall.cause.name();
            let at = found.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
                found.push((name, DropTotals::default()));
                found.len() - 1
            });
            found[at].1.add(fall);
        }
        found.sort_by_key(|(_, totals)| std::cmp::Reverse(totals.tokens));
        found
    }
}
