//! Chart of the context by category over the requests: stacked columns, with marks for compactions and cache breaks below.
//!
//! With colors a cell shows two categories, one above the other in eighths; without colors each category has its own pattern.
//! No line is wider than the terminal: a column stands for several requests if there are more than fit.

use pal_context::{CostLedger, LedgerRow};
use pal_model::text::group_digits;
use pal_view::Category;

use crate::text_layout::clip_line;
use crate::text_style::TextStyle;
use crate::units::{format_percent, format_usd};

mod chart_cells;
mod chart_columns;

use chart_columns::{ChartColumn, columns};

/// Columns left of the chart.
const GUTTER: usize = 9;
/// Lines of the chart.
const HEIGHT: usize = 12;
/// Maximum terminal columns per column of the chart.
const COLUMN_WIDTH_MAX: usize = 4;

/// A group of categories that is drawn as one segment.
struct ChartSegment {
    name: &'static str,
    categories: &'static [Category],
    /// Character that fills the segment without colors.
    pattern: char,
    /// ANSI color code.
    color: u8,
}

/// Segments from the bottom up, roughly in the order of a prompt.
const SEGMENTS: [ChartSegment; 8] = [
    ChartSegment {
        name: "system and tools",
        categories: &[Category::SystemPrompt, Category::ToolSchemas, Category::UnseenPrefix],
        pattern: '░',
        color: 90,
    },
    ChartSegment { name: "summaries", categories: &[Category::Summaries], pattern: '▚', color: 35 },
    ChartSegment { name: "user", categories: &[Category::UserText], pattern: '▌', color: 32 },
    ChartSegment { name: "reminders", categories: &[Category::Attachments], pattern: '▖', color: 92 },
    ChartSegment { name: "thinking", categories: &[Category::Thinking], pattern: '▞', color: 95 },
    ChartSegment { name: "assistant", categories: &[Category::AssistantText], pattern: '▒', color: 36 },
    ChartSegment { name: "tool calls", categories: &[Category::ToolCalls], pattern: '▓', color: 33 },
    ChartSegment { name: "tool results", categories: &[Category::ToolResults], pattern: '█', color: 34 },
];

/// Lower eighths of a cell.
const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Draws the chart in lines of at most `width` columns; returns no lines for a session without context.
pub fn chart_lines(ledger: &CostLedger, width: usize, colors: TextStyle) -> Vec<String> {
    let rows: Vec<&LedgerRow> = ledger.rows.iter().filter(|row| row.is_conversation()).collect();
    let room = width.saturating_sub(GUTTER).max(8);
    let columns = columns(ledger, &rows, room);
    let most = columns.iter().map(ChartColumn::tokens).fold(0.0, f64::max);
    if most < 1.0 {
        return Vec::new();
    }
    let chart =
        ContextChart { wide: (room / columns.len()).clamp(1, COLUMN_WIDTH_MAX), columns, most, colors };
    let mut lines = vec![String::new(), colors.bold(&clip_line(&chart.heading(rows.len()), width))];
    lines.extend((0..HEIGHT).rev().map(|level| chart.level(level)));
    lines.push(chart.axis(rows.len()));
    lines.extend(chart.below());
    lines.extend(chart.legend(width));
    lines
}

struct ContextChart {
    columns: Vec<ChartColumn>,
    /// Terminal columns per column of the chart.
    wide: usize,
    /// Tokens of the highest column.
    most: f64,
    colors: TextStyle,
}

impl ContextChart {
    fn heading(&self, requests: usize) -> String {
        let each = requests.div_ceil(self.columns.len().max(1));
        let grouped = if each > 1 { format!(", up to {each} per column") } else { String::new() };
        format!("Context in tokens, by request{grouped}")
    }

    /// One line of the stacked columns.
    fn level(&self, level: usize) -> String {
        let label = match level {
            _ if level == HEIGHT - 1 => format!("{:>7} ┤", format_axis_tokens(self.most)),
            _ if level == HEIGHT / 2 - 1 => format!("{:>7} ┤", format_axis_tokens(self.most / 2.0)),
            _ => format!("{:>7} │", ""),
        };
        let cells = self
            .columns
            .iter()
            .map(|column| chart_cells::cell(column, level, self.most, self.colors.is_on()));
        let line: String = chart_cells::paint(cells, self.wide, self.colors);
        format!("{label}{line}").trim_end().to_owned()
    }

    fn axis(&self, requests: usize) -> String {
        let width = self.columns.len() * self.wide;
        let last = group_digits(requests as u64);
        let first = format!("{:>7} └1", 0);
        match width.checked_sub(1 + last.chars().count() + 1) {
            Some(dashes) if requests > 1 => format!("{first}{} {last}", "─".repeat(dashes)),
            _ => first,
        }
    }

    /// Marks for compactions and breaks, the share read from the cache, and the cost.
    fn below(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let marks = |count: fn(&ChartColumn) -> usize, mark: char| -> Option<String> {
            let any = self.columns.iter().any(|column| count(column) > 0);
            any.then(|| self.spread(|column| marked(count(column), mark)))
        };
        if let Some(line) = marks(|column| column.compactions, '▼') {
            lines.push(format!("{:>7}  {}", "compact", self.colors.paint("35", line.trim_end())));
        }
        if let Some(line) = marks(|column| column.breaks, '✗') {
            lines.push(format!("{:>7}  {}", "breaks", self.colors.paint("31", line.trim_end())));
        }
        if self.columns.iter().any(|column| column.prompt > 0) {
            let line =
                self.bars(|column| (column.prompt > 0).then(|| column.read as f64 / column.prompt as f64));
            lines.push(format!("{:>7}  {}", "cached", self.colors.paint("36", line.trim_end())));
        }
        let dearest = self.columns.iter().map(|column| column.cost).fold(0.0, f64::max);
        if dearest > 0.0 {
            let line = self.bars(|column| column.has_cost.then(|| column.cost / dearest));
            lines.push(format!("{:>7}  {}", "cost", self.colors.paint("33", line.trim_end())));
            let full = self.colors.dim(&format!("{:>7}  full: 100% cached, {}", "", format_usd(dearest)));
            lines.push(full);
        }
        lines
    }

    /// One character per column, the rest of its width left empty.
    fn spread(&self, character: impl Fn(&ChartColumn) -> char) -> String {
        let rest = " ".repeat(self.wide - 1);
        self.columns.iter().flat_map(|column| [character(column).to_string(), rest.clone()]).collect()
    }

    /// One bar per column.
    fn bars(&self, share: impl Fn(&ChartColumn) -> Option<f64>) -> String {
        let bar = |column: &ChartColumn| match share(column) {
            None => ' ',
            Some(share) => EIGHTHS[((share.clamp(0.0, 1.0) * 8.0).round() as usize).max(1)],
        };
        self.columns.iter().flat_map(|column| std::iter::repeat_n(bar(column), self.wide)).collect()
    }

    /// Names of the segments, with their shares of the newest column.
    fn legend(&self, width: usize) -> Vec<String> {
        let Some(newest) = self.columns.last() else { return Vec::new() };
        let is_drawn = |kind: usize| self.columns.iter().any(|column| column.parts[kind] >= 1.0);
        let mut lines = Vec::new();
        let (mut line, mut taken) = (" ".repeat(GUTTER), GUTTER);
        for (at, kind) in SEGMENTS.iter().enumerate().filter(|(at, _)| is_drawn(*at)) {
            let share = format_percent(newest.parts[at] / newest.tokens().max(1.0));
            let words = format!(" {} {share}", kind.name);
            let wide = words.chars().count() + 3;
            if taken + wide > width && taken > GUTTER {
                lines.push(std::mem::replace(&mut line, " ".repeat(GUTTER)).trim_end().to_owned());
                taken = GUTTER;
            }
            let sample = if self.colors.is_on() { '█' } else { kind.pattern };
            line.push_str(&self.colors.paint(&kind.color.to_string(), &sample.to_string()));
            line.push_str(&words);
            line.push_str("  ");
            taken += wide;
        }
        lines.push(line.trim_end().to_owned());
        lines
    }
}

/// Returns the mark for one event, its count for several.
fn marked(count: usize, mark: char) -> char {
    match count {
        0 => ' ',
        1 => mark,
        2..=9 => char::from_digit(count as u32, 10).unwrap_or(mark),
        _ => '+',
    }
}

/// Formats tokens in at most four characters.
fn format_axis_tokens(tokens: f64) -> String {
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
    use pal_context::{LedgerCompaction, PromptTokens};
    use pal_model::{RequestSource, Timestamp, UsageBasis};

    use super::*;

    fn row(number: usize) -> LedgerRow {
        LedgerRow {
            number,
            source: RequestSource::main(),
            model: "m".into(),
            started: None,
            idle_ms: None,
            prompt: Some(PromptTokens { read: 900, written: 100, ..PromptTokens::default() }),
            output: 1,
            basis: UsageBasis::Reported,
            additional: 0,
            cost: Some(0.5),
            saved: Some(0.1),
            context: Some(1_000 * number as u64),
            by_category: vec![(Category::SystemPrompt, 300.0), (Category::ToolResults, 100.0)],
            layers: Vec::new(),
            decisions: Vec::new(),
            drop: None,
        }
    }

    fn ledger(rows: usize) -> CostLedger {
        let compaction = |before_row| LedgerCompaction {
            before_row,
            at: Timestamp::default(),
            trigger: "auto".into(),
            method: "fork".into(),
            tokens_before: 9,
            tokens_after: 1,
        };
        let compactions = vec![compaction(1), compaction(rows + 1)];
        CostLedger { rows: (1..=rows).map(row).collect(), compactions, ..CostLedger::default() }
    }

    #[test]
    fn any_number_of_requests_fits_any_width() {
        for count in [1, 2, 3, 70, 71, 72, 500, 5_000] {
            for width in [40, 80, 81, 133, 240] {
                let lines = chart_lines(&ledger(count), width, TextStyle::new(false));
                let widest = lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
                assert!(widest <= width, "{count} requests in {width}: {widest}\n{}", lines.join("\n"));
                let marks = lines.iter().find(|line| line.starts_with("compact")).unwrap();
                let count_of = |mark| marks.chars().filter(|character| *character == mark).count();
                assert_eq!(count_of('▼') + 2 * count_of('2'), 2, "{count} requests in {width}: {marks}");
            }
        }
        assert!(chart_lines(&CostLedger::default(), 80, TextStyle::new(false)).is_empty());
    }

    #[test]
    fn columns_are_as_high_as_their_contexts_and_show_their_shares() {
        let lines = chart_lines(&ledger(12), 80, TextStyle::new(false));
        let cells = |level: usize| lines[2 + HEIGHT - 1 - level].chars().skip(GUTTER).collect::<String>();
        assert_eq!(cells(0).chars().filter(|cell| *cell == '░').count(), 12 * COLUMN_WIDTH_MAX);
        assert_eq!(cells(11).trim_start(), "████", "only the last context reaches the top");
        assert_eq!(
            cells(8).trim_start(),
            format!("{}{}", "█".repeat(12), "░".repeat(4)),
            "three quarters are system"
        );
        assert!(lines.iter().any(|line| line.contains("░ system and tools 75.0%  █ tool results 25.0%")));
    }
}
