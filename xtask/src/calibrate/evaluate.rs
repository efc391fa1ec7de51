//! Errors on what was held out: by session, by repository, by file.

use std::collections::BTreeMap;
use std::fmt;

use pal_view::Calibration;

use super::calibration_rows::{ClaudeRow, CodexRow, CorpusFile, Data, Source};
use super::fit::{Columns, Sample, estimate};
use super::models;

const SESSION_FOLDS: usize = 10;
const CHARACTERS_PER_TOKEN: f64 = 4.0;

/// Median and 90th percentile of relative errors, in percent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Errors {
    pub(super) half: f64,
    pub(super) ninety: f64,
}

/// One line of the report.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) name: String,
    pub(super) rows: usize,
    pub(super) fitted: Errors,
    /// Estimate of characters ÷ 4 for the same rows.
    pub(super) quarter: Errors,
}

/// All that is known about the fits on what they have not seen.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) calibration: Vec<Line>,
    pub(super) corpus: Vec<Line>,
}

impl Report {
    /// The line with this name.
    #[cfg(test)]
    pub(super) fn line(&self, name: &str) -> Option<&Line> {
        self.calibration.iter().chain(&self.corpus).find(|line| line.name == name)
    }
}

/// Estimate, truth and characters of one row.
#[derive(Clone, Copy)]
struct Outcome {
    estimated: f64,
    real: f64,
    characters: f64,
}

/// Evaluates all generations.
pub(super) fn report(data: &Data) -> Report {
    let corpus: Vec<&CorpusFile> = data.corpus.iter().collect();
    let o200k = models::fit_o200k(&data.codex.iter().collect::<Vec<_>>(), &corpus);
    let claude_46 = models::fit_claude_46(&data.claude_46.iter().collect::<Vec<_>>(), &corpus, &o200k);
    let mut calibration = claude_46_lines(&data.claude_46, &corpus, &o200k);
    calibration.extend(claude_47_lines(&data.claude_47, &corpus, &claude_46));
    calibration.extend(codex_lines(&data.codex, &corpus));
    let codex: Vec<&CodexRow> = data.codex.iter().collect();
    let mut lines = corpus_lines(
        "o200k",
        &data.corpus,
        |file| file.o200k,
        |held_in| (models::fit_o200k(&codex, held_in), None),
    );
    let rows: Vec<&ClaudeRow> = data.claude_46.iter().collect();
    lines.extend(corpus_lines(
        "claude 4.6",
        &data.corpus,
        |file| file.o200k,
        |held_in| {
            let weights = models::fit_claude_46(&rows, held_in, &o200k);
            (weights, Some(models::label_scale(held_in, &weights)))
        },
    ));
    lines.extend(corpus_lines("neutral", &data.corpus, CorpusFile::neutral, |held_in| {
        (models::fit_neutral(held_in, &o200k), None)
    }));
    Report { calibration, corpus: lines }
}

fn claude_46_lines(rows: &[ClaudeRow], corpus: &[&CorpusFile], base: &Columns) -> Vec<Line> {
    let train = |rows: &[&ClaudeRow]| models::fit_claude_46(rows, corpus, base);
    let test = |row: &ClaudeRow, weights: &Columns| {
        outcome(&models::growth_sample(row), weights, row.result_characters + row.own_characters)
    };
    let sessions = held_out(rows, &session_folds(rows, |row| &row.source), train, test);
    let repositories = held_out(rows, &repository_folds(rows, |row| &row.source), train, test);
    let mut lines =
        vec![line("claude 4.6 by session", &sessions), line("claude 4.6 by repository", &repositories)];
    lines.extend(per_repository("claude 4.6", rows, |row| &row.source, &repositories));
    lines.push(line("claude 4.6 by repository, corrected", &corrected(rows, &repositories)));
    lines
}

fn claude_47_lines(rows: &[ClaudeRow], corpus: &[&CorpusFile], base: &Columns) -> Vec<Line> {
    let train = |rows: &[&ClaudeRow]| models::fit_claude_47(rows, corpus, base);
    let folds = session_folds(rows, |row| &row.source);
    let growth = held_out(rows, &folds, train, |row, weights| {
        outcome(&models::growth_sample(row), weights, row.result_characters + row.own_characters)
    });
    let results = held_out(rows, &folds, train, |row, weights| {
        outcome(&models::result_sample(row), weights, row.result_characters)
    });
    // A model without calibration: the generation before, and the effect of the correction.
    let before: Vec<Outcome> =
        (rows.iter()).map(|row| outcome(&models::result_sample(row), base, row.result_characters)).collect();
    vec![
        line("claude 4.7 by session", &growth),
        line("claude 4.7 by session, results", &results),
        line("claude 4.7 by weights of 4.6", &before),
        line("claude 4.7 by weights of 4.6, corrected", &corrected(rows, &before)),
    ]
}

fn codex_lines(rows: &[CodexRow], corpus: &[&CorpusFile]) -> Vec<Line> {
    let train = |rows: &[&CodexRow]| models::fit_o200k(rows, corpus);
    let test =
        |row: &CodexRow, weights: &Columns| outcome(&models::codex_sample(row), weights, row.characters);
    let sessions = held_out(rows, &session_folds(rows, |row| &row.source), train, test);
    let repositories = held_out(rows, &repository_folds(rows, |row| &row.source), train, test);
    let mut lines = vec![line("o200k by session", &sessions), line("o200k by repository", &repositories)];
    lines.extend(per_repository("o200k", rows, |row| &row.source, &repositories));
    lines
}

/// Errors on the corpus: each file judged by a fit that has not seen it, then by one that has seen nothing of its
/// repository (Latin script only: each other script comes from one repository). `train` gives the weights and, for
/// generations without labels, the scale of the 2023 labels.
fn corpus_lines(
    name: &str,
    corpus: &[CorpusFile],
    exact: impl Fn(&CorpusFile) -> f64,
    train: impl Fn(&[&CorpusFile]) -> (Columns, Option<f64>),
) -> Vec<Line> {
    let test = |file: &CorpusFile, (weights, scale): &(Columns, Option<f64>)| {
        let label = scale.map_or_else(|| exact(file), |scale| scale * file.anthropic_2023);
        outcome(&models::corpus_sample(file, label), weights, file.characters)
    };
    let by_file = held_out(corpus, &file_folds(corpus), &train, test);
    let sources = numbered(corpus.iter().map(|file| file.source.as_str()));
    let by_repository = held_out(corpus, &sources, &train, test);
    let latin = corpus.iter().zip(by_repository).filter(|(file, _)| !file.is_script());
    let latin: Vec<Outcome> = latin.map(|(_, outcome)| outcome).collect();
    let mut by_category: BTreeMap<&str, Vec<Outcome>> = BTreeMap::new();
    for (file, outcome) in corpus.iter().zip(&by_file) {
        by_category.entry(&file.category).or_default().push(*outcome);
    }
    let mut lines = vec![
        line(&format!("{name} corpus by file"), &by_file),
        line(&format!("{name} corpus by repository, latin script"), &latin),
    ];
    lines
        .extend(by_category.iter().map(|(category, outcomes)| line(&format!("{name} {category}"), outcomes)));
    lines
}

/// One file of each category in each fold.
fn file_folds(corpus: &[CorpusFile]) -> Vec<usize> {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let places = corpus.iter().map(|file| {
        let count = seen.entry(&file.category).or_default();
        *count += 1;
        *count - 1
    });
    places.collect()
}

/// Errors on the held-out repositories one by one.
fn per_repository<Row>(
    name: &str,
    rows: &[Row],
    source: impl Fn(&Row) -> &Source,
    outcomes: &[Outcome],
) -> Vec<Line> {
    let mut groups: BTreeMap<&str, Vec<Outcome>> = BTreeMap::new();
    for (row, outcome) in rows.iter().zip(outcomes) {
        groups.entry(&source(row).repository).or_default().push(*outcome);
    }
    groups.iter().map(|(repository, outcomes)| line(&format!("{name} on {repository}"), outcomes)).collect()
}

/// The same outcomes when a factor is learnt from each session before the next one starts.
fn corrected(rows: &[ClaudeRow], outcomes: &[Outcome]) -> Vec<Outcome> {
    let mut learnt: BTreeMap<&str, Calibration> = BTreeMap::new();
    let mut frozen: BTreeMap<&str, f64> = BTreeMap::new();
    let pairs = rows.iter().zip(outcomes);
    let corrected = pairs.map(|(row, outcome)| {
        let calibration = learnt.entry(&row.source.repository).or_default();
        let factor = *frozen.entry(&row.source.session).or_insert_with(|| calibration.factor().as_f64());
        calibration.observe(outcome.estimated, outcome.real as u64);
        Outcome { estimated: outcome.estimated * factor, ..*outcome }
    });
    corrected.collect()
}

/// Judges each row by a fit on the rows of all other folds.
fn held_out<Row, Fit>(
    rows: &[Row],
    folds: &[usize],
    train: impl Fn(&[&Row]) -> Fit,
    test: impl Fn(&Row, &Fit) -> Outcome,
) -> Vec<Outcome> {
    let n_folds = folds.iter().max().map_or(0, |last| last + 1);
    let fits: Vec<Fit> = (0..n_folds)
        .map(|fold| {
            let others = rows.iter().zip(folds).filter(|(_, of)| **of != fold);
            train(&others.map(|(row, _)| row).collect::<Vec<_>>())
        })
        .collect();
    rows.iter().zip(folds).map(|(row, fold)| test(row, &fits[*fold])).collect()
}

fn session_folds<Row>(rows: &[Row], source: impl Fn(&Row) -> &Source) -> Vec<usize> {
    numbered(rows.iter().map(|row| source(row).session.as_str()))
        .into_iter()
        .map(|n| n % SESSION_FOLDS)
        .collect()
}

fn repository_folds<Row>(rows: &[Row], source: impl Fn(&Row) -> &Source) -> Vec<usize> {
    numbered(rows.iter().map(|row| source(row).repository.as_str()))
}

/// The place of each name among the different names, sorted.
fn numbered<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Vec<usize> {
    let mut places: BTreeMap<&str, usize> = names.clone().map(|name| (name, 0)).collect();
    for (place, (_, number)) in places.iter_mut().enumerate() {
        *number = place;
    }
    names.map(|name| places[name]).collect()
}

fn outcome(sample: &Sample, weights: &Columns, characters: f64) -> Outcome {
    Outcome { estimated: estimate(&sample.columns, weights), real: sample.target, characters }
}

fn line(name: &str, outcomes: &[Outcome]) -> Line {
    Line {
        name: name.to_owned(),
        rows: outcomes.len(),
        fitted: errors(outcomes, |outcome| outcome.estimated),
        quarter: errors(outcomes, |outcome| outcome.characters / CHARACTERS_PER_TOKEN),
    }
}

fn errors(outcomes: &[Outcome], estimated: impl Fn(&Outcome) -> f64) -> Errors {
    let relative = outcomes.iter().map(|outcome| 100.0 * (estimated(outcome) / outcome.real - 1.0).abs());
    let mut relative: Vec<f64> = relative.collect();
    relative.sort_by(f64::total_cmp);
    Errors { half: percentile(&relative, 0.5), ninety: percentile(&relative, 0.9) }
}

/// Linear between neighbors; zero for no values.
fn percentile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let place = share * last as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(last);
    sorted[below] + (sorted[above] - sorted[below]) * (place - below as f64)
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "relative error in %, p50 / p90{:>33}{:>16}", "fitted", "characters ÷ 4")?;
        for line in self.calibration.iter().chain(&self.corpus) {
            let Line { name, rows, fitted, quarter } = line;
            writeln!(
                formatter,
                "{name:<52}{rows:>5}{:>7.1} /{:>5.1}{:>9.1} /{:>5.1}",
                fitted.half, fitted.ninety, quarter.half, quarter.ninety
            )?;
        }
        Ok(())
    }
}
