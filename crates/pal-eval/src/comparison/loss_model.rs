//! Cost of lost content: the agent reads part of it again.
//!
//! Measured on recorded sessions of Claude Code: a compaction takes the context from 155 K to 54 K tokens (medians), and in the next 30
//! calls the agent reads 31 K characters again, compared with 5 K otherwise. The share that is read again depends on age: of the
//! characters of files that an agent has read, 56 % are used within 30 calls (the file is read again or edited) right after they were
//! shown, 35 % after 8 calls, 18 % after 32, 14 % after 64. The model is the curve through these figures, scaled so that a compaction of
//! 100 calls gives the first one. Content read again costs a tool call, a cache write, and cache reads for a while. A drop near the end of
//! a session costs less, because reads after the end do not happen.

use crate::comparison::trace_rates::TraceRates;

/// Characters that are read again because of a compaction, and characters that it dropped.
const READ_AGAIN: f64 = 31_000.0 - 5_000.0;
const DROPPED: f64 = (155_000.0 - 54_000.0) * CHARACTERS_A_TOKEN;
const CHARACTERS_A_TOKEN: f64 = 2.75;
/// Calls that such a compaction replaces.
const COMPACTED: usize = 100;
/// Calls after which content is wanted half as much.
const HALF: f64 = 14.0;
/// Calls over which it is read again, and for which it is carried then.
pub(crate) const CALLS: usize = 30;
/// Tokens of a tool call per token of its result: 150 for a result of 2,500.
const ASKED: f64 = 0.06;

/// Cost of lost content.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossModel {
    /// Share of just-shown content that is read again after it is dropped.
    pub fresh: f64,
}

impl LossModel {
    /// As it was measured.
    pub const CALIBRATED: LossModel =
        LossModel { fresh: READ_AGAIN / DROPPED / wanted_on_average(COMPACTED) };
    /// Nothing is ever read again.
    pub const NONE: LossModel = LossModel { fresh: 0.0 };

    /// Share of content shown N calls ago that is read again when it is dropped.
    pub fn share(&self, age: usize) -> f64 {
        self.fresh * reuse_share(age)
    }

    /// Cost of re-reading a token in US dollars, with N calls to come.
    pub(crate) fn of_token(&self, rates: &TraceRates, write: f64, calls_to_come: usize) -> f64 {
        let one = write + ASKED * rates.output;
        let again = (1..=CALLS.min(calls_to_come)).map(|at| {
            let carried = CALLS.min(calls_to_come - at) as f64;
            (one + rates.read * carried) / CALLS as f64
        });
        again.sum()
    }
}

/// Relative demand for content of an age, against content that was just shown.
const fn reuse_share(age: usize) -> f64 {
    1.0 / (1.0 + age as f64 / HALF)
}

const fn wanted_on_average(calls: usize) -> f64 {
    let (mut sum, mut age) = (0.0, 0);
    while age < calls {
        sum += reuse_share(age);
        age += 1;
    }
    sum / calls as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reread_share_falls_with_age_and_near_the_end() {
        let share = |age| LossModel::CALIBRATED.share(age);
        // As measured, against what was just shown: 0.62 after 8 calls, 0.32 after 32, 0.24 after 64.
        for (age, measured) in [(8, 0.62), (32, 0.32), (64, 0.24)] {
            assert!((share(age) / share(0) - measured).abs() < 0.08, "{age}: {}", share(age) / share(0));
        }
        let average = (0..COMPACTED).map(share).sum::<f64>() / COMPACTED as f64;
        assert!((average - 26.0 / (101.0 * 2.75)).abs() < 1e-9, "{average}");
        let rates = TraceRates { read: 0.1, output: 5.0, write_5m: 1.25, write_1h: None };
        let of = |calls| LossModel::CALIBRATED.of_token(&rates, 1.25, calls);
        assert!(of(0) == 0.0 && of(1) < of(10) && of(10) < of(60) && of(60) == of(600), "{}", of(60));
        // Written once, carried for thirty calls, asked for.
        assert!((of(600) - (1.25 + 3.0 + 0.3)).abs() < 1e-9);
    }
}
