//! The correction learnt from the usage that responses report.
//!
//! Plain numbers that a caller can log, keep per model and freeze. One bad observation moves the factor by a bounded
//! step only, because what is not seen (attachments, reminders) can double a reported growth.

use serde::{Deserialize, Serialize};

/// Observations under this estimate are mostly frames and noise.
const TOKENS_MIN: f64 = 200.0;
/// An estimate of this size or more counts in full, a smaller one in proportion.
const TOKENS_FULL: f64 = 2_000.0;
/// The part of an error that one observation can show.
const ERROR_MAX: f64 = 0.15;
/// How slowly learning starts: the shipped fit counts as this many observations.
const PRIOR_OBSERVATIONS: f64 = 8.0;
/// The share of a full observation once many have been seen.
const RATE_MIN: f64 = 0.02;
const FACTOR_MIN: f64 = 0.6;
const FACTOR_MAX: f64 = 1.7;

/// A bounded, robust factor between estimated and reported tokens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    factor: f64,
    seen: f64,
}

impl Default for Calibration {
    fn default() -> Calibration {
        Calibration { factor: 1.0, seen: 0.0 }
    }
}

impl Calibration {
    /// Learns from one stretch of context: its raw estimate and the tokens the provider reported for it.
    pub fn observe(&mut self, estimated: f64, reported: u64) {
        if !estimated.is_finite() || estimated < TOKENS_MIN || reported == 0 {
            return;
        }
        let factor = self.factor();
        let share = (estimated / TOKENS_FULL).min(1.0);
        let error = reported as f64 / (estimated * factor) - 1.0;
        let seen = self.seen();
        let rate = (1.0 / (PRIOR_OBSERVATIONS + seen)).max(RATE_MIN);
        let step = 1.0 + share * rate * error.clamp(-ERROR_MAX, ERROR_MAX);
        self.factor = (factor * step).clamp(FACTOR_MIN, FACTOR_MAX);
        self.seen = seen + share;
    }

    /// What raw estimates are to be multiplied with; within bounds, whatever was read back.
    pub fn factor(&self) -> f64 {
        if self.factor.is_finite() { self.factor.clamp(FACTOR_MIN, FACTOR_MAX) } else { 1.0 }
    }

    /// How many full observations were learnt from.
    pub fn seen(&self) -> f64 {
        if self.seen.is_finite() { self.seen.max(0.0) } else { 0.0 }
    }
}
