//! How each generation is fitted: which rows, which targets, what it is pulled to.
//!
//! The generations form a chain, from the one with exact labels to the one with the fewest rows; each is pulled to
//! the scaled weights of the one before.

use pal_view::TextCounts;

use super::calibration_rows::{ClaudeRow, CodexRow, CorpusFile, Data, Vector};
use super::fit::{CALL, COLUMNS, Columns, Pull, RESULT, Sample, estimate, fit};

/// The first count that is not of ASCII.
const NON_ASCII_FROM: &str = "OtherTwoByte";
/// Pull of the first fit, to [`without_data`].
const PULL_FIRST: f64 = 1e-2;
/// Pull along the chain; firmer, because neighbors are alike and the newest rows are few.
const PULL_CHAIN: f64 = 1e-1;
/// A labelled file against a row: there are few, but they alone show many kinds of text.
const FILE_WEIGHT: f64 = 1.5;
/// Reported output against a result: it may contain thinking that no row shows.
const OUTPUT_WEIGHT: f64 = 0.1;
/// First guess of what frames a call or a result of a Claude model; the data correct the sum.
const CLAUDE_FRAME: f64 = 40.0;

/// Weights of all generations.
pub(super) struct Fits {
    pub(super) claude_46: Columns,
    pub(super) claude_47: Columns,
    pub(super) o200k: Columns,
    pub(super) neutral: Columns,
}

/// Fits all generations on everything.
pub(super) fn fit_all(data: &Data) -> Fits {
    let corpus: Vec<&CorpusFile> = data.corpus.iter().collect();
    let o200k = fit_o200k(&data.codex.iter().collect::<Vec<_>>(), &corpus);
    let claude_46 = fit_claude_46(&data.claude_46.iter().collect::<Vec<_>>(), &corpus, &o200k);
    let claude_47 = fit_claude_47(&data.claude_47.iter().collect::<Vec<_>>(), &corpus, &claude_46);
    let neutral = fit_neutral(&corpus, &o200k);
    Fits { claude_46, claude_47, o200k, neutral }
}

/// Fits `o200k`, whose labels are exact.
pub(super) fn fit_o200k(codex: &[&CodexRow], corpus: &[&CorpusFile]) -> Columns {
    let mut samples: Vec<Sample> = codex.iter().map(|row| codex_sample(row)).collect();
    samples.extend(corpus.iter().map(|file| corpus_sample(file, file.o200k)));
    let mut weights = fit(&samples, &Pull { towards: without_data(), relative: PULL_FIRST });
    let mut frames: Vec<f64> = codex.iter().filter_map(|row| row.frame).collect();
    // Nothing tells what a call costs beyond the output reported for it; results are the best guess.
    weights[RESULT] = median(&mut frames);
    weights[CALL] = weights[RESULT];
    weights
}

/// Fits the estimator of unknown tokenizers on the corpus alone: no row of them is recorded. What frames calls and results
/// is that of `o200k`.
pub(super) fn fit_neutral(corpus: &[&CorpusFile], o200k: &Columns) -> Columns {
    let samples: Vec<Sample> = corpus.iter().map(|file| corpus_sample(file, file.neutral())).collect();
    let mut weights = fit(&samples, &Pull { towards: *o200k, relative: PULL_CHAIN });
    (weights[CALL], weights[RESULT]) = (o200k[CALL], o200k[RESULT]);
    weights
}

/// Fits Claude up to 4.6. The growth contains the model's own output, so calls and results are fitted together.
pub(super) fn fit_claude_46(rows: &[&ClaudeRow], corpus: &[&CorpusFile], base: &Columns) -> Columns {
    let samples: Vec<Sample> = rows.iter().map(|row| growth_sample(row)).collect();
    fit_claude(samples, corpus, base)
}

/// Fits Claude from 4.7 on. The reported output is reliable there, so calls and results are fitted apart.
pub(super) fn fit_claude_47(rows: &[&ClaudeRow], corpus: &[&CorpusFile], base: &Columns) -> Columns {
    let results = rows.iter().map(|row| result_sample(row));
    let samples = results.chain(rows.iter().map(|row| output_sample(row))).collect();
    fit_claude(samples, corpus, base)
}

/// Fits the rows first; then again with the corpus of other scripts, for which rows have next to nothing. Its labels
/// are those of the 2023 vocabulary, scaled by what the first fit makes of the corpus in Latin script.
fn fit_claude(mut samples: Vec<Sample>, corpus: &[&CorpusFile], base: &Columns) -> Columns {
    let mut towards = *base;
    towards[CALL] = CLAUDE_FRAME;
    towards[RESULT] = CLAUDE_FRAME;
    let scale =
        median_ratio(samples.iter().map(|sample| (sample.target, estimate(&sample.columns, &towards))));
    for weight in &mut towards[..TextCounts::LEN] {
        *weight *= scale;
    }
    let first = fit(&samples, &Pull { towards, relative: PULL_CHAIN });
    let scale = label_scale(corpus, &first);
    let scripts = corpus.iter().filter(|file| file.is_script());
    samples.extend(scripts.map(|file| corpus_sample(file, scale * file.anthropic_2023)));
    fit(&samples, &Pull { towards, relative: PULL_CHAIN })
}

/// Tokens of a generation for one token of the 2023 vocabulary, on text in Latin script.
pub(super) fn label_scale(corpus: &[&CorpusFile], weights: &Columns) -> f64 {
    let latin = corpus.iter().filter(|file| !file.is_script());
    median_ratio(latin.map(|file| (estimate(&columns(&file.text), weights), file.anthropic_2023)))
}

/// The whole growth between two calls.
pub(super) fn growth_sample(row: &ClaudeRow) -> Sample {
    let mut columns: Columns = [0.0; COLUMNS];
    for (cell, (result, own)) in columns.iter_mut().zip(row.results.iter().zip(&row.own)) {
        *cell = result + own;
    }
    columns[CALL] = row.calls;
    columns[RESULT] = row.calls;
    Sample { columns, target: row.growth, weight: 1.0 }
}

/// The growth less the output that was reported.
pub(super) fn result_sample(row: &ClaudeRow) -> Sample {
    let mut columns = columns(&row.results);
    columns[RESULT] = row.calls;
    Sample { columns, target: (row.growth - row.reported_output).max(1.0), weight: 1.0 }
}

fn output_sample(row: &ClaudeRow) -> Sample {
    let mut columns = columns(&row.own);
    columns[CALL] = row.calls;
    Sample { columns, target: row.reported_output.max(1.0), weight: OUTPUT_WEIGHT }
}

/// The text of a Codex row, frames left out.
pub(super) fn codex_sample(row: &CodexRow) -> Sample {
    Sample { columns: columns(&row.text), target: row.tokens, weight: 1.0 }
}

/// A file of the corpus under a label.
pub(super) fn corpus_sample(file: &CorpusFile, label: f64) -> Sample {
    Sample { columns: columns(&file.text), target: label, weight: FILE_WEIGHT }
}

fn columns(counts: &Vector) -> Columns {
    std::array::from_fn(|column| counts.get(column).copied().unwrap_or(0.0))
}

/// Tokens for a count without any data: nothing for ASCII, one for a character beyond it.
fn without_data() -> Columns {
    let first = TextCounts::NAMES.iter().position(|name| *name == NON_ASCII_FROM).unwrap_or(TextCounts::LEN);
    std::array::from_fn(|column| if (first..TextCounts::LEN).contains(&column) { 1.0 } else { 0.0 })
}

fn median_ratio(pairs: impl Iterator<Item = (f64, f64)>) -> f64 {
    let mut ratios: Vec<f64> = pairs.map(|(above, below)| above / below.max(1.0)).collect();
    median(&mut ratios)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(1.0)
}
