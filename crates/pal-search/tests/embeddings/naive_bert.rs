//! Reference implementation in double precision, independent of the crate.

use std::collections::BTreeMap;

use crate::tiny_model::TinyModel;

type MatrixRows = Vec<Vec<f64>>;

struct NaiveModel {
    tensors: BTreeMap<String, (Vec<usize>, Vec<f32>)>,
}

impl NaiveModel {
    fn row(&self, name: &str, at: usize) -> Vec<f64> {
        let (shape, numbers) = &self.tensors[name];
        let width = shape[shape.len() - 1];
        numbers[at * width..(at + 1) * width].iter().map(|number| f64::from(*number)).collect()
    }

    fn linear(&self, name: &str, rows: &MatrixRows) -> MatrixRows {
        let n_out = self.tensors[&format!("{name}.weight")].0[0];
        let bias = self.row(&format!("{name}.bias"), 0);
        let out = |row: &Vec<f64>, at: usize| {
            let weights = self.row(&format!("{name}.weight"), at);
            bias[at] + weights.iter().zip(row).map(|(weight, number)| weight * number).sum::<f64>()
        };
        rows.iter().map(|row| (0..n_out).map(|at| out(row, at)).collect()).collect()
    }

    fn normed(&self, name: &str, rows: &MatrixRows) -> MatrixRows {
        let scale = self.row(&format!("{name}.LayerNorm.weight"), 0);
        let shift = self.row(&format!("{name}.LayerNorm.bias"), 0);
        let normed = |row: &Vec<f64>| {
            let count = row.len() as f64;
            let mean = row.iter().sum::<f64>() / count;
            let spread = row.iter().map(|number| (number - mean).powi(2)).sum::<f64>() / count;
            let number = |at: usize| (row[at] - mean) / (spread + 1e-12).sqrt() * scale[at] + shift[at];
            (0..row.len()).map(number).collect()
        };
        rows.iter().map(normed).collect()
    }
}

/// Embeds these tokens.
pub(crate) fn embed(small: &TinyModel, tokens: &[usize]) -> Vec<f64> {
    let reading = NaiveModel { tensors: small.tensors() };
    let begin = |(position, token): (usize, &usize)| {
        let word = reading.row("embeddings.word_embeddings.weight", *token);
        let position = reading.row("embeddings.position_embeddings.weight", position);
        let kind = reading.row("embeddings.token_type_embeddings.weight", 0);
        (0..small.width).map(|at| word[at] + position[at] + kind[at]).collect()
    };
    let rows: MatrixRows = tokens.iter().enumerate().map(begin).collect();
    let mut rows = reading.normed("embeddings", &rows);
    for layer in 0..small.n_layers {
        let name = |part: &str| format!("encoder.layer.{layer}.{part}");
        let attended = attended(&reading, small, layer, &rows);
        let attended = reading.linear(&name("attention.output.dense"), &attended);
        rows = reading.normed(&name("attention.output"), &sum(&rows, &attended));
        let mut wide = reading.linear(&name("intermediate.dense"), &rows);
        wide.iter_mut().flatten().for_each(|number| *number *= 0.5 * (1.0 + erf(*number / 2.0_f64.sqrt())));
        rows = reading.normed(&name("output"), &sum(&rows, &reading.linear(&name("output.dense"), &wide)));
    }
    let mean: Vec<f64> =
        (0..small.width).map(|at| rows.iter().map(|row| row[at]).sum::<f64>() / rows.len() as f64).collect();
    let length = mean.iter().map(|number| number * number).sum::<f64>().sqrt();
    mean.iter().map(|number| number / length).collect()
}

fn attended(reading: &NaiveModel, small: &TinyModel, layer: usize, rows: &MatrixRows) -> MatrixRows {
    let part = |part: &str| reading.linear(&format!("encoder.layer.{layer}.attention.self.{part}"), rows);
    let (queries, keys, values) = (part("query"), part("key"), part("value"));
    let head_width = small.width / small.n_heads;
    let mut out = vec![vec![0.0; small.width]; rows.len()];
    for head in 0..small.n_heads {
        let columns = head * head_width..(head + 1) * head_width;
        for (row, query) in queries.iter().enumerate() {
            let score = |key: &Vec<f64>| {
                let products = columns.clone().map(|column| query[column] * key[column]);
                (products.sum::<f64>() / (head_width as f64).sqrt()).exp()
            };
            let scores: Vec<f64> = keys.iter().map(score).collect();
            let total: f64 = scores.iter().sum();
            for column in columns.clone() {
                let taken = scores.iter().zip(&values).map(|(score, value)| score / total * value[column]);
                out[row][column] = taken.sum();
            }
        }
    }
    out
}

fn sum(one: &MatrixRows, other: &MatrixRows) -> MatrixRows {
    let sum = |(one, other): (&Vec<f64>, &Vec<f64>)| {
        one.iter().zip(other).map(|(one, other)| one + other).collect()
    };
    one.iter().zip(other).map(sum).collect()
}

/// The error function, integrated with Simpson's rule.
fn erf(x: f64) -> f64 {
    let x = x.clamp(-6.0, 6.0);
    let (steps, density) = (2_000, |at: f64| (-at * at).exp());
    let step = x / f64::from(steps);
    let inner: f64 =
        (1..steps).map(|at| density(f64::from(at) * step) * if at % 2 == 1 { 4.0 } else { 2.0 }).sum();
    (1.0 + inner + density(x)) * step / 3.0 * 2.0 / std::f64::consts::PI.sqrt()
}
