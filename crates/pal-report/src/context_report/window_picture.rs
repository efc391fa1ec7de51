//! Picture of the context window: a bar of used, free and reserved tokens, the thresholds below it, and a legend. If little is
//! used, a second bar shows used part, enlarged.
//!
//! With colors a cell shows two slices side by side in eighths; without colors each slice has its own pattern.

use pal_model::text::group_digits;
use pal_view::WindowLimits;

use super::window_slices::WindowSlice;
use crate::bar_cells::cell_eighths;
use crate::text_style::TextStyle;
use crate::units::{format_percent, format_tokens};

/// Columns left of the bar.
const INDENT: usize = 2;
/// Left eighths of a cell.
const EIGHTHS: [char; 9] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];
const FREE: char = '·';
const RESERVED: char = '╱';
/// Share of the window below which the used part is drawn again, enlarged.
const ENLARGED_BELOW: f64 = 0.3;

/// Draws the picture in lines of at most `columns` columns.
pub(super) fn picture_lines(
    slices: &[WindowSlice],
    limits: &WindowLimits,
    columns: usize,
    colors: TextStyle,
) -> Vec<String> {
    let wide = columns.saturating_sub(INDENT).max(10);
    let used: f64 = slices.iter().map(|slice| slice.tokens).sum();
    let window = WindowBar { slices, scale: wide as f64 / limits.window as f64, wide, colors };
    let indented = |line: String| format!("{}{line}", " ".repeat(INDENT)).trim_end().to_owned();
    let mut lines = vec![indented(window.draw(Some(limits.effective)))];
    lines.extend(threshold_lines(limits, wide, colors).into_iter().map(indented));
    if used >= 1.0 && used < ENLARGED_BELOW * limits.window as f64 {
        let enlarged = WindowBar { scale: wide as f64 / used, ..window };
        lines.push(colors.dim("used part, enlarged"));
        lines.push(indented(enlarged.draw(None)));
    }
    lines.extend(legend(slices, limits, colors).into_iter().map(indented));
    lines
}

/// A bar of `wide` cells.
struct WindowBar<'a> {
    slices: &'a [WindowSlice],
    /// Cells per token.
    scale: f64,
    wide: usize,
    colors: TextStyle,
}

/// A cell: its character, and the codes of its colors.
#[derive(Clone, PartialEq)]
struct WindowCell {
    character: char,
    style: String,
}

impl WindowBar<'_> {
    /// Draws the bar; tokens beyond the effective window are reserved for output.
    fn draw(&self, effective: Option<u64>) -> String {
        let reserved_from = effective.map_or(f64::MAX, |tokens| tokens as f64 * self.scale);
        let mut line = String::new();
        let (mut run, mut style) = (String::new(), String::new());
        for at in 0..self.wide {
            let empty = if at as f64 + 0.5 >= reserved_from { RESERVED } else { FREE };
            let cell = self.cell(at, empty);
            if cell.style != style {
                line.push_str(&self.colors.paint(&style, &run));
                run.clear();
                style = cell.style;
            }
            run.push(cell.character);
        }
        line.push_str(&self.colors.paint(&style, &run));
        line
    }

    fn cell(&self, at: usize, empty: char) -> WindowCell {
        let inside = self.eighths(at);
        let filled: usize = inside.iter().map(|(_, eighths)| eighths).sum();
        let largest = inside.iter().max_by_key(|(_, eighths)| *eighths).map(|(slice, _)| *slice);
        // Even the smallest content is visible.
        let largest = largest.or_else(|| {
            let all = self.slices.iter().filter(|slice| at == 0 && slice.tokens >= 1.0);
            all.max_by(|one, other| one.tokens.total_cmp(&other.tokens))
        });
        let nothing = WindowCell { character: empty, style: String::from("2") };
        let Some(slice) = largest else { return nothing };
        if !self.colors.is_on() {
            let shows = filled >= 4 || at == 0;
            return if shows {
                WindowCell { character: slice.kind.pattern, style: String::new() }
            } else {
                nothing
            };
        }
        match inside.as_slice() {
            [(first, eighths), .., (last, _)] if filled == 8 => {
                let style = format!("{};{}", first.kind.color, last.kind.color + 10);
                WindowCell { character: EIGHTHS[*eighths], style }
            }
            _ => WindowCell { character: EIGHTHS[filled.max(1)], style: slice.kind.color.to_string() },
        }
    }

    /// Eighths of a cell that each slice takes, from the left; only those that take any.
    fn eighths(&self, at: usize) -> Vec<(&WindowSlice, usize)> {
        let eighths = |slice: &WindowSlice| slice.tokens * self.scale * 8.0;
        cell_eighths(self.slices.iter().map(|slice| (slice, eighths(slice))), at)
    }
}

/// A threshold: its letter, its name, its tokens and its color.
type WindowThreshold = (char, &'static str, u64, &'static str);

fn thresholds(limits: &WindowLimits) -> Vec<WindowThreshold> {
    let auto = limits.auto_compact.map(|tokens| ('c', "auto-compact", tokens, "35"));
    let mut all = vec![
        ('w', "warning", limits.warning, "33"),
        ('b', "blocking", limits.blocking, "31"),
        ('e', "effective window", limits.effective, "1"),
    ];
    all.extend(auto);
    all.sort_by_key(|(_, _, tokens, _)| *tokens);
    all
}

/// Draws the letters of the thresholds below the bar, stacked if they fall into one column, and then their names.
fn threshold_lines(limits: &WindowLimits, wide: usize, colors: TextStyle) -> Vec<String> {
    let mut rows: Vec<Vec<Option<WindowThreshold>>> = Vec::new();
    let all = thresholds(limits);
    for threshold in &all {
        let column = (threshold.2 as f64 / limits.window as f64 * wide as f64) as usize;
        let column = column.min(wide - 1);
        let free = rows.iter().position(|row| row[column].is_none()).unwrap_or(rows.len());
        if free == rows.len() {
            rows.push(vec![None; wide]);
        }
        rows[free][column] = Some(*threshold);
    }
    let drawn = |row: &Vec<Option<WindowThreshold>>| -> String {
        let letter = |cell: &Option<WindowThreshold>| match cell {
            Some((letter, _, _, color)) => colors.paint(color, &letter.to_string()),
            None => String::from(" "),
        };
        row.iter().map(letter).collect()
    };
    let mut lines: Vec<String> = rows.iter().map(drawn).collect();
    let (mut line, mut taken) = (String::new(), 0);
    for (letter, name, tokens, color) in all {
        let words = format!(" {name} {}", group_digits(tokens));
        let width = words.chars().count() + 1;
        if taken > 0 && taken + 3 + width > wide {
            lines.push(std::mem::take(&mut line));
            taken = 0;
        }
        if taken > 0 {
            line.push_str("   ");
            taken += 3;
        }
        line.push_str(&colors.paint(color, &letter.to_string()));
        line.push_str(&words);
        taken += width;
    }
    lines.push(line);
    lines
}

/// Draws the legend: tokens of each slice, their share of the used part and of the window.
fn legend(slices: &[WindowSlice], limits: &WindowLimits, colors: TextStyle) -> Vec<String> {
    let (window, effective) = (limits.window as f64, limits.effective as f64);
    let used: f64 = slices.iter().map(|slice| slice.tokens).sum();
    let mut rows: Vec<(String, &str, f64, String)> = Vec::new();
    for slice in slices {
        let sample = if colors.is_on() { '█' } else { slice.kind.pattern };
        let sample = colors.paint(&slice.kind.color.to_string(), &sample.to_string());
        rows.push((sample, slice.kind.name, slice.tokens, format_percent(slice.tokens / used.max(1.0))));
    }
    let empty = |sign: char| colors.dim(&sign.to_string());
    rows.push((empty(FREE), "free", (effective - used).max(0.0), String::new()));
    rows.push((empty(RESERVED), "reserved for output", window - effective, String::new()));
    let width = rows.iter().map(|row| row.1.chars().count()).max().unwrap_or(0);
    let heading = format!("  {:width$}  {:>9}  {:>7}  {:>9}", "", "tokens", "of used", "of window");
    let row = |(sample, name, tokens, of_used): &(String, &str, f64, String)| {
        let of_window = format_percent(tokens / window);
        format!("{sample} {name:<width$}  {:>9}  {of_used:>7}  {of_window:>9}", format_tokens(*tokens))
    };
    std::iter::once(colors.dim(&heading)).chain(rows.iter().map(row)).collect()
}

#[cfg(test)]
mod tests {
    use pal_model::ModelCatalog;
    use pal_view::WindowSettings;

    use super::super::window_slices::{sample_slices, total_tokens};
    use super::*;

    fn limits(model: &str) -> WindowLimits {
        WindowLimits::new(&ModelCatalog::built_in().find(model).card, &WindowSettings::STANDARD)
    }

    fn plain(tokens: [f64; 4], limits: &WindowLimits, columns: usize) -> Vec<String> {
        picture_lines(&sample_slices(tokens), limits, columns, TextStyle::new(false))
    }

    #[test]
    fn a_window_that_is_half_full_in_eighty_columns() {
        let limits = limits("claude-haiku-4-5");
        let picture = plain([10_000.0, 20_000.0, 30_000.0, 40_000.0], &limits, 80).join("\n");
        let expected = "
  ░░░░▜▜▜▜▜▜▜▜▟▟▟▟▟▟▟▟▟▟▟████████████████·······························╱╱╱╱╱╱╱╱
                                                                w  c   be
  w warning 160,000   c auto-compact 167,000   b blocking 177,000
  e effective window 180,000
                              tokens  of used  of window
  ░ tools                     10,000    10.0%       5.0%
  ▜ system prompt, static     20,000    20.0%      10.0%
  ▟ instruction files         30,000    30.0%      15.0%
  █ tool results              40,000    40.0%      20.0%
  · free                      80,000               40.0%
  ╱ reserved for output       20,000               10.0%";
        assert_eq!(format!("\n{picture}"), expected, "\n{picture}");
    }

    #[test]
    fn a_small_part_of_a_large_window_is_enlarged() {
        let limits = limits("claude-opus-5-5");
        let picture = plain([3_000.0, 3_000.0, 6_000.0, 0.0], &limits, 40);
        assert!(picture[0].starts_with("  ▟···"), "{}", picture[0]);
        let at = picture.iter().position(|line| line == "used part, enlarged").unwrap();
        assert_eq!(picture[at + 1].trim(), "░░░░░░░░░▜▜▜▜▜▜▜▜▜▜▟▟▟▟▟▟▟▟▟▟▟▟▟▟▟▟▟▟▟");
    }

    #[test]
    fn picture_fits_every_width() {
        for model in ["claude-haiku-4-5", "claude-opus-5-5"] {
            let limits = limits(model);
            for tokens in [[0.0; 4], [1.0, 0.0, 0.0, 0.0], [5e3, 5e3, 5e5, 9e5], [9e5; 4]] {
                for columns in [40, 80, 120, 240] {
                    let plain = plain(tokens, &limits, columns);
                    let legend = 60;
                    let widest = plain.iter().map(|line| line.chars().count()).max().unwrap();
                    assert!(widest <= columns.max(legend), "{columns}: {widest}\n{}", plain.join("\n"));
                    let colored =
                        picture_lines(&sample_slices(tokens), &limits, columns, TextStyle::new(true));
                    assert_eq!(colored.len(), plain.len());
                    assert_eq!(plain[0].chars().count(), columns, "{}", plain[0]);
                }
            }
        }
        assert_eq!(total_tokens(&sample_slices([0.4, 0.4, 0.0, 0.0])), 1);
    }
}
