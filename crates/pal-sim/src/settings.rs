//! What a simulator is set to.

use std::time::Duration;

use pal_model::Cards;

use crate::Faults;

/// Everything a simulator depends on besides the model that answers.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The models that exist.
    pub cards: Cards,
    /// The keys that are accepted; none for any key, or no key at all.
    pub keys: Option<Vec<String>>,
    /// Where ids and signatures come from.
    pub seed: u64,
    /// What happens to thinking that the simulator did not sign.
    pub signatures: Signatures,
    /// How long things take.
    pub pace: Pace,
    /// What goes wrong.
    pub faults: Faults,
}

impl Settings {
    /// The shipped models, any key, no time and no faults.
    pub fn plain() -> Settings {
        Settings {
            cards: Cards::shipped(),
            keys: None,
            seed: 0,
            signatures: Signatures::Refuse,
            pace: Pace::none(),
            faults: Faults::default(),
        }
    }
}

/// What happens to thinking that the simulator did not sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signatures {
    /// It is refused, as the provider does.
    Refuse,
    /// It is bound to the prefix with which it is first seen: for recorded sessions.
    Learn,
}

/// How long an answer takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Before anything else.
    pub start: Duration,
    /// For a thousand tokens of the prompt that were not cached.
    pub per_1k_uncached: Duration,
    /// For a thousand tokens of the prompt that were.
    pub per_1k_cached: Duration,
    /// For a thousand tokens of the answer.
    pub per_1k_output: Duration,
}

impl Pace {
    /// Everything at once.
    pub const fn none() -> Pace {
        Pace {
            start: Duration::ZERO,
            per_1k_uncached: Duration::ZERO,
            per_1k_cached: Duration::ZERO,
            per_1k_output: Duration::ZERO,
        }
    }

    /// About as fast as a large model.
    pub const fn real() -> Pace {
        Pace {
            start: Duration::from_millis(600),
            per_1k_uncached: Duration::from_millis(60),
            per_1k_cached: Duration::from_millis(3),
            per_1k_output: Duration::from_millis(14_000),
        }
    }

    /// Until the first byte of an answer.
    pub(crate) fn first_byte(&self, uncached: u64, cached: u64) -> Duration {
        self.start + share(self.per_1k_uncached, uncached) + share(self.per_1k_cached, cached)
    }

    /// From the first byte to the last.
    pub(crate) fn speaking(&self, output: u64) -> Duration {
        share(self.per_1k_output, output)
    }
}

fn share(per_1k: Duration, tokens: u64) -> Duration {
    per_1k.mul_f64(tokens as f64 / 1_000.0)
}
