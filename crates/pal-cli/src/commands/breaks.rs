//! `pal breaks`: where a session lost what the provider had cached, why, and what that cost.

mod diff;

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use pal_context::{Fall, FallTotals, Ledger, LedgerRow};
use serde_json::{Value, json};

use crate::arguments::Breaks;
use crate::books::{Books, heading};
use crate::colour::{Colours, clipped, columns, wrapped};
use crate::failure::Failure;
use crate::settings::Settings;
use crate::table::{Table, counted, harmless, harmless_lines, money, percent, thousands};

pub(crate) fn breaks(
    arguments: &Breaks,
    settings: &Settings,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    let books = Books::open(arguments.session.as_deref(), settings)?;
    let directory = books.path.parent().unwrap_or(Path::new(".")).to_owned();
    let page = Page {
        ledger: &books.ledger,
        name: &books.name,
        diffs: arguments.diff.then_some(directory.as_path()),
        with_expected: arguments.all,
        colours: Colours::of(arguments.colour),
        columns: columns(),
    };
    if arguments.json {
        writeln!(out, "{}", page.as_json(&books.path))?;
    } else {
        page.print(out)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What is printed.
struct Page<'a> {
    ledger: &'a Ledger,
    name: &'a str,
    /// The folder of the session, if diffs are wanted.
    diffs: Option<&'a Path>,
    with_expected: bool,
    colours: Colours,
    columns: usize,
}

impl Page<'_> {
    fn print(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let breaks: Vec<_> = self.ledger.breaks().collect();
        let heading = heading(self.name, &self.headline(&breaks), self.columns);
        writeln!(out, "{}", self.colours.bold(&heading))?;
        if let Some(share) = self.ledger.all.share_read() {
            writeln!(out, "{} of all prompt tokens were read from the cache.", percent(share))?;
        }
        for (row, fall) in &breaks {
            self.fall(row, fall, out)?;
        }
        if breaks.len() > 1 {
            self.causes(out)?;
        }
        self.expected(out)
    }

    fn headline(&self, breaks: &[(&LedgerRow, &Fall)]) -> String {
        let mut totals = FallTotals::default();
        breaks.iter().for_each(|(_, fall)| totals.add(&fall.what));
        match breaks.len() {
            0 if self.ledger.rows.is_empty() => String::from("nothing was asked"),
            0 if self.ledger.all.share_read().is_none() => {
                String::from("what was read from the cache was not reported")
            }
            0 => String::from("no breaks of the cache"),
            count => {
                let cost = cost_of(&totals).map_or(String::new(), |cost| format!(", {cost}"));
                format!("{} of the cache, {} tokens{cost}", counted(count, "break"), thousands(totals.tokens))
            }
        }
    }

    /// One fall: where and when, how much, why.
    fn fall(&self, row: &LedgerRow, fall: &Fall, out: &mut dyn Write) -> Result<(), Failure> {
        const INDENT: &str = "    ";
        let what = &fall.what;
        let when = row
            .started
            .map_or(String::new(), |at| at.to_string().get(..19).unwrap_or_default().replace('T', " "));
        let whom = if row.source.as_str() == "main" {
            String::new()
        } else {
            format!(" of {}", harmless(row.source.as_str()))
        };
        let cost = what.cost.map_or(String::from("price not known"), money);
        writeln!(out)?;
        let place = self.colours.bold(&format!("request {}{whom}", row.number));
        writeln!(out, "{place}  {when}  {} tokens, {cost}", thousands(what.tokens))?;
        for line in wrapped(&harmless(&what.cause.to_string()), self.columns - INDENT.len()) {
            writeln!(out, "{INDENT}{}", self.colours.yellow(&line))?;
        }
        if let Some(provider) = &what.provider {
            let said = match provider.as_str() {
                "none" => String::from("the provider sees no difference"),
                reason => format!("the provider says: {}", harmless(&reason.replace('_', " "))),
            };
            writeln!(out, "{INDENT}{}", clipped(&said, self.columns - INDENT.len()))?;
        }
        match &what.diff {
            Some(path) => self.diff(path, out)?,
            None if self.diffs.is_some() => writeln!(out, "{INDENT}no diff was kept")?,
            None => {}
        }
        Ok(())
    }

    fn diff(&self, path: &str, out: &mut dyn Write) -> Result<(), Failure> {
        let Some(directory) = self.diffs else {
            writeln!(out, "    what changed: {} (--diff shows it)", harmless(path))?;
            return Ok(());
        };
        match diff::read(directory, path) {
            Ok(text) => {
                for line in harmless_lines(&text).lines() {
                    let line = match line.as_bytes().first() {
                        Some(b'+') => self.colours.green(line),
                        Some(b'-') => self.colours.painted("31", line),
                        Some(b'@') => self.colours.cyan(line),
                        _ => line.to_owned(),
                    };
                    writeln!(out, "    {line}")?;
                }
            }
            Err(why) => writeln!(out, "    what changed: {}", harmless(&why))?,
        }
        Ok(())
    }

    /// Sums by cause.
    fn causes(&self, out: &mut dyn Write) -> Result<(), Failure> {
        writeln!(out)?;
        let mut table = Table::new(&["cause", "breaks", "tokens", "cost"], &[0]);
        for (name, totals) in self.ledger.falls_by_cause().iter().filter(|(name, _)| *name != "expected") {
            let cost = cost_of(totals).unwrap_or(String::from("–"));
            table.row(vec![title(name).into(), thousands(totals.falls), thousands(totals.tokens), cost]);
        }
        table.write(out)?;
        Ok(())
    }

    /// Falls that were announced.
    fn expected(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let expected: Vec<_> =
            self.ledger.falls().filter(|(_, fall)| fall.what.cause.is_expected()).collect();
        let mut totals = FallTotals::default();
        expected.iter().for_each(|(_, fall)| totals.add(&fall.what));
        if expected.is_empty() {
            return Ok(());
        }
        writeln!(out)?;
        let cost = cost_of(&totals).map_or(String::new(), |cost| format!(", {cost}"));
        let hint = if self.with_expected { ":" } else { "; --all lists them" };
        let count = counted(expected.len(), "expected fall");
        writeln!(out, "{count}, {} tokens{cost}{hint}", thousands(totals.tokens))?;
        if self.with_expected {
            for (row, fall) in expected {
                self.fall(row, fall, out)?;
            }
        }
        Ok(())
    }

    fn as_json(&self, path: &Path) -> Value {
        let listed = |is_expected: bool| -> Vec<Value> {
            let falls = self.ledger.falls().filter(|(_, fall)| fall.what.cause.is_expected() == is_expected);
            falls.map(|(row, fall)| self.fall_as_json(row, fall)).collect()
        };
        let causes: serde_json::Map<String, Value> = self
            .ledger
            .falls_by_cause()
            .iter()
            .map(|(name, totals)| {
                let totals =
                    json!({"falls": totals.falls, "tokens": totals.tokens, "cost": cost_number(totals)});
                ((*name).to_owned(), totals)
            })
            .collect();
        json!({
            "session": path.to_string_lossy(), "name": self.name, "share_read": self.ledger.all.share_read(),
            "breaks": listed(false), "expected": listed(true), "by_cause": causes,
        })
    }

    fn fall_as_json(&self, row: &LedgerRow, fall: &Fall) -> Value {
        let what = &fall.what;
        let mut value = json!({
            "request": row.number, "source": row.source, "model": row.model, "started": row.started,
            "tokens": what.tokens, "cost": what.cost, "cause": what.cause.name(), "details": what.cause,
            "why": harmless(&what.cause.to_string()), "provider": what.provider, "diff": what.diff, "recorded": fall.is_recorded,
        });
        if let (Some(directory), Some(path)) = (self.diffs, &what.diff) {
            value["diff_text"] = json!(diff::read(directory, path).ok());
        }
        value
    }
}

/// What a group of causes is called.
fn title(cause_name: &str) -> &str {
    match cause_name {
        "expired" => "time passed",
        "model" => "another model",
        "unseen" => "not in the transcript",
        "provider" => "the provider",
        "look_back" => "too many blocks at once",
        "tool_choice" => "tool choice",
        "member" => "request member",
        other => other,
    }
}

fn cost_number(totals: &FallTotals) -> Option<f64> {
    (totals.falls > totals.unpriced).then_some(totals.cost)
}

/// What falls cost, if that is known of any.
fn cost_of(totals: &FallTotals) -> Option<String> {
    cost_number(totals).map(money)
}
