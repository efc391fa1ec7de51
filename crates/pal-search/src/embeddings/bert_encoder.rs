//! BERT encoder: turns token vectors into contextual vectors.

use crate::embeddings::bert_config::BertConfig;
use crate::embeddings::error::EmbedError;
use crate::embeddings::matrix_product::products;

/// All weights except word embeddings. `T` is a tensor's position in the file or its numbers.
pub(crate) struct BertEncoder<T> {
    positions: T,
    types: T,
    norm: LayerNorm<T>,
    layers: Vec<EncoderLayer<T>>,
}

struct EncoderLayer<T> {
    query: LinearLayer<T>,
    key: LinearLayer<T>,
    value: LinearLayer<T>,
    attended: LinearLayer<T>,
    attended_norm: LayerNorm<T>,
    widen: LinearLayer<T>,
    narrow: LinearLayer<T>,
    norm: LayerNorm<T>,
}

struct LinearLayer<T> {
    weights: T,
    bias: T,
}

struct LayerNorm<T> {
    scale: T,
    shift: T,
}

impl<T> BertEncoder<T> {
    /// Loads all tensors by name and shape, in a fixed order.
    pub(crate) fn load(
        config: &BertConfig,
        mut take: impl FnMut(&str, &[usize]) -> Result<T, EmbedError>,
    ) -> Result<BertEncoder<T>, EmbedError> {
        let width = config.width;
        let positions = take("embeddings.position_embeddings.weight", &[config.n_positions, width])?;
        let types = take("embeddings.token_type_embeddings.weight", &[config.n_types, width])?;
        let norm = LayerNorm::load("embeddings", width, &mut take)?;
        let mut layers = Vec::new();
        for at in 0..config.n_layers {
            layers.push(EncoderLayer::load(&format!("encoder.layer.{at}"), config, &mut take)?);
        }
        Ok(BertEncoder { positions, types, norm, layers })
    }
}

impl<T> EncoderLayer<T> {
    fn load(
        name: &str,
        config: &BertConfig,
        take: &mut impl FnMut(&str, &[usize]) -> Result<T, EmbedError>,
    ) -> Result<EncoderLayer<T>, EmbedError> {
        let (width, wide) = (config.width, config.inner_width);
        let mut linear = |part: &str, shape: [usize; 2]| -> Result<LinearLayer<T>, EmbedError> {
            let weights = take(&format!("{name}.{part}.weight"), &shape)?;
            Ok(LinearLayer { weights, bias: take(&format!("{name}.{part}.bias"), &shape[..1])? })
        };
        let query = linear("attention.self.query", [width, width])?;
        let key = linear("attention.self.key", [width, width])?;
        let value = linear("attention.self.value", [width, width])?;
        let attended = linear("attention.output.dense", [width, width])?;
        let widen = linear("intermediate.dense", [wide, width])?;
        let narrow = linear("output.dense", [width, wide])?;
        let attended_norm = LayerNorm::load(&format!("{name}.attention.output"), width, take)?;
        let norm = LayerNorm::load(&format!("{name}.output"), width, take)?;
        Ok(EncoderLayer { query, key, value, attended, attended_norm, widen, narrow, norm })
    }
}

impl<T> LayerNorm<T> {
    fn load(
        name: &str,
        width: usize,
        take: &mut impl FnMut(&str, &[usize]) -> Result<T, EmbedError>,
    ) -> Result<LayerNorm<T>, EmbedError> {
        let scale = take(&format!("{name}.LayerNorm.weight"), &[width])?;
        Ok(LayerNorm { scale, shift: take(&format!("{name}.LayerNorm.bias"), &[width])? })
    }
}

impl BertEncoder<Vec<f32>> {
    /// Encodes word rows into contextual rows.
    pub(crate) fn encode(&self, mut rows: Vec<f32>, config: &BertConfig) -> Vec<f32> {
        // All tokens belong to one text, which is type 0.
        let types = &self.types[..config.width];
        for (row, position) in
            rows.chunks_exact_mut(config.width).zip(self.positions.chunks_exact(config.width))
        {
            for ((number, position), kind) in row.iter_mut().zip(position).zip(types) {
                *number += position + kind;
            }
        }
        self.norm.apply(&mut rows, config.epsilon);
        for layer in &self.layers {
            layer.apply(&mut rows, config);
        }
        rows
    }
}

impl EncoderLayer<Vec<f32>> {
    fn apply(&self, rows: &mut [f32], config: &BertConfig) {
        let attended = self.attended.apply(&self.attend(rows, config));
        add(rows, &attended);
        self.attended_norm.apply(rows, config.epsilon);
        let mut wide = self.widen.apply(rows);
        wide.iter_mut().for_each(|number| *number = gelu(*number));
        add(rows, &self.narrow.apply(&wide));
        self.norm.apply(rows, config.epsilon);
    }

    /// Multi-head attention.
    fn attend(&self, rows: &[f32], config: &BertConfig) -> Vec<f32> {
        let (width, n_rows) = (config.width, rows.len() / config.width);
        let head_width = width / config.n_heads;
        let scale = (head_width as f32).sqrt().recip();
        let (queries, keys, values) = (self.query.apply(rows), self.key.apply(rows), self.value.apply(rows));
        let mut attended = vec![0.0; rows.len()];
        let mut shares = vec![0.0; n_rows * n_rows];
        let mut taken = vec![0.0; n_rows * head_width];
        for begin in (0..width).step_by(head_width) {
            let part = |all: &[f32]| -> Vec<f32> {
                all.chunks_exact(width).flat_map(|row| &row[begin..begin + head_width]).copied().collect()
            };
            products(&part(&queries), &part(&keys), head_width, &mut shares);
            shares.iter_mut().for_each(|share| *share *= scale);
            shares.chunks_exact_mut(n_rows).for_each(softmax);
            let columns = begin..begin + head_width;
            let turned: Vec<f32> =
                columns.flat_map(|column| values.iter().skip(column).step_by(width)).copied().collect();
            products(&shares, &turned, n_rows, &mut taken);
            for (row, taken) in attended.chunks_exact_mut(width).zip(taken.chunks_exact(head_width)) {
                row[begin..begin + head_width].copy_from_slice(taken);
            }
        }
        attended
    }
}

impl LinearLayer<Vec<f32>> {
    fn apply(&self, rows: &[f32]) -> Vec<f32> {
        let (to, from) = (self.bias.len(), self.weights.len() / self.bias.len());
        let mut out = vec![0.0; rows.len() / from * to];
        products(rows, &self.weights, from, &mut out);
        out.chunks_exact_mut(to).for_each(|row| add(row, &self.bias));
        out
    }
}

impl LayerNorm<Vec<f32>> {
    fn apply(&self, rows: &mut [f32], epsilon: f32) {
        let width = self.scale.len();
        for row in rows.chunks_exact_mut(width) {
            let mean = row.iter().sum::<f32>() / width as f32;
            let spread =
                row.iter().map(|number| (number - mean) * (number - mean)).sum::<f32>() / width as f32;
            let factor = (spread + epsilon).sqrt().recip();
            for ((number, scale), shift) in row.iter_mut().zip(&self.scale).zip(&self.shift) {
                *number = (*number - mean) * factor * scale + shift;
            }
        }
    }
}

fn add(to: &mut [f32], what: &[f32]) {
    to.iter_mut().zip(what).for_each(|(number, more)| *number += more);
}

/// Turns scores into positive shares that sum to one.
fn softmax(scores: &mut [f32]) {
    let largest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    scores.iter_mut().for_each(|score| *score = (*score - largest).exp());
    let sum: f32 = scores.iter().sum();
    scores.iter_mut().for_each(|score| *score /= sum);
}

/// Coefficients of the error function after Abramowitz and Stegun, 7.1.28, highest power first: error at most
/// 3e-7, and vectorisable.
const ERF_COEFFICIENTS: [f32; 7] =
    [0.000_043_063_8, 0.000_276_567_2, 0.000_152_014_3, 0.009_270_527, 0.042_282_01, 0.070_523_08, 1.0];

/// Activation function.
fn gelu(number: f32) -> f32 {
    let x = (number * std::f32::consts::FRAC_1_SQRT_2).abs();
    let sum = ERF_COEFFICIENTS.iter().fold(0.0, |sum, factor| sum * x + factor);
    let fourth = (sum * sum) * (sum * sum);
    let error = 1.0 - (fourth * fourth * fourth * fourth).recip();
    0.5 * number * (1.0 + error.copysign(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Error function by its power series.
    fn erf(x: f64) -> f64 {
        let (mut term, mut sum, mut at) = (x, x, 0.0);
        while f64::abs(term) > 1e-18 {
            at += 1.0;
            term *= -x * x / at;
            sum += term / (2.0 * at + 1.0);
        }
        sum * 2.0 / std::f64::consts::PI.sqrt()
    }

    #[test]
    fn gelu_matches_the_error_function() {
        for step in -500..=500 {
            let x = f64::from(step) / 100.0;
            let wanted = 0.5 * x * (1.0 + erf(x / 2.0_f64.sqrt()));
            assert!((f64::from(gelu(x as f32)) - wanted).abs() < 4e-6, "at {x}: {} {wanted}", gelu(x as f32));
        }
        assert_eq!(gelu(1e6), 1e6);
        assert_eq!(gelu(-1e6), 0.0);
    }
}
