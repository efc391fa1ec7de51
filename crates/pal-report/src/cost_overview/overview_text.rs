//! The overview for people: a table of groups, and below it what the cache did and what is not known.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

use pal_context::DropTotals;
use pal_model::text::{count_noun, group_digits};

use super::cache_misses::{EXPECTED, cause_text};
use super::{CostOverview, OverviewKey, OverviewTotals};
use crate::text_layout::{clip_line, heading_line, sanitize, wrap_lines};
use crate::text_style::TextStyle;
use crate::text_table::TextTable;
use crate::units::{format_count, format_percent, format_usd};

/// Columns of the label before a paragraph.
const INDENT: usize = 11;
/// Columns of all figures of a row, with the gaps between them.
const FIGURE_COLUMNS: usize = 58;
/// Columns of the figure for misses.
const MISS_COLUMNS: usize = 11;

impl CostOverview {
    /// Writes the overview for people, in at most `columns` columns where names leave room. Without `has_short_names`, names
    /// stand there in full, for programs that read them.
    pub fn write_text(
        &self,
        style: TextStyle,
        columns: usize,
        has_short_names: bool,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let heading = heading_line("All agents", &self.headline(), columns);
        writeln!(out, "{}", style.bold(&heading))?;
        if self.all.requests == 0 {
            writeln!(out, "No request was found in these sessions and days.")?;
            return self.write_remarks(style, columns, out);
        }
        writeln!(out)?;
        self.write_table(style, columns, has_short_names, out)?;
        writeln!(out)?;
        self.write_remarks(style, columns, out)
    }

    fn headline(&self) -> String {
        let requests = requests(self.all.requests);
        let sessions = count_noun(self.sources.sessions as usize, "session");
        let days = match &self.sources.days {
            Some((first, last)) if first == last => format!(", {first}"),
            Some((first, last)) => format!(", {first} to {last}"),
            None => String::new(),
        };
        match self.all.known_cost() {
            Some(cost) => format!("{} for {requests} in {sessions}{days}", dollars(cost)),
            None => format!("{requests} in {sessions}{days}"),
        }
    }

    fn write_table(
        &self,
        style: TextStyle,
        columns: usize,
        has_short_names: bool,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        const WORDS: [&[usize]; 5] = [&[], &[0], &[0, 1], &[0, 1, 2], &[0, 1, 2, 3]];
        let labels = if has_short_names { self.labels() } else { self.full_labels() };
        let times = self.keys.iter().filter(|key| key.is_time()).count();
        let names = self.keys.len() - times;
        let fixed = FIGURE_COLUMNS + times * 12 + names * 2;
        let with_misses = self.all.misses.drops > 0 && columns >= fixed + MISS_COLUMNS + names * 14;
        let room = columns.saturating_sub(fixed + if with_misses { MISS_COLUMNS } else { 0 });
        let name_columns = room.checked_div(names).unwrap_or(0).clamp(12, 60);
        let mut heading: Vec<&str> = self.keys.iter().map(|key| key.name()).collect();
        if heading.is_empty() {
            heading.push("");
        }
        heading.extend(["requests", "read", "written", "input", "output"]);
        if with_misses {
            heading.push("misses");
        }
        heading.push("cost");
        let mut table = TextTable::new(&heading, WORDS[self.keys.len().clamp(1, 4)]);
        let mut cells = labels;
        for (at, key) in self.keys.iter().enumerate().filter(|(_, key)| has_short_names && !key.is_time()) {
            let names: Vec<String> = cells.iter().map(|labels| labels[at].clone()).collect();
            for (row, name) in cells.iter_mut().zip(shorten_names(&names, *key, name_columns)) {
                row[at] = name;
            }
        }
        for (group, labels) in self.groups.iter().zip(&cells) {
            let mut row: Vec<String> = labels.iter().map(|label| sanitize(label)).collect();
            if row.is_empty() {
                row.push(String::from("all"));
            }
            row.extend(figures(&group.totals, with_misses));
            table.push_row(row);
        }
        if !self.keys.is_empty() && self.groups.len() != 1 {
            let mut row = vec![String::new(); self.keys.len()];
            row[0] = String::from("total");
            row.extend(figures(&self.all, with_misses));
            table.push_row(row);
        }
        table.write(style, out)
    }

    fn full_labels(&self) -> Vec<Vec<String>> {
        self.groups.iter().map(|group| group.values.clone()).collect()
    }

    /// Names of the groups: of projects, the last parts of their paths that tell them apart.
    fn labels(&self) -> Vec<Vec<String>> {
        let mut labels = self.full_labels();
        if let Some(at) = self.keys.iter().position(|key| *key == OverviewKey::Project) {
            let mut paths: Vec<&str> = self.groups.iter().map(|group| group.values[at].as_str()).collect();
            paths.sort_unstable();
            paths.dedup();
            for label in &mut labels {
                label[at] = short_path(&label[at], &paths);
            }
        }
        labels
    }

    fn write_remarks(&self, style: TextStyle, columns: usize, out: &mut dyn Write) -> io::Result<()> {
        let mut remark = |label: &str, text: &str| write_paragraph(label, text, style, columns, out);
        let all = &self.all;
        if let Some(text) = cache_text(all) {
            remark("cache", &text)?;
        }
        for (at, (cause, drops)) in self.misses.iter().filter(|(cause, _)| *cause != EXPECTED).enumerate() {
            let text = format!("{}: {}", miss_text(drops), cause_text(cause));
            remark(if at == 0 { "misses" } else { "" }, &text)?;
        }
        if let Some((_, drops)) = self.misses.iter().find(|(cause, _)| *cause == EXPECTED) {
            remark("", &format!("{}: {}", miss_text(drops), cause_text(EXPECTED)))?;
        }
        if all.unpriced > 0 {
            let models: Vec<String> = self
                .unpriced_models
                .iter()
                .map(|(model, requests)| format!("{} ({})", sanitize(model), group_digits(*requests)))
                .collect();
            let text = format!(
                "price not known for {} of {}, not in the sums: add prices to models.toml in pal's home",
                requests(all.unpriced),
                models.join(", ")
            );
            remark("unknown", &text)?;
        }
        if all.unreported > 0 {
            let text = format!("usage not recorded for {}, not in the sums", requests(all.unreported));
            remark("unknown", &text)?;
        }
        if all.estimated > 0 {
            let text = format!(
                "output of {} is estimated, +{} tokens, {}: their transcripts have a placeholder from the start of the stream",
                requests(all.estimated),
                format_count(all.output_added),
                dollars(all.cost_added)
            );
            remark("estimated", &text)?;
        }
        if all.simulated > 0 {
            let text = format!(
                "{} went to a simulator; {} not spent and not in the sums",
                requests(all.simulated),
                dollars(all.cost_simulated)
            );
            remark("simulated", &text)?;
        }
        self.write_source_remarks(style, columns, out)
    }

    fn write_source_remarks(&self, style: TextStyle, columns: usize, out: &mut dyn Write) -> io::Result<()> {
        let sources = &self.sources;
        let mut facts = Vec::new();
        if sources.repeated > 0 {
            let responses = count_noun(sources.repeated as usize, "response");
            facts.push(format!("{responses} repeated in resumed or copied sessions counted once"));
        }
        if sources.deleted_files > 0 {
            let files = count_noun(sources.deleted_files as usize, "deleted session file");
            facts.push(format!("figures of {files} come from the index"));
        }
        if sources.undated > 0 {
            facts.push(format!("{} without a time", count_noun(sources.undated as usize, "response")));
        }
        if sources.bad_lines > 0 {
            facts.push(format!("{} could not be read", count_noun(sources.bad_lines as usize, "line")));
        }
        if facts.is_empty() {
            return Ok(());
        }
        write_paragraph("sources", &facts.join("; "), style, columns, out)
    }
}

fn write_paragraph(
    label: &str,
    text: &str,
    style: TextStyle,
    columns: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    for (at, line) in wrap_lines(text, columns.saturating_sub(INDENT).max(20)).iter().enumerate() {
        let label = if at == 0 { format!("{label:<INDENT$}") } else { " ".repeat(INDENT) };
        writeln!(out, "{}{line}", style.bold(&label))?;
    }
    Ok(())
}

fn cache_text(all: &OverviewTotals) -> Option<String> {
    let total = all.prompt.total();
    if total == 0 {
        return None;
    }
    let share = all.prompt.read as f64 / total as f64;
    let mut text = format!("{} of prompt tokens were cache reads", format_percent(share));
    if all.known_cost().is_some() && all.saved > 0.0 {
        text.push_str(&format!(
            "; without a cache these requests cost {}, {} more",
            dollars(all.cost + all.saved),
            dollars(all.saved)
        ));
    }
    Some(text)
}

fn miss_text(drops: &DropTotals) -> String {
    let cost = match drops.drops > drops.unpriced {
        true => format!(", {}", dollars(drops.cost)),
        false => String::from(", price not known"),
    };
    format!("{}, {} tokens{cost}", group_digits(drops.drops), format_count(drops.tokens))
}

fn requests(count: u64) -> String {
    match count {
        1 => String::from("1 request"),
        count => format!("{} requests", group_digits(count)),
    }
}

fn figures(totals: &OverviewTotals, with_misses: bool) -> Vec<String> {
    let is_reported = totals.requests > totals.unreported;
    let tokens = |count: u64| if is_reported { format_count(count) } else { String::from("–") };
    let mut cells = vec![
        group_digits(totals.requests),
        tokens(totals.prompt.read),
        tokens(totals.prompt.written + totals.prompt.written_1h),
        tokens(totals.prompt.uncached),
        format_count(totals.output),
    ];
    if with_misses {
        cells.push(if totals.misses.drops == 0 { String::new() } else { dollars(totals.misses.cost) });
    }
    let unknown = totals.unpriced > 0;
    cells.push(match totals.known_cost() {
        // A plus says that a part has no known price.
        Some(cost) if unknown => format!("{}+", dollars(cost)),
        Some(cost) => dollars(cost),
        None if unknown => String::from("not known"),
        None if totals.simulated > 0 => String::from("simulated"),
        None => String::from("–"),
    });
    cells
}

/// US dollars with separated thousands and cents.
fn dollars(dollars: f64) -> String {
    if dollars < 1.0 {
        return format_usd(dollars);
    }
    let cents = (dollars * 100.0).round() as u64;
    format!("${}.{:02}", group_digits(cents / 100), cents % 100)
}

/// The last parts of a path that no other of the paths ends with.
fn short_path(path: &str, all: &[&str]) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    for count in 1..parts.len() {
        let end = parts[parts.len() - count..].join("/");
        let ends_so = |other: &&&str| **other == end || other.ends_with(&format!("/{end}"));
        if all.iter().filter(ends_so).count() <= 1 {
            return end;
        }
    }
    path.to_owned()
}

/// Shortens the names of a column to at most `columns` columns each, so that different names stay different: paths keep
/// their start, which tells them apart, and their end; other names keep their start. Names that would look the same stay
/// whole.
fn shorten_names(names: &[String], key: OverviewKey, columns: usize) -> Vec<String> {
    let shortened = |name: &String| match key {
        OverviewKey::Project => clip_middle(&sanitize(name), columns),
        _ => clip_line(&sanitize(name), columns),
    };
    let short: Vec<String> = names.iter().map(shortened).collect();
    let mut meanings: HashMap<&str, &str> = HashMap::new();
    let mut ambiguous = HashSet::new();
    for (short, name) in short.iter().zip(names) {
        if *meanings.entry(short.as_str()).or_insert(name) != name {
            ambiguous.insert(short.as_str());
        }
    }
    let is_ambiguous = |short: &String| ambiguous.contains(short.as_str());
    short
        .iter()
        .zip(names)
        .map(|(short, name)| if is_ambiguous(short) { sanitize(name) } else { short.clone() })
        .collect()
}

/// The start and the end of a text in at most `columns` columns.
fn clip_middle(text: &str, columns: usize) -> String {
    let count = text.chars().count();
    if count <= columns {
        return clip_line(text, columns);
    }
    let start: String = text.chars().take(columns / 2).collect();
    let end: String = text.chars().skip(count - (columns - columns / 2 - 1)).collect();
    format!("{start}…{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortened_names_stay_different() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let projects = names(&["anna/flutter-docker-image", "bert/flutter-docker-image", "web"]);
        let short = shorten_names(&projects, OverviewKey::Project, 14);
        assert_eq!(short, ["anna/fl…-image", "bert/fl…-image", "web"]);
        let sessions =
            names(&["0199a8f2-7b10-7000-8000-000000000001", "aba9151e-7b10-7000-8000-000000000001"]);
        let short = shorten_names(&sessions, OverviewKey::Session, 12);
        assert_eq!(short, ["0199a8f2-7b…", "aba9151e-7b…"]);
        let sessions =
            names(&["0199a8f2-7b10-7000-8000-000000000001", "0199a8f2-7b10-7000-8000-000000000002"]);
        assert_eq!(shorten_names(&sessions, OverviewKey::Session, 12), sessions, "whole rather than equal");
    }
}
