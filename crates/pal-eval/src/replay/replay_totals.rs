//! Tokens and money of several responses.

use pal_model::Usage;
use serde::Serialize;

/// Tokens and money.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ReplayTotals {
    /// Responses whose prompt was counted.
    pub responses: u64,
    /// Tokens by kind.
    pub tokens: ReplayTokens,
    /// US dollars, as far as prices are known; none if none is.
    pub cost_usd: Option<f64>,
    /// The share of the prompt tokens that came from the cache.
    pub cache_hit_ratio: f64,
    /// The largest prompt with its answer.
    pub peak_context_tokens: u64,
}

impl ReplayTotals {
    /// Adds a response.
    pub(crate) fn add(&mut self, usage: &Usage, cost: Option<f64>) {
        self.responses += 1;
        self.tokens.input = self.tokens.input.saturating_add(usage.input_tokens);
        self.tokens.cache_read = self.tokens.cache_read.saturating_add(usage.cache_read_input_tokens);
        self.tokens.cache_write = self.tokens.cache_write.saturating_add(usage.cache_creation_input_tokens);
        self.tokens.output = self.tokens.output.saturating_add(usage.output_tokens);
        self.spend(cost);
        self.cache_hit_ratio = self.tokens.hit_ratio();
        self.peak_context_tokens = self.peak_context_tokens.max(usage.context_tokens());
    }

    fn spend(&mut self, cost: Option<f64>) {
        if let Some(cost) = cost {
            *self.cost_usd.get_or_insert(0.0) += cost;
        }
    }

    /// Adds the totals of another session.
    pub fn absorb(&mut self, other: &ReplayTotals) {
        self.responses += other.responses;
        self.tokens.input += other.tokens.input;
        self.tokens.cache_read += other.tokens.cache_read;
        self.tokens.cache_write += other.tokens.cache_write;
        self.tokens.output += other.tokens.output;
        self.spend(other.cost_usd);
        self.cache_hit_ratio = self.tokens.hit_ratio();
        self.peak_context_tokens = self.peak_context_tokens.max(other.peak_context_tokens);
    }
}

/// Tokens by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReplayTokens {
    /// Prompt tokens that were neither read nor written.
    pub input: u64,
    /// Prompt tokens read from the cache.
    pub cache_read: u64,
    /// Prompt tokens written to it.
    pub cache_write: u64,
    /// Tokens of answers.
    pub output: u64,
}

impl ReplayTokens {
    /// Tokens of prompts.
    pub fn prompt(&self) -> u64 {
        self.input + self.cache_read + self.cache_write
    }

    fn hit_ratio(&self) -> f64 {
        if self.prompt() == 0 { 0.0 } else { self.cache_read as f64 / self.prompt() as f64 }
    }
}
