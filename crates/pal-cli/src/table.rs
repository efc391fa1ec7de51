//! Tables on a terminal: columns of text, numbers to the right, colour only where a person looks.

use std::io::Write;

use pal_model::Usage;

use crate::arguments::ColourName;
use crate::colour::Colours;

/// A table: a heading and rows of cells.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
    /// Columns whose cells are words; the others hold numbers.
    words: &'static [usize],
}

impl Table {
    pub(crate) fn new(heading: &[&str], words: &'static [usize]) -> Table {
        Table { rows: vec![heading.iter().map(|&cell| cell.to_owned()).collect()], words }
    }

    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    pub(crate) fn write(&self, out: &mut dyn Write) -> std::io::Result<()> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows
                .iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for (at, row) in self.rows.iter().enumerate() {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                if column > 0 {
                    line.push_str("  ");
                }
                let width = widths[column];
                if self.words.contains(&column) {
                    line.push_str(&format!("{cell:<width$}"));
                } else {
                    line.push_str(&format!("{cell:>width$}"));
                }
            }
            let line = line.trim_end();
            writeln!(out, "{}", if at == 0 { bold(line) } else { line.to_owned() })?;
        }
        Ok(())
    }
}

/// A number with its thousands apart.
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(' ');
        }
        grouped.push(digit);
    }
    grouped
}

/// So many of something.
pub(crate) fn counted(count: usize, what: &str) -> String {
    format!("{} {what}{}", thousands(count as u64), if count == 1 { "" } else { "s" })
}

/// A fraction of tokens, rounded.
pub(crate) fn rounded(tokens: f64) -> String {
    thousands(tokens.max(0.0).round() as u64)
}

/// US dollars: cents where there are many of them, fractions where there are few.
pub(crate) fn money(dollars: f64) -> String {
    let sign = if dollars < 0.0 { "−" } else { "" };
    let dollars = dollars.abs();
    if dollars >= 100.0 { format!("{sign}${dollars:.2}") } else { format!("{sign}${dollars:.4}") }
}

/// A share of one as a percentage.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// A time as its two largest units.
pub(crate) fn duration(milliseconds: u64) -> String {
    let seconds = milliseconds / 1_000;
    let pair = |large: u64, large_name: &str, small: u64, small_name: &str| match small {
        0 => format!("{large} {large_name}"),
        _ => format!("{large} {large_name} {small} {small_name}"),
    };
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => pair(seconds / 60, "min", seconds % 60, "s"),
        3_600..86_400 => pair(seconds / 3_600, "h", seconds % 3_600 / 60, "min"),
        _ => pair(seconds / 86_400, "d", seconds % 86_400 / 3_600, "h"),
    }
}

/// What a response took, by kind of token, and what it cost.
pub(crate) fn usage_line(usage: &Usage, cost: Option<f64>) -> String {
    let [read, written, uncached, output] = [
        usage.cache_read_input_tokens,
        usage.cache_creation_input_tokens,
        usage.input_tokens,
        usage.output_tokens,
    ]
    .map(thousands);
    let cost = cost.map_or(String::new(), |cost| format!(", ${cost:.4}"));
    format!("{read} read, {written} written, {uncached} uncached, {output} out{cost}")
}

/// A heading on a terminal.
pub(crate) fn bold(text: &str) -> String {
    Colours::of(ColourName::Auto).bold(text)
}

/// A warning on a terminal.
pub(crate) fn yellow(text: &str) -> String {
    Colours::of(ColourName::Auto).yellow(text)
}

/// A bar of `share` (0 to 1) in twenty cells.
pub(crate) fn bar(share: f64) -> String {
    let filled = (share.clamp(0.0, 1.0) * 20.0).round() as usize;
    "█".repeat(filled)
}

/// The text without control characters, so that a file's content cannot drive the terminal.
pub(crate) fn harmless(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '·' } else { c }).collect()
}

/// The same for text of several lines.
pub(crate) fn harmless_lines(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && !matches!(c, '\n' | '\t') { '·' } else { c }).collect()
}

/// Eighths of a cell that each of several parts takes; only those that take any. The parts are stacked, each so many
/// eighths long, and cells are counted from where they begin.
pub(crate) fn eighths_of_cell<Part>(
    parts: impl Iterator<Item = (Part, f64)>,
    cell: usize,
) -> Vec<(Part, usize)> {
    let (start, end) = (cell * 8, cell * 8 + 8);
    let (mut sum, mut from) = (0.0, 0);
    let mut inside = Vec::new();
    for (part, eighths) in parts {
        sum += eighths;
        let to = sum.round() as usize;
        let covered = to.min(end).saturating_sub(from.max(start));
        if covered > 0 {
            inside.push((part, covered));
        }
        from = to;
    }
    inside
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_right_and_words_left() {
        let mut table = Table::new(&["name", "tokens"], &[0]);
        table.row(vec!["a".into(), thousands(1_234_567)]);
        table.row(vec!["longer".into(), thousands(12)]);
        let mut out = Vec::new();
        table.write(&mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "name       tokens\na       1 234 567\nlonger         12\n"
        );
    }

    #[test]
    fn money_and_times_are_short() {
        assert_eq!([0.0, 0.01234, -1.5, 1234.567].map(money), ["$0.0000", "$0.0123", "−$1.5000", "$1234.57"]);
        let times = [999, 60_000, 430_000, 3_600_000, 3_780_000, 187_200_000].map(duration);
        assert_eq!(times, ["0 s", "1 min", "7 min 10 s", "1 h", "1 h 3 min", "2 d 4 h"]);
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(harmless("a\x1b[2Jb\n"), "a·[2Jb·");
    }
}
