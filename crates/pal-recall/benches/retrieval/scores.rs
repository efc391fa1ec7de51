//! Scores of ranked results against known evidence.

use std::collections::BTreeMap;

/// Numbers of results that count.
const RANKS: [usize; 3] = [1, 5, 10];
/// Numbers of characters returned that count.
const CHARACTERS: [usize; 2] = [2_000, 4_000];
/// Name of the sum over all categories.
const ALL: &str = "all";

/// A result: the turns that it shows whole, and its length.
#[derive(Clone, Debug)]
pub(crate) struct RankedResult {
    pub(crate) turns: Vec<usize>,
    pub(crate) characters: usize,
}

impl RankedResult {
    /// Result that shows a text; the evidence that it contains counts as turns.
    pub(crate) fn of_text(text: &str, evidence: &[&str]) -> RankedResult {
        let shown = evidence.iter().enumerate().filter(|(_, line)| text.contains(**line));
        RankedResult { turns: shown.map(|(at, _)| at).collect(), characters: text.chars().count() + 1 }
    }
}

/// Sums of the scores of questions.
#[derive(Clone, Default)]
struct ScoreSums {
    questions: usize,
    by_rank: [f64; RANKS.len()],
    reciprocal: f64,
    by_characters: [f64; CHARACTERS.len()],
}

impl ScoreSums {
    fn add(&mut self, results: &[RankedResult], evidence: &[usize]) {
        // Rank, and characters until then, at which each turn of the evidence is first shown.
        let first = |turn: &usize| {
            let rank = results.iter().position(|result| result.turns.contains(turn))?;
            Some((rank, results[..=rank].iter().map(|result| result.characters).sum::<usize>()))
        };
        let found: Vec<(usize, usize)> = evidence.iter().filter_map(first).collect();
        let share = |count: usize| count as f64 / evidence.len() as f64;
        self.questions += 1;
        for (sum, rank) in self.by_rank.iter_mut().zip(RANKS) {
            *sum += share(found.iter().filter(|(at, _)| *at < rank).count());
        }
        for (sum, most) in self.by_characters.iter_mut().zip(CHARACTERS) {
            *sum += share(found.iter().filter(|(_, until)| *until <= most).count());
        }
        self.reciprocal += found.iter().map(|(at, _)| *at).min().map_or(0.0, |at| 1.0 / (at + 1) as f64);
    }

    fn print(&self, name: &str, category: &str) {
        let of = |sum: f64| format!("{:.3}", sum / self.questions.max(1) as f64);
        let ranks: Vec<String> = self.by_rank.iter().map(|sum| of(*sum)).collect();
        let characters: Vec<String> = self.by_characters.iter().map(|sum| of(*sum)).collect();
        println!(
            "| {category} | {} | {name} | {} | {} | {} |",
            self.questions,
            ranks.join(" / "),
            of(self.reciprocal),
            characters.join(" / ")
        );
    }
}

/// Scores of several rankings, by category.
#[derive(Default)]
pub(crate) struct ScoreTable {
    /// Names of the rankings, in order of their first score.
    names: Vec<String>,
    /// Sums by category and ranking.
    sums: BTreeMap<(String, String), ScoreSums>,
}

impl ScoreTable {
    /// Adds the results of a question.
    pub(crate) fn add(&mut self, name: &str, category: &str, results: &[RankedResult], evidence: &[usize]) {
        if !self.names.iter().any(|known| known == name) {
            self.names.push(name.to_owned());
        }
        for category in [category, ALL] {
            self.sums.entry((category.to_owned(), name.to_owned())).or_default().add(results, evidence);
        }
    }

    /// Prints a Markdown table.
    pub(crate) fn print(&self) {
        println!(
            "| category | questions | ranking | R@1 / R@5 / R@10 | MRR | found within 2,000 / 4,000 characters |"
        );
        println!("| --- | --- | --- | --- | --- | --- |");
        let mut categories: Vec<&str> = self.sums.keys().map(|(category, _)| category.as_str()).collect();
        categories.dedup();
        for category in categories {
            for name in &self.names {
                if let Some(sums) = self.sums.get(&(category.to_owned(), name.clone())) {
                    sums.print(name, category);
                }
            }
        }
    }
}
