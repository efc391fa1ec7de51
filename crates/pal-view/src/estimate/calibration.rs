//! Correction factor learnt from the usage that responses report.
//!
//! Whole numbers that a caller can log, keep per model and freeze, and that read back exactly. The factor is a
//! median, because what an estimate does not see (attachments, reminders) can double one reported growth and must
//! not move the rest.

use pal_model::TokenGeneration;
use serde::{Deserialize, Serialize};

/// Smaller estimates are mostly framing and noise.
const TOKENS_MIN: f64 = 200.0;
/// Maximum number of stored factors; the oldest is dropped first.
const RECENT_MAX: usize = 48;
/// The shipped fit counts as this many observations without any error.
const PRIOR_OBSERVATIONS: usize = 6;

/// Multiplier for raw estimates, between 0.5 and 2, in steps of 0.0001.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "u32", into = "u32")]
pub struct CorrectionFactor(u32);

impl CorrectionFactor {
    /// No correction.
    pub const ONE: CorrectionFactor = CorrectionFactor(10_000);
    /// Lower bound.
    pub const MIN: CorrectionFactor = CorrectionFactor(5_000);
    /// Upper bound.
    pub const MAX: CorrectionFactor = CorrectionFactor(20_000);

    /// Ratio of reported to estimated tokens, clamped to the bounds.
    pub fn between(estimated: f64, reported: u64) -> CorrectionFactor {
        // The cast saturates, so no quotient is too large for it.
        CorrectionFactor::from(
            (reported as f64 / estimated * f64::from(CorrectionFactor::ONE.0)).round() as u32
        )
    }

    /// The factor as a float.
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / f64::from(CorrectionFactor::ONE.0)
    }
}

/// From ten-thousandths; values out of bounds are clamped.
impl From<u32> for CorrectionFactor {
    fn from(ten_thousandths: u32) -> CorrectionFactor {
        CorrectionFactor(ten_thousandths.clamp(CorrectionFactor::MIN.0, CorrectionFactor::MAX.0))
    }
}

impl From<CorrectionFactor> for u32 {
    fn from(factor: CorrectionFactor) -> u32 {
        factor.0
    }
}

/// Observed correction factors of one model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calibration {
    /// One factor for each observation, oldest first.
    recent: Vec<CorrectionFactor>,
}

impl Calibration {
    /// Learns from one stretch of context: its raw estimate and the tokens that the provider reported for it.
    pub fn observe(&mut self, estimated: f64, reported: u64) {
        if !estimated.is_finite() || estimated < TOKENS_MIN {
            return;
        }
        let excess = (self.recent.len() + 1).saturating_sub(RECENT_MAX);
        self.recent.drain(..excess);
        self.recent.push(CorrectionFactor::between(estimated, reported));
    }

    /// Median factor, damped towards 1 while there are few observations.
    pub fn factor(&self) -> CorrectionFactor {
        let mut factors = self.recent.clone();
        factors.extend([CorrectionFactor::ONE; PRIOR_OBSERVATIONS]);
        median(factors)
    }

    /// Factor for a tokenizer: of an unknown one, the first observation says more than the shipped fit.
    pub fn factor_for(&self, generation: TokenGeneration) -> CorrectionFactor {
        match (generation, self.recent.as_slice()) {
            (TokenGeneration::Neutral, [_, ..]) => median(self.recent.clone()),
            _ => self.factor(),
        }
    }

    /// Number of stored observations.
    pub fn observation_count(&self) -> usize {
        self.recent.len()
    }
}

/// Median of at least one factor.
fn median(mut factors: Vec<CorrectionFactor>) -> CorrectionFactor {
    factors.sort_unstable();
    let middle = factors.len() / 2;
    if factors.len() % 2 == 1 {
        factors[middle]
    } else {
        CorrectionFactor((factors[middle - 1].0 + factors[middle].0) / 2)
    }
}
