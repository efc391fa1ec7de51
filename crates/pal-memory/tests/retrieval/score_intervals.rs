//! Mean scores over questions, with bootstrap intervals.

use std::fmt;

/// Bootstrap samples.
const DRAWS: usize = 4_000;

/// Score of one question.
#[derive(Clone, Copy, Default)]
pub(crate) struct QuestionScore {
    /// Share of the files that the first five memories cover.
    pub(crate) recall: f64,
    /// Reciprocal rank of the first relevant memory.
    pub(crate) reciprocal: f64,
}

/// A mean with its 95% bootstrap interval.
#[derive(Clone, Copy)]
pub(crate) struct MeanInterval {
    pub(crate) mean: f64,
    low: f64,
    high: f64,
}

impl fmt::Display for MeanInterval {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:.3} ({:.3}–{:.3})", self.mean, self.low, self.high)
    }
}

pub(crate) struct RankingScores {
    pub(crate) recall: MeanInterval,
    pub(crate) reciprocal: MeanInterval,
    asked: Vec<QuestionScore>,
}

impl RankingScores {
    pub(crate) fn of(asked: &[QuestionScore]) -> RankingScores {
        let figure = |value: fn(&QuestionScore) -> f64| {
            let values: Vec<f64> = asked.iter().map(value).collect();
            let (low, high) = range(values.len(), |draw| mean(draw.iter().map(|at| values[*at])));
            MeanInterval { mean: mean(values.iter().copied()), low, high }
        };
        RankingScores {
            recall: figure(|asked| asked.recall),
            reciprocal: figure(|asked| asked.reciprocal),
            asked: asked.to_vec(),
        }
    }

    /// Relative gain of the means over another ranking, with intervals.
    pub(crate) fn gain_over(&self, other: &RankingScores) -> String {
        let gain = |value: fn(&QuestionScore) -> f64| {
            let ratio = |draw: &[usize]| {
                let own = mean(draw.iter().map(|at| value(&self.asked[*at])));
                let theirs = mean(draw.iter().map(|at| value(&other.asked[*at])));
                100.0 * (own / theirs - 1.0)
            };
            let all: Vec<usize> = (0..self.asked.len()).collect();
            let (low, high) = range(self.asked.len(), ratio);
            format!("{:+.0} % ({low:+.0} to {high:+.0})", ratio(&all))
        };
        format!("recall {}, MRR {}", gain(|asked| asked.recall), gain(|asked| asked.reciprocal))
    }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0_usize), |(sum, count), value| (sum + value, count + 1));
    sum / count.max(1) as f64
}

/// Bootstrap interval of a statistic, with a fixed seed.
fn range(count: usize, figure: impl Fn(&[usize]) -> f64) -> (f64, f64) {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        // xorshift64*
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize
    };
    let mut figures: Vec<f64> = (0..DRAWS)
        .map(|_| {
            let draw: Vec<usize> = (0..count).map(|_| next() % count).collect();
            figure(&draw)
        })
        .collect();
    figures.sort_by(f64::total_cmp);
    (figures[DRAWS / 40], figures[DRAWS - 1 - DRAWS / 40])
}
