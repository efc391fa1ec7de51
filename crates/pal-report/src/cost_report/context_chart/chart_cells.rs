//! Cells of the stacked columns: the character and the colors for the segments that a cell covers.

use crate::bar_cells::cell_eighths;
use crate::text_style::TextStyle;

use super::chart_columns::ChartColumn;
use super::{EIGHTHS, HEIGHT, SEGMENTS};

/// A cell: its character, and the codes of its colors.
#[derive(Clone, PartialEq)]
pub(super) struct ChartCell {
    character: char,
    style: String,
}

/// The cell of a column at a level, counted from the bottom.
pub(super) fn cell(column: &ChartColumn, level: usize, most: f64, with_colors: bool) -> ChartCell {
    let inside = eighths(column, level, most);
    if with_colors { colored(&inside) } else { plain(&inside, column, level) }
}

/// Eighths of a cell that each kind takes, from the bottom up; only those that take any.
fn eighths(column: &ChartColumn, level: usize, most: f64) -> Vec<(usize, usize)> {
    let scale = (HEIGHT * 8) as f64 / most.max(1.0);
    let parts = column.parts.iter().map(|tokens| tokens * scale);
    cell_eighths(parts.enumerate(), level)
}

/// Two kinds at most: the lowest in the foreground, the largest of the others behind it.
fn colored(inside: &[(usize, usize)]) -> ChartCell {
    let filled: usize = inside.iter().map(|(_, eighths)| eighths).sum();
    let Some(&(lowest, lowest_eighths)) = inside.first() else {
        return ChartCell { character: ' ', style: String::new() };
    };
    let color = |kind: usize| SEGMENTS[kind].color;
    let others = inside.iter().skip(1).max_by_key(|(_, eighths)| *eighths);
    match others {
        Some(&(other, _)) if filled == 8 => {
            let style = format!("{};{}", color(lowest), color(other) + 10);
            ChartCell { character: EIGHTHS[lowest_eighths], style }
        }
        _ => {
            let largest = inside.iter().max_by_key(|(_, eighths)| *eighths).map_or(lowest, |(kind, _)| *kind);
            ChartCell { character: EIGHTHS[filled], style: color(largest).to_string() }
        }
    }
}

/// The pattern of the largest kind, if the cell is filled by half; the lowest cell of a column always shows something.
fn plain(inside: &[(usize, usize)], column: &ChartColumn, level: usize) -> ChartCell {
    let filled: usize = inside.iter().map(|(_, eighths)| eighths).sum();
    let by_column = || {
        let largest = |one: &(usize, &f64), other: &(usize, &f64)| one.1.total_cmp(other.1);
        column.parts.iter().enumerate().max_by(largest).map(|(kind, _)| kind)
    };
    let kind = match inside.iter().max_by_key(|(_, eighths)| *eighths) {
        Some((kind, _)) if filled >= 4 => Some(*kind),
        _ if level == 0 && column.tokens() >= 1.0 => by_column(),
        _ => None,
    };
    ChartCell { character: kind.map_or(' ', |kind| SEGMENTS[kind].pattern), style: String::new() }
}

/// Joins cells into a line, each `wide` columns wide; neighbors of one style share its codes.
pub(super) fn paint(cells: impl Iterator<Item = ChartCell>, wide: usize, colors: TextStyle) -> String {
    let mut line = String::new();
    let mut run = String::new();
    let mut style = String::new();
    for cell in cells {
        if cell.style != style {
            line.push_str(&styled(&style, &run, colors));
            run.clear();
            style = cell.style;
        }
        run.extend(std::iter::repeat_n(cell.character, wide));
    }
    line.push_str(&styled(&style, &run, colors));
    line
}

fn styled(style: &str, run: &str, colors: TextStyle) -> String {
    if style.is_empty() { run.to_owned() } else { colors.paint(style, run) }
}
