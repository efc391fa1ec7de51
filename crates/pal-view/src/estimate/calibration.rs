//! The correction learnt from the usage that responses report.
//!
//! Whole numbers that a caller can log, keep per model and freeze, and that read back exactly. The factor is a
//! median, because what an estimate does not see (attachments, reminders) can double one reported growth and must
//! not move the rest.

use serde::{Deserialize, Serialize};

/// Stretches with a smaller estimate are mostly frames and noise.
const TOKENS_MIN: f64 = 200.0;
/// How many factors are kept; the oldest goes first.
const RECENT_MAX: usize = 48;
/// The shipped fit counts as this many observations without any error.
const PRIOR_OBSERVATIONS: usize = 6;

/// What raw estimates are multiplied with, between a half and two, in steps of a ten-thousandth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "u32", into = "u32")]
pub struct Factor(u32);

impl Factor {
    /// No correction.
    pub const ONE: Factor = Factor(10_000);
    /// The least there is.
    pub const MIN: Factor = Factor(5_000);
    /// The most there is.
    pub const MAX: Factor = Factor(20_000);

    /// The factor that leads from an estimate to what was reported, as near as the bounds allow.
    fn between(estimated: f64, reported: u64) -> Factor {
        // The cast saturates, so no quotient is too large for it.
        Factor::from((reported as f64 / estimated * f64::from(Factor::ONE.0)).round() as u32)
    }

    /// The factor as a number.
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / f64::from(Factor::ONE.0)
    }
}

/// From ten-thousandths; what is out of bounds is moved to the nearest bound.
impl From<u32> for Factor {
    fn from(ten_thousandths: u32) -> Factor {
        Factor(ten_thousandths.clamp(Factor::MIN.0, Factor::MAX.0))
    }
}

impl From<Factor> for u32 {
    fn from(factor: Factor) -> u32 {
        factor.0
    }
}

/// What was learnt about a model's tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calibration {
    /// One factor for each observation, oldest first.
    recent: Vec<Factor>,
}

impl Calibration {
    /// Learns from one stretch of context: its raw estimate and the tokens the provider reported for it.
    pub fn observe(&mut self, estimated: f64, reported: u64) {
        if !estimated.is_finite() || estimated < TOKENS_MIN {
            return;
        }
        let excess = (self.recent.len() + 1).saturating_sub(RECENT_MAX);
        self.recent.drain(..excess);
        self.recent.push(Factor::between(estimated, reported));
    }

    /// The factor that the observations agree on; one while there are few.
    pub fn factor(&self) -> Factor {
        let mut factors = self.recent.clone();
        factors.extend([Factor::ONE; PRIOR_OBSERVATIONS]);
        factors.sort_unstable();
        let middle = factors.len() / 2;
        if factors.len() % 2 == 1 {
            factors[middle]
        } else {
            Factor((factors[middle - 1].0 + factors[middle].0) / 2)
        }
    }

    /// How many observations the factor rests on.
    pub fn seen(&self) -> usize {
        self.recent.len()
    }
}
