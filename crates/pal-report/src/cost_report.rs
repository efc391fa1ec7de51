//! Cost of a session by source and model, savings by the cache and by decisions, growth of the context.

mod context_chart;
mod cost_json;
mod request_table;

use std::io::{self, Write};
use std::path::Path;

use pal_context::{CostLedger, CostTotals, DropTotals};
use pal_model::text::{count_noun, group_digits};
use serde_json::Value;

use crate::text_layout::{clip_line, heading_line, sanitize, wrap_lines};
use crate::text_style::TextStyle;
use crate::text_table::TextTable;
use crate::units::{format_percent, format_usd};
pub use context_chart::chart_lines;

/// Cost of a session: usage by source and model, savings by the cache and by decisions, growth of the context.
pub struct CostReport<'a> {
    /// Name of the session for people.
    pub name: &'a str,
    /// Log of the session.
    pub path: &'a Path,
    /// Requests of the session and their sums.
    pub ledger: &'a CostLedger,
}

impl CostReport<'_> {
    /// Writes the report for people, in at most `columns` columns.
    pub fn write_text(&self, style: TextStyle, columns: usize, out: &mut dyn Write) -> io::Result<()> {
        CostPage { name: self.name, ledger: self.ledger, style, columns }.print(out)
    }

    /// Writes a table with a row for each request.
    pub fn write_requests(&self, style: TextStyle, out: &mut dyn Write) -> io::Result<()> {
        request_table::request_table(self.ledger).write(style, out)
    }

    /// Returns the report as one JSON object.
    pub fn to_json(&self) -> Value {
        cost_json::cost_object(self)
    }
}

/// The report as it is laid out for people.
struct CostPage<'a> {
    name: &'a str,
    ledger: &'a CostLedger,
    style: TextStyle,
    columns: usize,
}

impl CostPage<'_> {
    fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let heading = heading_line(self.name, &self.headline(), self.columns);
        writeln!(out, "{}", self.style.bold(&heading))?;
        if self.ledger.rows.is_empty() {
            writeln!(out, "The session has no responses.")?;
            return Ok(());
        }
        writeln!(out)?;
        self.sums(out)?;
        writeln!(out)?;
        self.cache(out)?;
        self.breaks(out)?;
        self.unknown(out)?;
        self.savings(out)?;
        for line in context_chart::chart_lines(self.ledger, self.columns, self.style) {
            writeln!(out, "{line}")?;
        }
        Ok(())
    }

    fn headline(&self) -> String {
        let all = &self.ledger.all;
        let requests = count_noun(all.requests as usize, "request");
        match all.known_cost() {
            Some(cost) if all.simulated == all.requests => {
                format!("{} simulated for {requests}, nothing spent", format_usd(cost))
            }
            Some(cost) if all.simulated > 0 => {
                let simulated = group_digits(all.simulated);
                format!("{} for {requests}, {simulated} of them simulated", format_usd(cost))
            }
            Some(cost) => format!("{} for {requests}", format_usd(cost)),
            None if all.requests == 0 => String::from("no requests"),
            None if all.requests == all.unreported => format!("{requests}; usage not reported"),
            None => format!("{requests}; price not known"),
        }
    }

    /// Tokens and cost by source, by model and in total.
    fn sums(&self, out: &mut dyn Write) -> io::Result<()> {
        let heading = ["", "requests", "read", "written", "uncached", "output", "cost"];
        let mut table = TextTable::new(&heading, &[0]);
        let CostLedger { by_source, by_model, all, .. } = self.ledger;
        if by_source.len() > 1 {
            by_source.iter().for_each(|(source, totals)| table.push_row(sums_row(source.as_str(), totals)));
        }
        if by_model.len() > 1 || by_source.len() <= 1 {
            by_model.iter().for_each(|(model, totals)| table.push_row(sums_row(&undated(model), totals)));
        }
        if by_source.len() > 1 || by_model.len() > 1 {
            table.push_row(sums_row("all", all));
        }
        table.write(self.style, out)?;
        if all.additional > 0 {
            writeln!(
                out,
                "  plus {} tokens for the provider's own compactions",
                group_digits(all.additional)
            )?;
        }
        if all.estimated > 0 {
            let requests = count_noun(all.estimated as usize, "request");
            writeln!(out, "  output of {requests} estimated: the transcript has only a placeholder")?;
        }
        if all.simulated > 0 {
            let requests = count_noun(all.simulated as usize, "request");
            writeln!(out, "  {requests} went to the simulator: that money was not spent")?;
        }
        Ok(())
    }

    /// Share of cache reads, and the money they saved.
    fn cache(&self, out: &mut dyn Write) -> io::Result<()> {
        let all = &self.ledger.all;
        let Some(share) = all.share_read() else { return Ok(()) };
        let mut text = format!("{} of prompt tokens were cache reads", format_percent(share));
        if all.known_cost().is_some() {
            let without = all.cost + all.saved;
            if all.saved >= 0.0 {
                let part = if without > 0.0 { all.saved / without } else { 0.0 };
                text.push_str(&format!(
                    "; they saved {}, {} of the {} that these requests cost without a cache",
                    format_usd(all.saved),
                    format_percent(part),
                    format_usd(without)
                ));
            } else {
                text.push_str(&format!(
                    "; cache writes cost {} more than cache reads saved",
                    format_usd(-all.saved)
                ));
            }
        }
        self.labelled("cache", &text, out)
    }

    /// Number and cost of cache breaks, and of expected cache-read drops.
    fn breaks(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.ledger.all.share_read().is_none() {
            return Ok(());
        }
        let (mut breaks, mut expected) = (DropTotals::default(), DropTotals::default());
        for (_, fall) in self.ledger.drops() {
            if fall.cache_break.cause.is_expected() {
                expected.add(&fall.cache_break)
            } else {
                breaks.add(&fall.cache_break)
            }
        }
        let mut text = match breaks.drops {
            0 => String::from("none"),
            count => {
                let cost = known_cost(&breaks).map_or(String::new(), |cost| format!(", {cost}"));
                let tokens = group_digits(breaks.tokens);
                format!(
                    "{count}: {tokens} fewer tokens read from the cache{cost}; `pal breaks` shows the causes"
                )
            }
        };
        if expected.drops > 0 {
            let cost = known_cost(&expected).map_or(String::new(), |cost| format!(", {cost}"));
            let announced = count_noun(expected.drops as usize, "expected drop");
            text.push_str(&format!("; {announced}, {} tokens{cost}", group_digits(expected.tokens)));
        }
        self.labelled("breaks", &text, out)
    }

    /// Requests that no sum counts.
    fn unknown(&self, out: &mut dyn Write) -> io::Result<()> {
        let all = &self.ledger.all;
        if all.unreported > 0 {
            let text = format!(
                "{} did not report {} usage and {} not counted",
                count_noun(all.unreported as usize, "request"),
                if all.unreported == 1 { "its" } else { "their" },
                if all.unreported == 1 { "is" } else { "are" },
            );
            self.labelled("unknown", &text, out)?;
        }
        if all.unpriced > 0 {
            let text = format!(
                "{} to models whose price is not known ({}): add prices to models.toml",
                count_noun(all.unpriced as usize, "request"),
                self.unpriced_models().join(", ")
            );
            self.labelled("unknown", &text, out)?;
        }
        Ok(())
    }

    /// Models whose price is not known.
    fn unpriced_models(&self) -> Vec<String> {
        let models = self.ledger.by_model.iter().filter(|(_, totals)| totals.unpriced > 0);
        models.map(|(model, _)| sanitize(&undated(model))).collect()
    }

    /// Tokens that decisions removed from the context.
    fn savings(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.ledger.savings.is_empty() {
            return Ok(());
        }
        writeln!(out)?;
        let heading = ["removed by", "decisions", "tokens", "not sent since", "saved at least"];
        let mut table = TextTable::new(&heading, &[0]);
        for saving in &self.ledger.savings {
            let kind =
                if saving.kind == "boundary" { "compaction".into() } else { saving.kind.replace('_', " ") };
            table.push_row(vec![
                kind,
                group_digits(saving.decisions),
                group_digits(saving.tokens_freed),
                group_digits(saving.tokens_not_sent),
                if self.ledger.all.known_cost().is_some() {
                    format_usd(saving.cost)
                } else {
                    String::from("–")
                },
            ]);
        }
        table.write(self.style, out)?;
        Ok(())
    }

    /// Writes a labelled paragraph; its further lines are indented below the label.
    fn labelled(&self, label: &str, text: &str, out: &mut dyn Write) -> io::Result<()> {
        const INDENT: usize = 9;
        for (at, line) in wrap_lines(text, self.columns - INDENT).iter().enumerate() {
            let label = if at == 0 { format!("{label:<INDENT$}") } else { " ".repeat(INDENT) };
            writeln!(out, "{}{line}", self.style.bold(&label))?;
        }
        Ok(())
    }
}

/// Cost of cache-read drops; none if no price is known.
fn known_cost(falls: &DropTotals) -> Option<String> {
    (falls.drops > falls.unpriced).then(|| format_usd(falls.cost))
}

/// Model name without its release date, clipped to leave room for numbers.
fn undated(model: &str) -> String {
    let (name, date) = model.rsplit_once('-').unwrap_or((model, ""));
    let is_dated = date.len() == 8 && date.bytes().all(|byte| byte.is_ascii_digit());
    clip_line(if is_dated { name } else { model }, 20)
}

fn sums_row(name: &str, totals: &CostTotals) -> Vec<String> {
    let is_reported = totals.requests > totals.unreported;
    let tokens = |count: u64| if is_reported { group_digits(count) } else { String::from("–") };
    vec![
        sanitize(name),
        group_digits(totals.requests),
        tokens(totals.prompt.read),
        tokens(totals.prompt.written + totals.prompt.written_1h),
        tokens(totals.prompt.uncached),
        if totals.output > 0 || is_reported { group_digits(totals.output) } else { String::from("–") },
        totals.known_cost().map_or(String::from("–"), format_usd),
    ]
}
