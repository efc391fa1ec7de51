//! What lost content costs: the agent reads part of it again.
//!
//! Measured on recorded sessions of Claude Code: a compaction takes the context from 155 K to 54 K tokens (medians), and in
//! its next 30 calls the agent reads 31 K characters again, where it would have read 5 K. So of each token that is dropped
//! a certain share comes back. It is written to the cache like any other result, carried along for a while, and asked for
//! with a call of a tool. A drop near the end of a session costs less: what would be read behind the end is not read.

use crate::trace::Rates;

/// Characters that are read again because of a compaction, and tokens that it dropped, at some characters a token.
const READ_AGAIN: f64 = 31_000.0 - 5_000.0;
const DROPPED: f64 = (155_000.0 - 54_000.0) * CHARACTERS_A_TOKEN;
const CHARACTERS_A_TOKEN: f64 = 2.75;
/// Calls over which it is read again, and for which it is carried then.
pub(crate) const CALLS: usize = 30;
/// Tokens of a call that asks for something, for each token of what it gets: 150 for a result of 2 500.
const ASKED: f64 = 0.06;

/// What lost content costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss {
    /// The share of dropped tokens that is read again.
    pub share: f64,
}

impl Loss {
    /// As it was measured.
    pub const CALIBRATED: Loss = Loss { share: READ_AGAIN / DROPPED };
    /// Nothing is ever read again.
    pub const NONE: Loss = Loss { share: 0.0 };

    /// What a dropped token is expected to cost, in US dollars, with so many calls to come.
    pub(crate) fn of_token(&self, rates: &Rates, write: f64, calls_to_come: usize) -> f64 {
        if self.share == 0.0 {
            return 0.0;
        }
        let one = write + ASKED * rates.output;
        let again = (1..=CALLS.min(calls_to_come)).map(|at| {
            let carried = CALLS.min(calls_to_come - at) as f64;
            (one + rates.read * carried) / CALLS as f64
        });
        self.share * again.sum::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn about_a_tenth_of_what_is_dropped_comes_back_and_less_near_the_end() {
        assert!((0.08..0.11).contains(&Loss::CALIBRATED.share), "{}", Loss::CALIBRATED.share);
        let rates = Rates { read: 0.1, output: 5.0, write_5m: 1.25, write_1h: None };
        let of = |calls| Loss::CALIBRATED.of_token(&rates, 1.25, calls);
        assert_eq!((of(0), Loss::NONE.of_token(&rates, 1.25, 100)), (0.0, 0.0));
        assert!(of(1) < of(10) && of(10) < of(60) && of(60) == of(600), "{} {}", of(10), of(60));
        // Written once, carried for thirty calls, asked for.
        assert!((of(600) - Loss::CALIBRATED.share * (1.25 + 3.0 + 0.3)).abs() < 1e-9);
    }
}
