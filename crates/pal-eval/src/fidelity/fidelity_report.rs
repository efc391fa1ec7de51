//! Report of a fidelity run: sums by maker with intervals, and the compactions that lost most.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use pal_model::text::group_digits;
use serde::Serialize;

use crate::comparison::{EvalReportError, SvgPicture, TextAnchor, ratio_interval, write_report};
use crate::fidelity::compaction_figures::{CompactionFigures, EXTRACTED, NOTES};
use crate::fidelity::next_use::NEXT_CALLS;

/// Compactions listed as the worst of each maker.
const WORST_MAX: usize = 5;

/// Reads of content that was shown before, where no compaction precedes.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct RereadBaseline {
    pub(crate) calls: u64,
    pub(crate) characters: u64,
}

impl RereadBaseline {
    pub(crate) fn absorb(&mut self, other: RereadBaseline) {
        self.calls += other.calls;
        self.characters += other.characters;
    }
}

/// Sums over the compactions of one maker.
#[derive(Clone, Debug, Default, Serialize)]
pub struct MakerFigures {
    /// The maker.
    pub maker: String,
    /// Compactions.
    pub compactions: u64,
    /// Mean estimated tokens of the conversation before and after.
    pub tokens: (u64, u64),
    /// Mean tokens of the summary.
    pub summary_tokens: u64,
    /// Share of the facts used next that the new context shows; none without such facts.
    pub facts_kept: Option<f64>,
    /// 95% interval of that share, by resampling sessions.
    pub facts_interval: Option<(f64, f64)>,
    /// Characters per compaction that the agent reads again and the new context lacks.
    pub reread_characters: u64,
    /// Share of the files used next that the new context shows.
    pub files_shown: Option<f64>,
    /// Share of the user's constraints that the new context repeats.
    pub constraints_kept: Option<f64>,
    /// Share of the summary's distinctive words that the agent writes later.
    pub summary_used: Option<f64>,
    /// Median number of calls until the agent edits a file.
    pub calls_to_edit: Option<u64>,
    /// Median growth until the next compaction, in tokens per minute.
    pub tokens_per_minute: Option<f64>,
}

/// Results of a fidelity run.
#[derive(Clone, Debug, Serialize)]
pub struct FidelityReport {
    /// Sessions that were measured.
    pub sessions: usize,
    /// Sums by maker, in order of name.
    pub makers: Vec<MakerFigures>,
    /// Characters that agents read again per 30 calls where no compaction precedes; none without such calls.
    pub reread_baseline: Option<u64>,
    /// All compactions.
    pub compactions: Vec<CompactionFigures>,
    /// Sessions that could not be measured, with the reason.
    pub failures: Vec<String>,
}

impl FidelityReport {
    pub(crate) fn new(
        sessions: usize,
        compactions: Vec<CompactionFigures>,
        baseline: RereadBaseline,
        failures: Vec<String>,
    ) -> FidelityReport {
        let mut by_maker: BTreeMap<&str, Vec<&CompactionFigures>> = BTreeMap::new();
        for figures in &compactions {
            by_maker.entry(&figures.maker).or_default().push(figures);
        }
        let makers = by_maker.iter().map(|(maker, all)| MakerFigures::of(maker, all)).collect();
        let per_calls = (baseline.calls > 0)
            .then(|| (baseline.characters as f64 * NEXT_CALLS as f64 / baseline.calls as f64) as u64);
        FidelityReport { sessions, makers, reread_baseline: per_calls, compactions, failures }
    }

    /// Writes `fidelity.md`, `fidelity.json` and `fidelity.svg` into a folder, which is made if it is not there. Returns the files.
    pub fn write(&self, folder: &Path) -> Result<Vec<PathBuf>, EvalReportError> {
        let json = serde_json::to_string_pretty(self).unwrap_or_default();
        let files =
            [("fidelity.svg", self.chart()), ("fidelity.json", json), ("fidelity.md", self.markdown())];
        write_report(folder, files.into_iter().map(|(name, text)| (name.to_owned(), text)))
    }

    /// The report as Markdown.
    pub fn markdown(&self) -> String {
        let mut text = format!(
            "# Fidelity of compactions\n\n{} sessions, {} compactions. Method and limits: `docs/proof.md` of Palimpsest.\n\n![facts kept](fidelity.svg)\n\n",
            self.sessions,
            self.compactions.len()
        );
        text.push_str(
            "| compaction by | number | tokens before → after | summary | facts used next: kept | 95% interval | characters read again, each | files used next: shown | constraints kept | summary used | calls to the first edit | tokens/min after |\n\
             | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
        );
        for maker in &self.makers {
            let percent = |share: Option<f64>| {
                share.map_or_else(|| "–".to_owned(), |share| format!("{:.1}%", 100.0 * share))
            };
            let interval = maker.facts_interval.map_or_else(
                || "–".to_owned(),
                |(low, high)| format!("{:.1}–{:.1}%", 100.0 * low, 100.0 * high),
            );
            let _ = writeln!(
                text,
                "| {} | {} | {} → {} | {} | {} | {interval} | {} | {} | {} | {} | {} | {} |",
                maker.maker,
                maker.compactions,
                group_digits(maker.tokens.0),
                group_digits(maker.tokens.1),
                group_digits(maker.summary_tokens),
                percent(maker.facts_kept),
                group_digits(maker.reread_characters),
                percent(maker.files_shown),
                percent(maker.constraints_kept),
                percent(maker.summary_used),
                maker.calls_to_edit.map_or_else(|| "–".to_owned(), group_digits),
                maker.tokens_per_minute.map_or_else(|| "–".to_owned(), |rate| group_digits(rate as u64)),
            );
        }
        if let Some(baseline) = self.reread_baseline {
            let _ = writeln!(
                text,
                "\nWithout a compaction before, agents read {} characters again per 30 calls.",
                group_digits(baseline)
            );
        }
        self.worst(&mut text);
        if !self.failures.is_empty() {
            text.push_str("\n## Not measured\n\n");
            self.failures.iter().for_each(|failure| text.push_str(&format!("- {failure}\n")));
        }
        text
    }

    /// The compactions of each maker that lost most facts.
    fn worst(&self, text: &mut String) {
        text.push_str("\n## Most facts lost\n");
        for maker in &self.makers {
            let mut all: Vec<&CompactionFigures> =
                self.compactions.iter().filter(|figures| figures.maker == maker.maker).collect();
            all.sort_by_key(|figures| std::cmp::Reverse(figures.facts.0 - figures.facts.1));
            let _ = writeln!(text, "\n### {}\n", maker.maker);
            for figures in all.into_iter().take(WORST_MAX) {
                let _ = writeln!(
                    text,
                    "- {}, before call {}: {} of {} lost: {}",
                    figures.session,
                    figures.call,
                    figures.facts.0 - figures.facts.1,
                    figures.facts.0,
                    figures
                        .lost
                        .iter()
                        .map(|word| format!("`{}`", word.replace('`', "'")))
                        .collect::<Vec<_>>()
                        .join(", ")
                );
            }
        }
    }

    /// Share of the facts used next that each maker keeps, with its interval.
    fn chart(&self) -> String {
        const ROW: f64 = 30.0;
        const LEFT: f64 = 250.0;
        const WIDTH: f64 = 400.0;
        let makers: Vec<&MakerFigures> =
            self.makers.iter().filter(|maker| maker.facts_kept.is_some()).collect();
        let height = 70.0 + ROW * makers.len() as f64;
        let mut picture = SvgPicture::new(LEFT + WIDTH + 90.0, height);
        picture.text("ink title", TextAnchor::Start, (16.0, 26.0), "Facts used next that a compaction keeps");
        for (at, maker) in makers.iter().enumerate() {
            let y = 46.0 + ROW * at as f64;
            let kept = maker.facts_kept.unwrap_or_default();
            let class = if is_ours(&maker.maker) { "ours" } else { "peers" };
            picture.text("ink", TextAnchor::End, (LEFT - 10.0, y + 15.0), &maker.maker);
            picture.bar(class, (LEFT, y), (WIDTH * kept, 20.0));
            if let Some((low, high)) = maker.facts_interval {
                picture.line(
                    "axis",
                    false,
                    &[(LEFT + WIDTH * low, y + 10.0), (LEFT + WIDTH * high, y + 10.0)],
                );
            }
            let end = LEFT + WIDTH * maker.facts_interval.map_or(kept, |(_, high)| high.max(kept)) + 8.0;
            picture.text("ink", TextAnchor::Start, (end, y + 15.0), &format!("{:.0}%", 100.0 * kept));
        }
        picture.finish()
    }
}

/// Returns true for compactions of this project.
fn is_ours(maker: &str) -> bool {
    maker.starts_with(EXTRACTED)
        || maker.starts_with(NOTES)
        || crate::comparison::find_policy_row(maker).is_some_and(|row| row.is_ours)
}

impl MakerFigures {
    fn of(maker: &str, all: &[&CompactionFigures]) -> MakerFigures {
        let count = all.len().max(1) as u64;
        let sum = |of: &dyn Fn(&CompactionFigures) -> u64| all.iter().map(|figures| of(figures)).sum::<u64>();
        let share = |of: &dyn Fn(&CompactionFigures) -> (u64, u64)| {
            let (whole, part) = (sum(&|figures| of(figures).0), sum(&|figures| of(figures).1));
            (whole > 0).then(|| part as f64 / whole as f64)
        };
        let mut by_session: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
        for figures in all {
            let pair = by_session.entry(&figures.session).or_default();
            pair.0 += figures.facts.1 as f64;
            pair.1 += figures.facts.0 as f64;
        }
        let pairs: Vec<(f64, f64)> = by_session.into_values().collect();
        MakerFigures {
            maker: maker.to_owned(),
            compactions: all.len() as u64,
            tokens: (sum(&|figures| figures.tokens.0) / count, sum(&|figures| figures.tokens.1) / count),
            summary_tokens: sum(&|figures| figures.summary_tokens) / count,
            facts_kept: share(&|figures| figures.facts),
            facts_interval: ratio_interval(&pairs),
            reread_characters: sum(&|figures| figures.reread_characters.1) / count,
            files_shown: share(&|figures| figures.files),
            constraints_kept: share(&|figures| figures.constraints),
            summary_used: share(&|figures| figures.summary_words),
            calls_to_edit: median(
                all.iter().filter_map(|figures| figures.calls_to_edit).map(|calls| calls as f64),
            )
            .map(|calls| calls as u64),
            tokens_per_minute: median(all.iter().filter_map(|figures| figures.tokens_per_minute)),
        }
    }
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
