//! Non-negative linear fits by relative error.
//!
//! Minimises the mean of |estimate − target| ÷ target by iteratively reweighted least squares, each step solved by
//! coordinate descent, with a small pull towards given weights. The pull decides alone where there are no data.

use pal_view::TextCounts;

/// Structural counts, then tool calls, then tool results.
pub(super) const COLUMNS: usize = TextCounts::LEN + 2;
/// The column of tool calls.
pub(super) const CALL: usize = TextCounts::LEN;
/// The column of tool results.
pub(super) const RESULT: usize = TextCounts::LEN + 1;

/// One number per column.
pub(super) type Columns = [f64; COLUMNS];

/// One observation.
#[derive(Clone)]
pub(super) struct Sample {
    pub(super) columns: Columns,
    pub(super) target: f64,
    /// Weight among the rows.
    pub(super) weight: f64,
}

/// Target of the regularization, and its strength.
pub(super) struct Pull {
    pub(super) towards: Columns,
    /// In proportion to what the data say about a column.
    pub(super) relative: f64,
}

/// Counts that a text of any length can consist of alone, and the least that each of them costs. Real texts have few of
/// these, so the data would as soon say nothing: then a megabyte of one letter would be free.
const MIN: [(&str, f64); 8] = [
    ("Letters12Up", 0.2),
    ("FurtherCapital", 0.01),
    ("FurtherSpace", 0.02),
    ("BlankLine", 0.02),
    ("PunctuationRun", 0.02),
    ("DashRun", 0.02),
    ("SymbolRun", 0.01),
    ("Tab", 0.02),
];

/// The least weight of each column.
fn least() -> Columns {
    std::array::from_fn(|column| {
        let name = TextCounts::NAMES.get(column);
        MIN.iter().find(|(known, _)| Some(known) == name).map_or(0.0, |(_, least)| *least)
    })
}

const ROUNDS: usize = 30;
/// Pull on columns with hardly any data, in squared shares of the target.
const PULL_MIN: f64 = 1e-5;
/// Relative errors below this are all the same; keeps the weights of the rounds finite.
const ERROR_FLOOR: f64 = 0.03;
const SWEEPS_MAX: usize = 400;
const CHANGE_MIN: f64 = 1e-7;

/// The weights that fit the samples best.
pub(super) fn fit(samples: &[Sample], pull: &Pull) -> Columns {
    let shares: Vec<(Columns, f64)> = samples.iter().map(share).collect();
    let total: f64 = shares.iter().map(|(_, weight)| weight).sum::<f64>().max(1.0);
    let pulls: Columns = std::array::from_fn(|column| {
        let squares = shares.iter().map(|(columns, weight)| weight * columns[column] * columns[column]);
        pull.relative * squares.sum::<f64>() / total + PULL_MIN
    });
    let least = least();
    let mut weights = pull.towards;
    for round in 0..ROUNDS {
        // Starts close to least squares and tightens, so that the first rounds do not lock on to few samples.
        let floor = if round == 0 { f64::MAX } else { ERROR_FLOOR + 0.2 * 0.6_f64.powi(round as i32) };
        let (mut matrix, mut vector) = normal_equations(&shares, &weights, floor, total);
        for column in 0..COLUMNS {
            matrix[column][column] += pulls[column];
            vector[column] += pulls[column] * pull.towards[column];
        }
        descend(&matrix, &vector, &least, &mut weights);
    }
    weights
}

/// The estimate of a sample's columns.
pub(super) fn estimate(columns: &Columns, weights: &Columns) -> f64 {
    columns.iter().zip(weights).map(|(count, weight)| count * weight).sum()
}

fn share(sample: &Sample) -> (Columns, f64) {
    (sample.columns.map(|count| count / sample.target), sample.weight)
}

fn normal_equations(
    shares: &[(Columns, f64)],
    weights: &Columns,
    floor: f64,
    total: f64,
) -> ([Columns; COLUMNS], Columns) {
    let mut matrix = [[0.0; COLUMNS]; COLUMNS];
    let mut vector = [0.0; COLUMNS];
    for (columns, weight) in shares {
        let error = (estimate(columns, weights) - 1.0).abs();
        let importance = if floor == f64::MAX { *weight } else { weight / error.max(floor) } / total;
        for (row, count) in columns.iter().enumerate().filter(|(_, count)| **count != 0.0) {
            let scaled = importance * count;
            vector[row] += scaled;
            for (cell, other) in matrix[row].iter_mut().zip(columns) {
                *cell += scaled * other;
            }
        }
    }
    (matrix, vector)
}

/// Coordinate descent on a convex quadratic, staying at or above the least weights.
fn descend(matrix: &[Columns; COLUMNS], vector: &Columns, least: &Columns, weights: &mut Columns) {
    for _ in 0..SWEEPS_MAX {
        let mut change: f64 = 0.0;
        for column in 0..COLUMNS {
            let gradient = vector[column] - estimate(&matrix[column], weights);
            let next = (weights[column] + gradient / matrix[column][column]).max(least[column]);
            change = change.max((next - weights[column]).abs());
            weights[column] = next;
        }
        if change < CHANGE_MIN {
            break;
        }
    }
}
