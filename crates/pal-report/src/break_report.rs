//! Cache breaks of a session: the requests that read less from the cache than expected, the causes, the cost.

mod request_diff;

use std::io::{self, Write};
use std::path::Path;

use pal_context::{CostLedger, DropTotals, LedgerDrop, LedgerRow};
use pal_model::text::{count_noun, group_digits};
use serde_json::{Value, json};

use crate::text_layout::{clip_line, heading_line, sanitize, sanitize_lines, wrap_lines};
use crate::text_style::TextStyle;
use crate::text_table::TextTable;
use crate::units::{format_percent, format_usd};

/// Cache breaks of a session with their causes and cost, and the expected cache-read drops.
pub struct BreakReport<'a> {
    /// Name of the session for people.
    pub name: &'a str,
    /// Log of the session; stored diffs are read only from its directory.
    pub path: &'a Path,
    /// Requests of the session and their cache-read drops.
    pub ledger: &'a CostLedger,
    /// Include the text of stored request diffs.
    pub with_diffs: bool,
    /// List the expected cache-read drops, too.
    pub with_expected: bool,
}

impl BreakReport<'_> {
    /// Writes the report for people, in at most `columns` columns.
    pub fn write_text(&self, style: TextStyle, columns: usize, out: &mut dyn Write) -> io::Result<()> {
        BreakPage { report: self, ledger: self.ledger, diffs: self.diff_directory(), style, columns }
            .print(out)
    }

    fn diff_directory(&self) -> Option<&Path> {
        self.with_diffs.then(|| self.path.parent().unwrap_or(Path::new(".")))
    }

    /// Returns the report as one JSON object.
    pub fn to_json(&self) -> Value {
        let listed = |is_expected: bool| -> Vec<Value> {
            let cache_drops = self
                .ledger
                .drops()
                .filter(|(_, cache_drop)| cache_drop.cache_break.cause.is_expected() == is_expected);
            cache_drops.map(|(row, cache_drop)| self.cache_drop_as_json(row, cache_drop)).collect()
        };
        let causes: serde_json::Map<String, Value> = self
            .ledger
            .drops_by_cause()
            .iter()
            .map(|(name, totals)| {
                let totals =
                    json!({"falls": totals.drops, "tokens": totals.tokens, "cost": cost_number(totals)});
                ((*name).to_owned(), totals)
            })
            .collect();
        json!({
            "session": self.path.to_string_lossy(), "name": self.name, "share_read": self.ledger.all.share_read(),
            "breaks": listed(false), "expected": listed(true), "by_cause": causes,
        })
    }

    fn cache_drop_as_json(&self, row: &LedgerRow, cache_drop: &LedgerDrop) -> Value {
        let what = &cache_drop.cache_break;
        let mut value = json!({
            "request": row.number, "source": row.source, "model": row.model, "started": row.started,
            "tokens": what.tokens, "cost": what.cost, "cause": what.cause.name(), "details": what.cause,
            "why": sanitize(&what.reason()), "also": what.also, "provider": what.provider, "diff": what.diff, "recorded": cache_drop.is_recorded,
        });
        if let (Some(directory), Some(path)) = (self.diff_directory(), &what.diff) {
            value["diff_text"] = json!(request_diff::read_diff(directory, path).ok());
        }
        value
    }
}

/// The report as it is laid out for people.
struct BreakPage<'a> {
    report: &'a BreakReport<'a>,
    ledger: &'a CostLedger,
    /// Directory of the session, if diffs are wanted.
    diffs: Option<&'a Path>,
    style: TextStyle,
    columns: usize,
}

impl BreakPage<'_> {
    fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let breaks: Vec<_> = self.ledger.breaks().collect();
        let heading = heading_line(self.report.name, &self.headline(&breaks), self.columns);
        writeln!(out, "{}", self.style.bold(&heading))?;
        if let Some(share) = self.ledger.all.share_read() {
            writeln!(out, "{} of all prompt tokens were read from the cache.", format_percent(share))?;
        }
        for (row, cache_drop) in &breaks {
            self.write_drop(row, cache_drop, out)?;
        }
        if breaks.len() > 1 {
            self.causes(out)?;
        }
        self.expected(out)
    }

    fn headline(&self, breaks: &[(&LedgerRow, &LedgerDrop)]) -> String {
        let mut totals = DropTotals::default();
        breaks.iter().for_each(|(_, cache_drop)| totals.add(&cache_drop.cache_break));
        match breaks.len() {
            0 if self.ledger.rows.is_empty() => String::from("no requests"),
            0 if self.ledger.all.share_read().is_none() => String::from("cache reads not reported"),
            0 => String::from("no cache breaks"),
            count => {
                let cost = cost_of(&totals).map_or(String::new(), |cost| format!(", {cost}"));
                format!("{}, {} tokens{cost}", count_noun(count, "cache break"), group_digits(totals.tokens))
            }
        }
    }

    /// One cache-read drop: request, time, tokens, cost and cause.
    fn write_drop(&self, row: &LedgerRow, cache_drop: &LedgerDrop, out: &mut dyn Write) -> io::Result<()> {
        const INDENT: &str = "    ";
        let what = &cache_drop.cache_break;
        let when = row
            .started
            .map_or(String::new(), |at| at.to_string().get(..19).unwrap_or_default().replace('T', " "));
        let whom = if row.source.as_str() == "main" {
            String::new()
        } else {
            format!(" of {}", sanitize(row.source.as_str()))
        };
        let cost = what.cost.map_or(String::from("price not known"), format_usd);
        writeln!(out)?;
        let place = self.style.bold(&format!("request {}{whom}", row.number));
        writeln!(out, "{place}  {when}  {} tokens, {cost}", group_digits(what.tokens))?;
        for line in wrap_lines(&sanitize(&what.reason()), self.columns - INDENT.len()) {
            writeln!(out, "{INDENT}{}", self.style.yellow(&line))?;
        }
        if let Some(provider) = &what.provider {
            let said = match provider.as_str() {
                "none" => String::from("the provider reports no difference"),
                reason => format!("the provider reports: {}", sanitize(&reason.replace('_', " "))),
            };
            writeln!(out, "{INDENT}{}", clip_line(&said, self.columns - INDENT.len()))?;
        }
        match &what.diff {
            Some(path) => self.diff(path, out)?,
            None if self.diffs.is_some() => writeln!(out, "{INDENT}no diff was stored")?,
            None => {}
        }
        Ok(())
    }

    fn diff(&self, path: &str, out: &mut dyn Write) -> io::Result<()> {
        let Some(directory) = self.diffs else {
            writeln!(out, "    diff: {} (--diff shows it)", sanitize(path))?;
            return Ok(());
        };
        match request_diff::read_diff(directory, path) {
            Ok(text) => {
                for line in sanitize_lines(&text).lines() {
                    let line = match line.as_bytes().first() {
                        Some(b'+') => self.style.green(line),
                        Some(b'-') => self.style.paint("31", line),
                        Some(b'@') => self.style.cyan(line),
                        _ => line.to_owned(),
                    };
                    writeln!(out, "    {line}")?;
                }
            }
            Err(why) => writeln!(out, "    diff: {}", sanitize(&why))?,
        }
        Ok(())
    }

    /// Sums by cause.
    fn causes(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out)?;
        let mut table = TextTable::new(&["cause", "breaks", "tokens", "cost"], &[0]);
        for (name, totals) in self.ledger.drops_by_cause().iter().filter(|(name, _)| *name != "expected") {
            let cost = cost_of(totals).unwrap_or(String::from("–"));
            table.push_row(vec![
                title(name).into(),
                group_digits(totals.drops),
                group_digits(totals.tokens),
                cost,
            ]);
        }
        table.write(self.style, out)?;
        Ok(())
    }

    /// Falls that were announced.
    fn expected(&self, out: &mut dyn Write) -> io::Result<()> {
        let expected: Vec<_> = self
            .ledger
            .drops()
            .filter(|(_, cache_drop)| cache_drop.cache_break.cause.is_expected())
            .collect();
        let mut totals = DropTotals::default();
        expected.iter().for_each(|(_, cache_drop)| totals.add(&cache_drop.cache_break));
        if expected.is_empty() {
            return Ok(());
        }
        writeln!(out)?;
        let cost = cost_of(&totals).map_or(String::new(), |cost| format!(", {cost}"));
        let hint = if self.report.with_expected { ":" } else { "; --all lists them" };
        let count = count_noun(expected.len(), "expected drop");
        writeln!(out, "{count}, {} tokens{cost}{hint}", group_digits(totals.tokens))?;
        if self.report.with_expected {
            for (row, cache_drop) in expected {
                self.write_drop(row, cache_drop, out)?;
            }
        }
        Ok(())
    }
}

/// Title of a group of causes.
fn title(cause_name: &str) -> &str {
    match cause_name {
        "expired" => "cache expired",
        "model" => "model changed",
        "unseen" => "not in the transcript",
        "provider" => "provider",
        "look_back" => "too many new blocks",
        "tool_choice" => "tool choice",
        "member" => "request member",
        other => other,
    }
}

fn cost_number(totals: &DropTotals) -> Option<f64> {
    (totals.drops > totals.unpriced).then_some(totals.cost)
}

/// Cost of cache-read drops; none if no price is known.
fn cost_of(totals: &DropTotals) -> Option<String> {
    cost_number(totals).map(format_usd)
}
