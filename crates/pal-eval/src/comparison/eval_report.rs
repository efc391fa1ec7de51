//! Report of an evaluation: Markdown, JSON and charts.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::comparison::charts;
use crate::comparison::line_uses::AIM;
use crate::comparison::policy_comparison::{EvalTable, EvalTotals, PolicyComparison};

/// A file of the report that could not be written.
#[derive(Debug, thiserror::Error)]
#[error("{} cannot be written: {error}", path.display())]
pub struct EvalReportError {
    /// Which file.
    pub path: PathBuf,
    /// Why.
    pub error: String,
}

/// Writes the files of a report into a folder, which is made if it is not there. Returns their paths.
pub(crate) fn write_report(
    folder: &Path,
    files: impl IntoIterator<Item = (String, String)>,
) -> Result<Vec<PathBuf>, EvalReportError> {
    let failed = |path: &Path, error: String| EvalReportError { path: path.to_owned(), error };
    pal_store::create_private_directory(folder).map_err(|error| failed(folder, error.to_string()))?;
    let mut written = Vec::new();
    for (name, text) in files {
        let path = folder.join(name);
        pal_store::replace_private_file(&path, text.as_bytes())
            .map_err(|error| failed(&path, error.to_string()))?;
        written.push(path);
    }
    Ok(written)
}

impl PolicyComparison {
    /// Writes `report.md`, `report.json` and the charts into a folder, which is made if it is not there. Returns the files.
    pub fn write(&self, folder: &Path) -> Result<Vec<PathBuf>, EvalReportError> {
        let mut files = vec![(String::from("cost.svg"), charts::costs(self))];
        for table in &self.tables {
            files.extend(charts::faults(table).map(|chart| (format!("{}.svg", name(table)), chart)));
        }
        files.push((String::from("forecast.svg"), charts::forecast(&self.forecast)));
        let json = serde_json::to_string_pretty(self).unwrap_or_default();
        files.push((String::from("report.json"), json));
        files.push((String::from("report.md"), self.markdown()));
        write_report(folder, files)
    }

    /// The report as Markdown.
    pub fn markdown(&self) -> String {
        let mut text = format!(
            "# Policy comparison\n\n{} sessions of {} repositories, {} calls. What `cost-aware` expects is fitted, for each session, to the other repositories. Method, assumptions and limits: `docs/eval.md` of Palimpsest.\n\n![cost](cost.svg)\n",
            self.sessions, self.repositories, self.calls
        );
        for table in &self.tables {
            self.table(&mut text, table);
        }
        self.forecasting(&mut text);
        self.condensing(&mut text);
        if !self.failures.is_empty() {
            text.push_str("\n## Not measured\n\n");
            self.failures.iter().for_each(|failure| text.push_str(&format!("- {failure}\n")));
        }
        text
    }

    fn forecasting(&self, text: &mut String) {
        text.push_str("\n## The forecast of `cost-aware`\n\n| what was said | said | came | cases |\n| --- | --- | --- | --- |\n");
        let of = [
            ("goes on for a while", &self.forecast.turns),
            ("a pause over 5 minutes", &self.forecast.pauses),
        ];
        for (what, bins) in of {
            for bin in bins {
                text.push_str(&format!(
                    "| {what} | {:.1} % | {:.1} % | {} |\n",
                    100.0 * bin.predicted,
                    100.0 * bin.actual,
                    bin.cases
                ));
            }
        }
        text.push_str("\n![forecast](forecast.svg)\n");
    }

    fn condensing(&self, text: &mut String) {
        text.push_str(
            "\n## What condensing saves, and what it leaves out\n\nA line is used again when the agent soon names a path, number or identifier that only it had told.\n\n\
             | aims at | taken for | results | K characters | of these kept | lines | left out | used again | left out |\n\
             | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
        );
        for row in &self.condensing {
            let sum = &row.sum;
            text.push_str(&format!(
                "| {} | {} | {} | {} | {:.0} % | {} | {} | {} | {} |\n",
                row.aim,
                row.by,
                sum.results,
                sum.characters.0 / 1_000,
                100.0 * sum.characters.1 as f64 / sum.characters.0.max(1) as f64,
                sum.lines.0,
                sum.lines.1,
                sum.used.0,
                sum.used.1,
            ));
        }
        text.push_str(&format!(
            "\nBy tool, all results, at {AIM} characters:\n\n\
             | results of | number | K characters | on lines that are used again | left out by condensing | lines used again | left out |\n\
             | --- | --- | --- | --- | --- | --- | --- |\n",
        ));
        for (tool, sum) in &self.tools {
            let (before, after) = sum.characters;
            let percent = |part: u64| 100.0 * part as f64 / before.max(1) as f64;
            text.push_str(&format!(
                "| {tool} | {} | {} | {:.1} % | {:.1} % | {} | {} |\n",
                sum.results,
                before / 1_000,
                percent(sum.used_characters),
                percent(before.saturating_sub(after)),
                sum.used.0,
                sum.used.1,
            ));
        }
    }

    fn table(&self, text: &mut String, table: &EvalTable) {
        let model = table.model.as_deref().unwrap_or("each session's own model");
        let mut line = |line: std::fmt::Arguments<'_>| {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{line}");
        };
        line(format_args!("\n## Window {}, {model}\n", table.window));
        line(format_args!("Money is over the {} sessions whose prices are known.\n", table.priced));
        line(format_args!(
            "| policy | cost | with re-reads | ÷ none | 95% interval | ÷ threshold | ÷ optimum | worst session ÷ none | cache hits | compactions | page faults | of these after clearing | K characters missing | of these re-read after a compaction | refused | engine µs (median, most) |"
        ));
        line(format_args!(
            "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
        ));
        for row in &table.rows {
            line(format_args!("{}", cells(row)));
        }
        if let Some(least) = table.frontier.first() {
            line(format_args!(
                "| *offline optimum* | ${:.2} | ${:.2} | | | | 1.00 | | | {} | {} | | | | | |",
                least.total_usd - least.loss_usd,
                least.total_usd,
                least.compactions,
                least.page_faults
            ));
            line(format_args!(
                "\nIf lost content cost nothing, the least would be ${:.2}. The frontier, page faults dearer and dearer:\n",
                table.limit_plain_usd
            ));
            for point in &table.frontier {
                line(format_args!(
                    "- ${:.2} at {} page faults, {} compactions",
                    point.total_usd, point.page_faults, point.compactions
                ));
            }
        }
        if let Some(birth) = table.row("birth").filter(|birth| birth.compactions == 0) {
            line(format_args!(
                "\nCheck of the rules of the offline optimum: dropping nothing costs ${:.2} by them and ${:.2} in the replay of `birth`.",
                table.kept_usd, birth.cost_usd
            ));
        }
        line(format_args!("\n![faults]({}.svg)", name(table)));
        let beaten: Vec<String> = table
            .by_session
            .iter()
            .filter_map(|session| {
                let (_, limit) = session.limit_usd?;
                let best = session.rows.iter().filter_map(|(name, cell)| Some((*name, cell.total_usd()?)));
                let (name, usd) = best.min_by(|one, other| one.1.total_cmp(&other.1))?;
                (usd < limit * 0.995)
                    .then(|| format!("{} by {name} (${usd:.3} to ${limit:.3})", session.session))
            })
            .collect();
        if !beaten.is_empty() {
            line(format_args!("\nReplays below the limit (its sizes are estimates): {}.", beaten.join("; ")));
        }
    }
}

fn cells(row: &EvalTotals) -> String {
    let ratio = |ratio: Option<f64>| ratio.map_or(String::from("–"), |ratio| format!("{ratio:.3}"));
    format!(
        "| `{}` | ${:.2} | ${:.2} | {} | {} | {} | {} | {} | {:.1} % | {} | {} | {} | {} | {} | {} | {}, {} |",
        row.name,
        row.cost_usd,
        row.total_usd,
        ratio(row.against_none),
        row.against_none_interval.map_or(String::from("–"), |(low, high)| format!("{low:.3}–{high:.3}")),
        ratio(row.against_classic),
        ratio(row.against_clairvoyant),
        ratio(row.worst_against_none),
        100.0 * row.hit_ratio,
        row.compactions,
        row.page_faults,
        row.cleared_faults,
        row.fault_characters / 1_000,
        row.again_characters / 1_000,
        row.refused,
        row.engine_us.0,
        row.engine_us.1,
    )
}

/// The name of a table's chart.
fn name(table: &EvalTable) -> String {
    let model = table.model.as_deref().map(|model| {
        let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
        format!("-{}", model.chars().map(plain).collect::<String>())
    });
    format!("faults-{}{}", table.window, model.unwrap_or_default())
}
