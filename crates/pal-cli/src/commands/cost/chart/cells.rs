//! Cells of the stacked columns: which character in which colours stands for what a cell covers.

use super::columns::Column;
use super::{EIGHTHS, HEIGHT, KINDS};
use crate::colour::Colours;
use crate::table::eighths_of_cell;

/// A cell: its character, and the codes of its colours.
#[derive(Clone, PartialEq)]
pub(super) struct Cell {
    character: char,
    style: String,
}

/// The cell of a column at a level, counted from the bottom.
pub(super) fn cell(column: &Column, level: usize, most: f64, with_colours: bool) -> Cell {
    let inside = eighths(column, level, most);
    if with_colours { coloured(&inside) } else { plain(&inside, column, level) }
}

/// Eighths of a cell that each kind takes, from the bottom up; only those that take any.
fn eighths(column: &Column, level: usize, most: f64) -> Vec<(usize, usize)> {
    let scale = (HEIGHT * 8) as f64 / most.max(1.0);
    let parts = column.parts.iter().map(|tokens| tokens * scale);
    eighths_of_cell(parts.enumerate(), level)
}

/// Two kinds at most: the lowest in the foreground, the largest of the others behind it.
fn coloured(inside: &[(usize, usize)]) -> Cell {
    let filled: usize = inside.iter().map(|(_, eighths)| eighths).sum();
    let Some(&(lowest, lowest_eighths)) = inside.first() else {
        return Cell { character: ' ', style: String::new() };
    };
    let colour = |kind: usize| KINDS[kind].colour;
    let others = inside.iter().skip(1).max_by_key(|(_, eighths)| *eighths);
    match others {
        Some(&(other, _)) if filled == 8 => {
            let style = format!("{};{}", colour(lowest), colour(other) + 10);
            Cell { character: EIGHTHS[lowest_eighths], style }
        }
        _ => {
            let largest = inside.iter().max_by_key(|(_, eighths)| *eighths).map_or(lowest, |(kind, _)| *kind);
            Cell { character: EIGHTHS[filled], style: colour(largest).to_string() }
        }
    }
}

/// The pattern of the largest kind, if the cell is filled by half; the lowest cell of a column always shows something.
fn plain(inside: &[(usize, usize)], column: &Column, level: usize) -> Cell {
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
    Cell { character: kind.map_or(' ', |kind| KINDS[kind].pattern), style: String::new() }
}

/// A line of cells, each so many columns wide; neighbours of one style share its codes.
pub(super) fn painted(cells: impl Iterator<Item = Cell>, wide: usize, colours: Colours) -> String {
    let mut line = String::new();
    let mut run = String::new();
    let mut style = String::new();
    for cell in cells {
        if cell.style != style {
            line.push_str(&styled(&style, &run, colours));
            run.clear();
            style = cell.style;
        }
        run.extend(std::iter::repeat_n(cell.character, wide));
    }
    line.push_str(&styled(&style, &run, colours));
    line
}

fn styled(style: &str, run: &str, colours: Colours) -> String {
    if style.is_empty() { run.to_owned() } else { colours.painted(style, run) }
}
