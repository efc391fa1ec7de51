//! Tables at any width: columns share the room, cells wrap, and a table that does not fit becomes a list.

use pulldown_cmark::Alignment;
use ratatui_core::text::{Line, Span};

use crate::styled_text::{line_columns, wrap};
use crate::theme::Theme;

/// Gap between columns.
const GAP: &str = "  ";
/// Minimum width of a column.
const COLUMN_MIN: usize = 6;

/// A table while it is parsed.
pub(super) struct MarkdownTable {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<Vec<Span<'static>>>>,
    row: Vec<Vec<Span<'static>>>,
}

impl MarkdownTable {
    pub(super) fn new(alignments: Vec<Alignment>) -> MarkdownTable {
        MarkdownTable { alignments, rows: Vec::new(), row: Vec::new() }
    }

    pub(super) fn cell(&mut self, spans: Vec<Span<'static>>) {
        self.row.push(spans);
    }

    pub(super) fn end_row(&mut self) {
        self.rows.push(std::mem::take(&mut self.row));
    }

    /// Renders the table in lines of at most `room` columns.
    pub(super) fn lines(self, room: usize, theme: Theme) -> Vec<Line<'static>> {
        let count = self.alignments.len();
        if count == 0 {
            return Vec::new();
        }
        match widths(&self.natural(), room.saturating_sub(GAP.len() * (count - 1))) {
            Some(widths) => self.grid(&widths, theme),
            None => self.list(room, theme),
        }
    }

    /// Natural width of each column.
    fn natural(&self) -> Vec<usize> {
        let wide = |cell: &Vec<Span<'static>>| line_columns(&Line::from(cell.clone()));
        let column = |at: usize| self.rows.iter().filter_map(|row| row.get(at)).map(wide).max().unwrap_or(0);
        (0..self.alignments.len()).map(|at| column(at).max(1)).collect()
    }

    fn grid(&self, widths: &[usize], theme: Theme) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        for (at, row) in self.rows.iter().enumerate() {
            lines.extend(self.grid_row(row, widths, at == 0, theme));
            if at == 0 {
                let rule: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                lines.push(Line::from(Span::styled(rule.join(GAP), theme.dim())));
            }
        }
        lines
    }

    fn grid_row(
        &self,
        row: &[Vec<Span<'static>>],
        widths: &[usize],
        is_heading: bool,
        theme: Theme,
    ) -> Vec<Line<'static>> {
        let cell = |at: usize| -> Vec<Line<'static>> {
            let mut spans = row.get(at).cloned().unwrap_or_default();
            if is_heading {
                spans.iter_mut().for_each(|span| span.style = span.style.patch(theme.strong()));
            }
            wrap(&spans, &[], &[], widths[at])
        };
        let cells: Vec<Vec<Line<'static>>> = (0..widths.len()).map(cell).collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        let line = |number: usize| {
            let mut spans = Vec::new();
            for (at, cell) in cells.iter().enumerate() {
                if at > 0 {
                    spans.push(Span::raw(GAP));
                }
                let line = cell.get(number).cloned().unwrap_or_default();
                let free = widths[at].saturating_sub(line_columns(&line));
                let before = match self.alignments[at] {
                    Alignment::Right => free,
                    Alignment::Center => free / 2,
                    Alignment::None | Alignment::Left => 0,
                };
                spans.push(Span::raw(" ".repeat(before)));
                spans.extend(line.spans);
                // The last column has no padding.
                if at + 1 < cells.len() {
                    spans.push(Span::raw(" ".repeat(free - before)));
                }
            }
            spans.retain(|span| !span.content.is_empty());
            Line::from(spans)
        };
        (0..height).map(line).collect()
    }

    /// Renders row by row, each cell after its heading.
    fn list(&self, room: usize, theme: Theme) -> Vec<Line<'static>> {
        let Some((heading, rows)) = self.rows.split_first() else { return Vec::new() };
        let mut lines = Vec::new();
        for row in rows {
            for (at, cell) in row.iter().enumerate() {
                let name: String =
                    heading.get(at).into_iter().flatten().map(|span| span.content.as_ref()).collect();
                let mut spans = vec![Span::styled(format!("{name}: "), theme.strong())];
                spans.extend(cell.iter().cloned());
                let first = Span::styled(if at == 0 { "• " } else { "  " }, theme.accent());
                lines.extend(wrap(&spans, &[first], &[Span::raw("  ")], room));
            }
        }
        lines
    }
}

/// Column widths that fit into `room`, if possible: columns narrower than their share keep their natural width.
fn widths(natural: &[usize], room: usize) -> Option<Vec<usize>> {
    let mut widths: Vec<Option<usize>> = vec![None; natural.len()];
    loop {
        let taken: usize = widths.iter().flatten().sum();
        let open = widths.iter().filter(|width| width.is_none()).count();
        if open == 0 {
            return Some(widths.into_iter().flatten().collect());
        }
        let share = room.saturating_sub(taken) / open;
        let modest: Vec<usize> =
            (0..natural.len()).filter(|at| widths[*at].is_none() && natural[*at] <= share).collect();
        if modest.is_empty() {
            if share < COLUMN_MIN {
                return None;
            }
            widths.iter_mut().for_each(|width| *width = width.or(Some(share)));
            continue;
        }
        for at in modest {
            widths[at] = Some(natural[at]);
        }
    }
}
