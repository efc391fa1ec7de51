//! What was done in the background (§10.9): what each run took and wrote, by source and day.

use std::collections::BTreeMap;
use std::process::ExitCode;

use pal_agent::{Background, BackgroundRun, background};
use serde_json::json;

use super::Desk;
use crate::failure::Failure;
use crate::stored::now;
use crate::table::{Table, harmless, thousands};

impl Desk<'_> {
    pub(super) fn ledger(&mut self, by_run: bool) -> Result<ExitCode, Failure> {
        let home = self.settings.home.as_deref().unwrap_or(&self.root);
        let Background { runs, unreadable } =
            background(home).map_err(|error| Failure::of_file(&home.join("background"), &error))?;
        let rows = if by_run { runs } else { by_source_and_day(&runs) };
        let today: String = now().to_string().chars().take_while(|c| *c != 'T').collect();
        let taken: u64 = rows.iter().filter(|row| row.day == today).map(|row| row.counted).sum();
        let most = self.settings.background_tokens_daily;
        if self.is_json {
            let ledger =
                json!({"rows": rows, "unreadable": unreadable, "today": taken, "tokens_per_day": most});
            writeln!(self.out, "{ledger}")?;
            return Ok(ExitCode::SUCCESS);
        }
        if rows.is_empty() {
            writeln!(self.out, "Nothing was done in the background yet.")?;
        } else {
            table(&rows, by_run).write(self.out)?;
        }
        let (taken, most) = (thousands(taken), thousands(most));
        writeln!(self.out, "today {taken} of {most} tokens; those from the cache count a tenth")?;
        if unreadable > 0 {
            writeln!(self.out, "{unreadable} lines could not be read: something cut them off")?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// One row for each source of each day, with the runs that it had as what is written.
fn by_source_and_day(runs: &[BackgroundRun]) -> Vec<BackgroundRun> {
    let mut rows: BTreeMap<(&str, &str), BackgroundRun> = BTreeMap::new();
    for run in runs {
        let row = rows.entry((&run.day, &run.source)).or_insert_with(|| BackgroundRun {
            day: run.day.clone(),
            source: run.source.clone(),
            begun: run.begun,
            is_over: true,
            ..BackgroundRun::default()
        });
        row.absorb(run);
        row.is_over &= run.is_over;
    }
    rows.into_values().collect()
}

fn table(rows: &[BackgroundRun], by_run: bool) -> Table {
    const RUNS: [&str; 9] =
        ["begun", "source", "session", "requests", "prompt", "cached", "output", "cost", "wrote"];
    const DAYS: [&str; 9] =
        ["day", "source", "runs", "requests", "prompt", "cached", "output", "cost", "wrote"];
    let mut table = match by_run {
        true => Table::new(&RUNS, &[0, 1, 2, 8]),
        false => Table::new(&DAYS, &[0, 1, 8]),
    };
    for row in rows {
        let share = match row.prompt {
            0 => "–".to_owned(),
            prompt => format!("{:.1} %", 100.0 * row.cached as f64 / prompt as f64),
        };
        let wrote = match row.wrote.as_slice() {
            [] => "nothing".to_owned(),
            [file] => harmless(file),
            files => format!("{} files", files.len()),
        };
        let (first, third) = match by_run {
            true => (row.begun.to_string(), harmless(&row.session)),
            false => (harmless(&row.day), thousands(row.runs)),
        };
        table.row(vec![
            first,
            harmless(&row.source),
            third,
            thousands(row.requests),
            thousands(row.prompt),
            share,
            thousands(row.output),
            row.cost_usd.map_or_else(|| "–".to_owned(), |cost| format!("${cost:.4}")),
            if row.is_over { wrote } else { format!("{wrote} (not ended)") },
        ]);
    }
    table
}
