//! The chart: the context by category over the requests, as stacked columns, with marks below them.
//!
//! With colours a cell shows two categories, one above the other in eighths; without them each has a pattern of its own.
//! Nothing is wider than the terminal: a column stands for several requests where there are more than fit.

use pal_context::{Ledger, LedgerRow};
use pal_view::Category;

use crate::colour::{Colours, clipped};
use crate::table::{money, percent, thousands};

mod cells;
mod columns;

use columns::{Column, columns};

/// Columns left of the chart.
const GUTTER: usize = 9;
/// Lines of the chart.
const HEIGHT: usize = 12;
/// The most columns of the terminal that one column of the chart takes.
const WIDEST: usize = 4;

/// A group of categories that is drawn as one.
struct Kind {
    name: &'static str,
    categories: &'static [Category],
    /// Without colours.
    pattern: char,
    /// The code of its colour.
    colour: u8,
}

/// What is drawn, from the bottom up: as it stands in a prompt, roughly.
const KINDS: [Kind; 8] = [
    Kind {
        name: "system and tools",
        categories: &[Category::SystemPrompt, Category::ToolSchemas, Category::UnseenPrefix],
        pattern: '░',
        colour: 90,
    },
    Kind { name: "summaries", categories: &[Category::Summaries], pattern: '▚', colour: 35 },
    Kind { name: "user", categories: &[Category::UserText], pattern: '▌', colour: 32 },
    Kind { name: "reminders", categories: &[Category::Attachments], pattern: '▖', colour: 92 },
    Kind { name: "thinking", categories: &[Category::Thinking], pattern: '▞', colour: 95 },
    Kind { name: "assistant", categories: &[Category::AssistantText], pattern: '▒', colour: 36 },
    Kind { name: "tool calls", categories: &[Category::ToolCalls], pattern: '▓', colour: 33 },
    Kind { name: "tool results", categories: &[Category::ToolResults], pattern: '█', colour: 34 },
];

/// Lower eighths of a cell.
const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The chart in lines of at most so many columns; none where there is nothing to be drawn.
pub(in crate::commands) fn lines(ledger: &Ledger, width: usize, colours: Colours) -> Vec<String> {
    let rows: Vec<&LedgerRow> = ledger.rows.iter().filter(|row| row.is_conversation()).collect();
    let room = width.saturating_sub(GUTTER).max(8);
    let columns = columns(ledger, &rows, room);
    let most = columns.iter().map(Column::tokens).fold(0.0, f64::max);
    if most < 1.0 {
        return Vec::new();
    }
    let chart = Chart { wide: (room / columns.len()).clamp(1, WIDEST), columns, most, colours };
    let mut lines = vec![String::new(), colours.bold(&clipped(&chart.heading(rows.len()), width))];
    lines.extend((0..HEIGHT).rev().map(|level| chart.level(level)));
    lines.push(chart.axis(rows.len()));
    lines.extend(chart.below());
    lines.extend(chart.legend(width));
    lines
}

struct Chart {
    columns: Vec<Column>,
    /// Columns of the terminal that each takes.
    wide: usize,
    /// Tokens of the highest column.
    most: f64,
    colours: Colours,
}

impl Chart {
    fn heading(&self, requests: usize) -> String {
        let each = requests.div_ceil(self.columns.len().max(1));
        let grouped = if each > 1 { format!(", up to {each} a column") } else { String::new() };
        format!("Context in tokens, request by request{grouped}")
    }

    /// One line of the stacked columns.
    fn level(&self, level: usize) -> String {
        let label = match level {
            _ if level == HEIGHT - 1 => format!("{:>7} ┤", short(self.most)),
            _ if level == HEIGHT / 2 - 1 => format!("{:>7} ┤", short(self.most / 2.0)),
            _ => format!("{:>7} │", ""),
        };
        let cells =
            self.columns.iter().map(|column| cells::cell(column, level, self.most, self.colours.is_on()));
        let line: String = cells::painted(cells, self.wide, self.colours);
        format!("{label}{line}").trim_end().to_owned()
    }

    fn axis(&self, requests: usize) -> String {
        let width = self.columns.len() * self.wide;
        let last = thousands(requests as u64);
        let first = format!("{:>7} └1", 0);
        match width.checked_sub(1 + last.chars().count() + 1) {
            Some(dashes) if requests > 1 => format!("{first}{} {last}", "─".repeat(dashes)),
            _ => first,
        }
    }

    /// Marks for compactions and breaks, the share read from the cache, and the cost.
    fn below(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let marks = |count: fn(&Column) -> usize, mark: char| -> Option<String> {
            let any = self.columns.iter().any(|column| count(column) > 0);
            any.then(|| self.spread(|column| marked(count(column), mark)))
        };
        if let Some(line) = marks(|column| column.compactions, '▼') {
            lines.push(format!("{:>7}  {}", "compact", self.colours.painted("35", line.trim_end())));
        }
        if let Some(line) = marks(|column| column.breaks, '✗') {
            lines.push(format!("{:>7}  {}", "breaks", self.colours.painted("31", line.trim_end())));
        }
        if self.columns.iter().any(|column| column.prompt > 0) {
            let line =
                self.bars(|column| (column.prompt > 0).then(|| column.read as f64 / column.prompt as f64));
            lines.push(format!("{:>7}  {}", "cached", self.colours.painted("36", line.trim_end())));
        }
        let dearest = self.columns.iter().map(|column| column.cost).fold(0.0, f64::max);
        if dearest > 0.0 {
            let line = self.bars(|column| column.has_cost.then(|| column.cost / dearest));
            lines.push(format!("{:>7}  {}", "cost", self.colours.painted("33", line.trim_end())));
            let full = self.colours.dim(&format!("{:>7}  full: 100 % cached, {}", "", money(dearest)));
            lines.push(full);
        }
        lines
    }

    /// One character a column, the rest of its width left empty.
    fn spread(&self, character: impl Fn(&Column) -> char) -> String {
        let rest = " ".repeat(self.wide - 1);
        self.columns.iter().flat_map(|column| [character(column).to_string(), rest.clone()]).collect()
    }

    /// A bar a column.
    fn bars(&self, share: impl Fn(&Column) -> Option<f64>) -> String {
        let bar = |column: &Column| match share(column) {
            None => ' ',
            Some(share) => EIGHTHS[((share.clamp(0.0, 1.0) * 8.0).round() as usize).max(1)],
        };
        self.columns.iter().flat_map(|column| std::iter::repeat_n(bar(column), self.wide)).collect()
    }

    /// What is what, with its share of the newest column.
    fn legend(&self, width: usize) -> Vec<String> {
        let Some(newest) = self.columns.last() else { return Vec::new() };
        let is_drawn = |kind: usize| self.columns.iter().any(|column| column.parts[kind] >= 1.0);
        let mut lines = Vec::new();
        let (mut line, mut taken) = (" ".repeat(GUTTER), GUTTER);
        for (at, kind) in KINDS.iter().enumerate().filter(|(at, _)| is_drawn(*at)) {
            let share = percent(newest.parts[at] / newest.tokens().max(1.0));
            let words = format!(" {} {share}", kind.name);
            let wide = words.chars().count() + 3;
            if taken + wide > width && taken > GUTTER {
                lines.push(std::mem::replace(&mut line, " ".repeat(GUTTER)).trim_end().to_owned());
                taken = GUTTER;
            }
            let sample = if self.colours.is_on() { '█' } else { kind.pattern };
            line.push_str(&self.colours.painted(&kind.colour.to_string(), &sample.to_string()));
            line.push_str(&words);
            line.push_str("  ");
            taken += wide;
        }
        lines.push(line.trim_end().to_owned());
        lines
    }
}

/// A mark, or how many of them.
fn marked(count: usize, mark: char) -> char {
    match count {
        0 => ' ',
        1 => mark,
        2..=9 => char::from_digit(count as u32, 10).unwrap_or(mark),
        _ => '+',
    }
}

/// A number of tokens in a few characters.
fn short(tokens: f64) -> String {
    match tokens {
        tokens if tokens >= 9_950_000.0 => format!("{:.0}M", tokens / 1e6),
        tokens if tokens >= 999_500.0 => format!("{:.1}M", tokens / 1e6),
        tokens if tokens >= 9_950.0 => format!("{:.0}k", tokens / 1e3),
        tokens if tokens >= 1_000.0 => format!("{:.1}k", tokens / 1e3),
        tokens => format!("{tokens:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use pal_context::{Compacting, PromptTokens};
    use pal_model::{Source, Timestamp};

    use super::*;
    use crate::arguments::ColourName;

    fn row(number: usize) -> LedgerRow {
        LedgerRow {
            number,
            source: Source::main(),
            model: "m".into(),
            started: None,
            idle_ms: None,
            prompt: Some(PromptTokens { read: 900, written: 100, ..PromptTokens::default() }),
            output: 1,
            beside: 0,
            cost: Some(0.5),
            saved: Some(0.1),
            context: Some(1_000 * number as u64),
            by_category: vec![(Category::SystemPrompt, 300.0), (Category::ToolResults, 100.0)],
            layers: Vec::new(),
            decisions: Vec::new(),
            fall: None,
        }
    }

    fn ledger(rows: usize) -> Ledger {
        let compaction = |before_row| Compacting {
            before_row,
            at: Timestamp::default(),
            trigger: "auto".into(),
            how: "fork".into(),
            tokens_before: 9,
            tokens_after: 1,
        };
        let compactions = vec![compaction(1), compaction(rows + 1)];
        Ledger { rows: (1..=rows).map(row).collect(), compactions, ..Ledger::default() }
    }

    #[test]
    fn any_number_of_requests_fits_any_width() {
        for count in [1, 2, 3, 70, 71, 72, 500, 5_000] {
            for width in [40, 80, 81, 133, 240] {
                let lines = lines(&ledger(count), width, Colours::of(ColourName::Never));
                let widest = lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
                assert!(widest <= width, "{count} requests in {width}: {widest}\n{}", lines.join("\n"));
                let marks = lines.iter().find(|line| line.starts_with("compact")).unwrap();
                let count_of = |mark| marks.chars().filter(|character| *character == mark).count();
                assert_eq!(count_of('▼') + 2 * count_of('2'), 2, "{count} requests in {width}: {marks}");
            }
        }
        assert!(lines(&Ledger::default(), 80, Colours::of(ColourName::Never)).is_empty());
    }

    #[test]
    fn columns_are_as_high_as_their_contexts_and_show_their_shares() {
        let lines = lines(&ledger(12), 80, Colours::of(ColourName::Never));
        let cells = |level: usize| lines[2 + HEIGHT - 1 - level].chars().skip(GUTTER).collect::<String>();
        assert_eq!(cells(0).chars().filter(|cell| *cell == '░').count(), 12 * WIDEST);
        assert_eq!(cells(11).trim_start(), "████", "only the last context reaches the top");
        assert_eq!(
            cells(8).trim_start(),
            format!("{}{}", "█".repeat(12), "░".repeat(4)),
            "three quarters are system"
        );
        assert!(lines.iter().any(|line| line.contains("░ system and tools 75.0 %  █ tool results 25.0 %")));
    }
}
