//! What a replay came to.

use std::collections::BTreeMap;

use pal_model::{EntryId, Usage};
use serde::Serialize;

use crate::audit::Audit;
use crate::breaks::Break;
use crate::notes::NotesTaken;

/// What a replay came to.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// What was replayed.
    pub file: String,
    /// Who decided what the model saw.
    pub policy: &'static str,
    /// The models that were asked, with the number of requests.
    pub models: BTreeMap<String, u64>,
    /// Requests that left.
    pub requests: u64,
    /// Requests that the provider refused.
    pub rejected: u64,
    /// The first refusals.
    pub rejections: Vec<Rejection>,
    /// What the provider counted.
    #[serde(flatten)]
    pub measured: Measured,
    /// The window of the model; of several, of the last.
    pub window: u64,
    /// What shortened the context, by name.
    pub layers: BTreeMap<String, Layer>,
    /// Where the view began anew.
    pub compactions: Vec<Compaction>,
    /// What notes of the session came to; none if nobody kept any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notes: Option<NotesTaken>,
    /// What was sent only to keep the cache warm; none if nothing was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pings: Option<Measured>,
    /// Where the cache was lost without a reason that was announced.
    pub breaks: Vec<Break>,
    /// What a turn took apart from the provider, in microseconds.
    pub engine_us: EngineTimes,
    /// What somebody said and nobody can find any more.
    pub lost: Vec<Lost>,
    /// The same as the recording reports it, where it does.
    pub recorded: Measured,
    /// What there is to know besides.
    pub notices: Vec<String>,
}

/// Tokens and money.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Measured {
    /// Responses whose prompt was counted.
    pub responses: u64,
    /// Tokens by kind.
    pub tokens: Tokens,
    /// US dollars, as far as prices are known; none if none is.
    pub cost_usd: Option<f64>,
    /// The share of the prompt tokens that came from the cache.
    pub cache_hit_ratio: f64,
    /// The largest prompt with its answer.
    pub peak_context_tokens: u64,
}

impl Measured {
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

    /// Adds what another session took.
    pub fn absorb(&mut self, other: &Measured) {
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
pub struct Tokens {
    /// Prompt tokens that were neither read nor written.
    pub input: u64,
    /// Prompt tokens read from the cache.
    pub cache_read: u64,
    /// Prompt tokens written to it.
    pub cache_write: u64,
    /// Tokens of answers.
    pub output: u64,
}

impl Tokens {
    /// Tokens of prompts.
    pub fn prompt(&self) -> u64 {
        self.input + self.cache_read + self.cache_write
    }

    fn hit_ratio(&self) -> f64 {
        if self.prompt() == 0 { 0.0 } else { self.cache_read as f64 / self.prompt() as f64 }
    }
}

/// What one way of shortening did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Layer {
    /// How often.
    pub times: u64,
    /// Tokens that it took out of the context.
    pub tokens_freed: u64,
}

/// A compaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Compaction {
    /// What set it off.
    pub trigger: String,
    /// How the summary came about.
    pub how: String,
    /// Tokens of the last context before it.
    pub before: u64,
    /// Tokens of the first prompt behind it; none if no request followed.
    pub after: Option<u64>,
    /// Messages that the summary stands for.
    pub messages: u64,
    /// What the summary kept.
    pub audit: Audit,
}

/// What turns took apart from the provider, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EngineTimes {
    /// Half of the turns took at most this.
    pub p50: u64,
    /// Ninety-nine of a hundred took at most this.
    pub p99: u64,
    /// The longest.
    pub max: u64,
}

impl EngineTimes {
    pub(crate) fn of(mut turns: Vec<u64>) -> EngineTimes {
        turns.sort_unstable();
        let at = |share: f64| {
            let place = (share * turns.len() as f64).ceil() as usize;
            turns.get(place.saturating_sub(1)).copied().unwrap_or(0)
        };
        EngineTimes { p50: at(0.5), p99: at(0.99), max: at(1.0) }
    }
}

/// A request that the provider refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rejection {
    /// Which request of the recording, counted from 1.
    pub request: u64,
    /// The HTTP status.
    pub status: u16,
    /// What the provider says.
    pub message: String,
}

/// Something that a person said and that cannot be found any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lost {
    /// The entry.
    pub id: EntryId,
    /// How it begins.
    pub text: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_ranked() {
        assert_eq!(EngineTimes::of(vec![]), EngineTimes::default());
        assert_eq!(EngineTimes::of(vec![7]), EngineTimes { p50: 7, p99: 7, max: 7 });
        let turns = (1..=200).rev().collect();
        assert_eq!(EngineTimes::of(turns), EngineTimes { p50: 100, p99: 198, max: 200 });
    }
}
