//! Settings of the simulated provider.

use std::time::Duration;

use pal_model::ModelCatalog;

use crate::FaultPlan;

/// Everything the simulated provider depends on besides its model.
#[derive(Clone, Debug)]
pub struct SimSettings {
    /// Available models.
    pub cards: ModelCatalog,
    /// Accepted API keys; `None` accepts any key, or none at all.
    pub keys: Option<Vec<String>>,
    /// Seed of ids and signatures.
    pub seed: u64,
    /// Handling of thinking signed elsewhere.
    pub signatures: SignaturePolicy,
    /// Timing of replies.
    pub pace: ReplyPace,
    /// Faults to inject.
    pub faults: FaultPlan,
}

impl SimSettings {
    /// Shipped models, any key, no delays, no faults.
    pub fn plain() -> SimSettings {
        SimSettings {
            cards: ModelCatalog::built_in(),
            keys: None,
            seed: 0,
            signatures: SignaturePolicy::Refuse,
            pace: ReplyPace::none(),
            faults: FaultPlan::default(),
        }
    }
}

/// Handling of thinking that the simulator did not sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignaturePolicy {
    /// Refuse it, as the provider does.
    Refuse,
    /// Bind it to the prefix it is first seen with; for recorded sessions.
    Learn,
}

/// Timing of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyPace {
    /// Fixed delay before the first byte.
    pub start: Duration,
    /// Delay per 1,000 uncached prompt tokens.
    pub per_1k_uncached: Duration,
    /// Delay per 1,000 cached prompt tokens.
    pub per_1k_cached: Duration,
    /// Delay per 1,000 output tokens.
    pub per_1k_output: Duration,
}

impl ReplyPace {
    /// No delays.
    pub const fn none() -> ReplyPace {
        ReplyPace {
            start: Duration::ZERO,
            per_1k_uncached: Duration::ZERO,
            per_1k_cached: Duration::ZERO,
            per_1k_output: Duration::ZERO,
        }
    }

    /// Roughly the speed of a large model.
    pub const fn real() -> ReplyPace {
        ReplyPace {
            start: Duration::from_millis(600),
            per_1k_uncached: Duration::from_millis(60),
            per_1k_cached: Duration::from_millis(3),
            per_1k_output: Duration::from_millis(14_000),
        }
    }

    /// Time until the first byte of an answer.
    pub(crate) fn first_byte(&self, uncached: u64, cached: u64) -> Duration {
        self.start + share(self.per_1k_uncached, uncached) + share(self.per_1k_cached, cached)
    }

    /// Time from the first byte to the last.
    pub(crate) fn output_time(&self, output: u64) -> Duration {
        share(self.per_1k_output, output)
    }
}

fn share(per_1k: Duration, tokens: u64) -> Duration {
    per_1k.mul_f64(tokens as f64 / 1_000.0)
}
