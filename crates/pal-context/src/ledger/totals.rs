//! Sums over rows: tokens by kind, money, and how much of it is not known.

use pal_model::CacheBreak;
use smol_str::SmolStr;

use super::{LedgerRow, PromptTokens};

/// Sums over rows.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Totals {
    /// Requests that were answered.
    pub requests: u64,
    /// Of these, those whose prompt was not reported.
    pub unreported: u64,
    /// Of the others, those of models without prices.
    pub unpriced: u64,
    /// Tokens of all prompts that were reported.
    pub prompt: PromptTokens,
    /// Tokens that models wrote.
    pub output: u64,
    /// Tokens billed beside these.
    pub beside: u64,
    /// What all rows with a price cost, in US dollars.
    pub cost: f64,
    /// What the cache saved of that.
    pub saved: f64,
}

/// What decisions of one kind took out of sight.
#[derive(Clone, PartialEq, Debug)]
pub struct Saving {
    /// The kind; `boundary` for compactions.
    pub kind: SmolStr,
    /// How many there were.
    pub decisions: u64,
    /// Tokens that they took out of the context, those that were brought back left out.
    pub tokens_freed: u64,
    /// Tokens that the requests since then did not carry because of that, all together.
    pub tokens_not_sent: u64,
    /// What these would have cost, in US dollars, had all of them been read from the cache: the least that was saved.
    pub cost: f64,
}

/// Falls of the reads by one cause.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct FallTotals {
    /// How many.
    pub falls: u64,
    /// By how many tokens.
    pub tokens: u64,
    /// What they cost in US dollars, as far as that is known.
    pub cost: f64,
    /// How many of them have no price.
    pub unpriced: u64,
}

impl Totals {
    /// Counts a row.
    pub(super) fn add(&mut self, row: &LedgerRow) {
        self.requests += 1;
        self.output = self.output.saturating_add(row.output);
        self.beside = self.beside.saturating_add(row.beside);
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

    /// What it cost; none if nothing of it has a price.
    pub fn known_cost(&self) -> Option<f64> {
        (self.requests > self.unreported + self.unpriced).then_some(self.cost)
    }

    /// The share of all prompt tokens that was read from the cache; none if no prompt was reported.
    pub fn share_read(&self) -> Option<f64> {
        let total = self.prompt.total();
        (total > 0).then(|| self.prompt.read as f64 / total as f64)
    }
}

impl FallTotals {
    /// Counts a fall.
    pub fn add(&mut self, fall: &CacheBreak) {
        self.falls += 1;
        self.tokens = self.tokens.saturating_add(fall.tokens);
        self.cost += fall.cost.unwrap_or(0.0);
        self.unpriced += u64::from(fall.cost.is_none());
    }

    pub(super) fn by_cause<'a>(
        falls: impl Iterator<Item = &'a CacheBreak>,
    ) -> Vec<(&'static str, FallTotals)> {
        let mut found: Vec<(&'static str, FallTotals)> = Vec::new();
        for fall in falls {
            let name = fall.cause.name();
            let at = found.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
                found.push((name, FallTotals::default()));
                found.len() - 1
            });
            found[at].1.add(fall);
        }
        found.sort_by_key(|(_, totals)| std::cmp::Reverse(totals.tokens));
        found
    }
}
