//! Figures with what they are worth: means over questions, and how far other questions would have moved them.

use std::fmt;

/// Times that the questions are drawn anew.
const DRAWS: usize = 4_000;

/// What came of one question.
#[derive(Clone, Copy, Default)]
pub(crate) struct Asked {
    /// The share of the files that the first five memories are about.
    pub(crate) recall: f64,
    /// One over the place of the first memory that is about one of them.
    pub(crate) reciprocal: f64,
}

/// A mean and the range in which 95 of 100 means of questions drawn anew lie.
#[derive(Clone, Copy)]
pub(crate) struct Figure {
    pub(crate) mean: f64,
    low: f64,
    high: f64,
}

impl fmt::Display for Figure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:.3} ({:.3}–{:.3})", self.mean, self.low, self.high)
    }
}

pub(crate) struct Figures {
    pub(crate) recall: Figure,
    pub(crate) reciprocal: Figure,
    asked: Vec<Asked>,
}

impl Figures {
    pub(crate) fn of(asked: &[Asked]) -> Figures {
        let figure = |value: fn(&Asked) -> f64| {
            let values: Vec<f64> = asked.iter().map(value).collect();
            let (low, high) = range(values.len(), |draw| mean(draw.iter().map(|at| values[*at])));
            Figure { mean: mean(values.iter().copied()), low, high }
        };
        Figures {
            recall: figure(|asked| asked.recall),
            reciprocal: figure(|asked| asked.reciprocal),
            asked: asked.to_vec(),
        }
    }

    /// By how much the means are above those of another ranking of the same questions, and the ranges of that.
    pub(crate) fn gain_over(&self, other: &Figures) -> String {
        let gain = |value: fn(&Asked) -> f64| {
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

/// The range of a figure over questions drawn anew; the same every time.
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
