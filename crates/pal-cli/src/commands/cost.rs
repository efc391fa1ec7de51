//! `pal cost`: what a session cost, what the cache and the layers saved, and how the context grew.

pub(super) mod chart;
mod json;
mod requests;

use std::io::Write;
use std::process::ExitCode;

use pal_context::{FallTotals, Ledger, Totals};

use crate::arguments::Cost;
use crate::books::{Books, heading};
use crate::colour::{Colours, clipped, columns, wrapped};
use crate::failure::Failure;
use crate::settings::Settings;
use crate::table::{Table, counted, harmless, money, percent, thousands};

pub(crate) fn cost(arguments: &Cost, settings: &Settings, out: &mut dyn Write) -> Result<ExitCode, Failure> {
    let books = Books::open(arguments.session.as_deref(), settings)?;
    let colours = Colours::of(arguments.colour);
    if arguments.json {
        writeln!(out, "{}", json::of(&books))?;
        return Ok(ExitCode::SUCCESS);
    }
    let page = Page { books: &books, ledger: &books.ledger, colours, columns: columns() };
    page.print(out)?;
    if arguments.requests && !books.ledger.rows.is_empty() {
        writeln!(out)?;
        requests::table(&books.ledger).write(out)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What is printed.
struct Page<'a> {
    books: &'a Books,
    ledger: &'a Ledger,
    colours: Colours,
    columns: usize,
}

impl Page<'_> {
    fn print(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let heading = heading(&self.books.name, &self.headline(), self.columns);
        writeln!(out, "{}", self.colours.bold(&heading))?;
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
        for line in chart::lines(self.ledger, self.columns, self.colours) {
            writeln!(out, "{line}")?;
        }
        Ok(())
    }

    fn headline(&self) -> String {
        let all = &self.ledger.all;
        let requests = counted(all.requests as usize, "request");
        match all.known_cost() {
            Some(cost) => format!("{} for {requests}", money(cost)),
            None if all.requests == 0 => String::from("nothing was asked"),
            None if all.requests == all.unreported => format!("{requests}; what they took was not reported"),
            None => format!("{requests}; the price is not known"),
        }
    }

    /// Tokens and money by source, by model and in all.
    fn sums(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let heading = ["", "requests", "read", "written", "uncached", "output", "cost"];
        let mut table = Table::new(&heading, &[0]);
        let Ledger { by_source, by_model, all, .. } = self.ledger;
        if by_source.len() > 1 {
            by_source.iter().for_each(|(source, totals)| table.row(sums_row(source.as_str(), totals)));
        }
        if by_model.len() > 1 || by_source.len() <= 1 {
            by_model.iter().for_each(|(model, totals)| table.row(sums_row(&undated(model), totals)));
        }
        if by_source.len() > 1 || by_model.len() > 1 {
            table.row(sums_row("all", all));
        }
        table.write(out)?;
        if all.beside > 0 {
            writeln!(out, "  and {} tokens of the provider's own compactions", thousands(all.beside))?;
        }
        Ok(())
    }

    /// What the cache was good for.
    fn cache(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let all = &self.ledger.all;
        let Some(share) = all.share_read() else { return Ok(()) };
        let mut text = format!("{} of the prompts were read from it", percent(share));
        if all.known_cost().is_some() {
            let without = all.cost + all.saved;
            if all.saved >= 0.0 {
                let part = if without > 0.0 { all.saved / without } else { 0.0 };
                text.push_str(&format!(
                    "; it saved {}, {} of the {} that the same requests cost without it",
                    money(all.saved),
                    percent(part),
                    money(without)
                ));
            } else {
                text.push_str(&format!(
                    "; writing to it cost {} more than reading from it saved",
                    money(-all.saved)
                ));
            }
        }
        self.labelled("cache", &text, out)
    }

    /// What its breaks cost.
    fn breaks(&self, out: &mut dyn Write) -> Result<(), Failure> {
        if self.ledger.all.share_read().is_none() {
            return Ok(());
        }
        let (mut breaks, mut expected) = (FallTotals::default(), FallTotals::default());
        for (_, fall) in self.ledger.falls() {
            if fall.what.cause.is_expected() { expected.add(&fall.what) } else { breaks.add(&fall.what) }
        }
        let mut text = match breaks.falls {
            0 => String::from("none"),
            count => {
                let cost = known_cost(&breaks).map_or(String::new(), |cost| format!(", {cost}"));
                let tokens = thousands(breaks.tokens);
                format!("{count}: {tokens} tokens no longer read from it{cost}; `pal breaks` says why")
            }
        };
        if expected.falls > 0 {
            let cost = known_cost(&expected).map_or(String::new(), |cost| format!(", {cost}"));
            let announced = counted(expected.falls as usize, "expected fall");
            text.push_str(&format!("; {announced}, {} tokens{cost}", thousands(expected.tokens)));
        }
        self.labelled("breaks", &text, out)
    }

    /// What is in no sum.
    fn unknown(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let all = &self.ledger.all;
        if all.unreported > 0 {
            let text = format!(
                "{} did not report what {} prompt took and {} in no sum",
                counted(all.unreported as usize, "request"),
                if all.unreported == 1 { "its" } else { "their" },
                if all.unreported == 1 { "is" } else { "are" },
            );
            self.labelled("unknown", &text, out)?;
        }
        if all.unpriced > 0 {
            let text = format!(
                "{} of models without prices: describe them in models.toml",
                counted(all.unpriced as usize, "request")
            );
            self.labelled("unknown", &text, out)?;
        }
        Ok(())
    }

    /// What decisions took out of sight.
    fn savings(&self, out: &mut dyn Write) -> Result<(), Failure> {
        if self.ledger.savings.is_empty() {
            return Ok(());
        }
        writeln!(out)?;
        let heading = ["out of sight by", "decisions", "tokens", "not sent since", "worth at least"];
        let mut table = Table::new(&heading, &[0]);
        for saving in &self.ledger.savings {
            let kind =
                if saving.kind == "boundary" { "compaction".into() } else { saving.kind.replace('_', " ") };
            table.row(vec![
                kind,
                thousands(saving.decisions),
                thousands(saving.tokens_freed),
                thousands(saving.tokens_not_sent),
                if self.ledger.all.known_cost().is_some() { money(saving.cost) } else { String::from("–") },
            ]);
        }
        table.write(out)?;
        Ok(())
    }

    /// A line that says what it is about, and goes on below.
    fn labelled(&self, label: &str, text: &str, out: &mut dyn Write) -> Result<(), Failure> {
        const INDENT: usize = 9;
        for (at, line) in wrapped(text, self.columns - INDENT).iter().enumerate() {
            let label = if at == 0 { format!("{label:<INDENT$}") } else { " ".repeat(INDENT) };
            writeln!(out, "{}{line}", self.colours.bold(&label))?;
        }
        Ok(())
    }
}

/// What falls cost, if that is known of any.
fn known_cost(falls: &FallTotals) -> Option<String> {
    (falls.falls > falls.unpriced).then(|| money(falls.cost))
}

/// A model's name without the date of its release, in a width that leaves room for numbers.
fn undated(model: &str) -> String {
    let (name, date) = model.rsplit_once('-').unwrap_or((model, ""));
    let is_dated = date.len() == 8 && date.bytes().all(|byte| byte.is_ascii_digit());
    clipped(if is_dated { name } else { model }, 20)
}

fn sums_row(name: &str, totals: &Totals) -> Vec<String> {
    let is_reported = totals.requests > totals.unreported;
    let tokens = |count: u64| if is_reported { thousands(count) } else { String::from("–") };
    vec![
        harmless(name),
        thousands(totals.requests),
        tokens(totals.prompt.read),
        tokens(totals.prompt.written + totals.prompt.written_1h),
        tokens(totals.prompt.uncached),
        if totals.output > 0 || is_reported { thousands(totals.output) } else { String::from("–") },
        totals.known_cost().map_or(String::from("–"), money),
    ]
}
