//! Background runs (§10.9): usage, cost and written files, by source and day.

use std::collections::BTreeMap;
use std::process::ExitCode;

use pal_background::{BackgroundLedger, BackgroundRun, read_background_ledger};
use pal_model::text::group_digits;
use pal_report::{TextTable, sanitize};
use serde_json::json;

use super::MemoryCommandRun;
use crate::failure::Failure;
use crate::open_session::now;
use crate::terminal_style::auto_style;

impl MemoryCommandRun<'_> {
    pub(super) fn ledger(&mut self, by_run: bool) -> Result<ExitCode, Failure> {
        let home = self.settings.home.as_deref().unwrap_or(&self.root);
        let BackgroundLedger { runs, unreadable } = read_background_ledger(home)
            .map_err(|error| Failure::of_file(&home.join("background"), &error))?;
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
            writeln!(self.out, "No background runs yet.")?;
        } else {
            table(&rows, by_run).write(auto_style(), self.out)?;
        }
        let (taken, most) = (group_digits(taken), group_digits(most));
        writeln!(self.out, "today {taken} of {most} tokens; cache reads count a tenth")?;
        if unreadable > 0 {
            writeln!(self.out, "{unreadable} truncated lines could not be read")?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Sums the runs by day and source.
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

fn table(rows: &[BackgroundRun], by_run: bool) -> TextTable {
    const RUNS: [&str; 9] =
        ["started", "source", "session", "requests", "prompt", "cached", "output", "cost", "wrote"];
    const DAYS: [&str; 9] =
        ["day", "source", "runs", "requests", "prompt", "cached", "output", "cost", "wrote"];
    let mut table = match by_run {
        true => TextTable::new(&RUNS, &[0, 1, 2, 8]),
        false => TextTable::new(&DAYS, &[0, 1, 8]),
    };
    for row in rows {
        let share = match row.prompt {
            0 => "–".to_owned(),
            prompt => format!("{:.1}%", 100.0 * row.cached as f64 / prompt as f64),
        };
        let wrote = match row.wrote.as_slice() {
            [] => "nothing".to_owned(),
            [file] => sanitize(file),
            files => format!("{} files", files.len()),
        };
        let (first, third) = match by_run {
            true => (row.begun.to_string(), sanitize(&row.session)),
            false => (sanitize(&row.day), group_digits(row.runs)),
        };
        table.push_row(vec![
            first,
            sanitize(&row.source),
            third,
            group_digits(row.requests),
            group_digits(row.prompt),
            share,
            group_digits(row.output),
            row.cost_usd.map_or_else(|| "–".to_owned(), |cost| format!("${cost:.4}")),
            if row.is_over { wrote } else { format!("{wrote} (not finished)") },
        ]);
    }
    table
}
