//! The document of a dialog, page by page: its scroll position, and which lines have been on screen.

use ratatui_core::text::{Line, Span};

use crate::styled_text::truncate_columns;
use crate::theme::Theme;

/// Scroll position of the document, and the lines that have been on screen.
#[derive(Default)]
pub(crate) struct DialogPage {
    /// Columns and rows of the layout.
    pub(crate) size: (usize, usize),
    pub(crate) document: Vec<Line<'static>>,
    /// First visible line, and number of visible lines.
    pub(crate) top: usize,
    pub(crate) rows: usize,
    /// First line of the last frame; scrolling cannot skip a page that was not drawn.
    pub(crate) drawn_top: usize,
    /// Lines that have been on screen.
    pub(crate) seen: Vec<bool>,
    /// The choices share one line.
    pub(crate) is_compact: bool,
    /// There is room for the document only.
    pub(crate) is_bare: bool,
    /// A line shows the scroll position.
    pub(crate) has_position: bool,
    /// An approving key was rejected.
    pub(crate) is_refused: bool,
}

impl DialogPage {
    pub(crate) fn is_long(&self) -> bool {
        self.document.len() > self.rows
    }

    pub(crate) fn n_unseen(&self) -> usize {
        self.seen.iter().filter(|is_seen| !**is_seen).count()
    }

    pub(crate) fn last_top(&self) -> usize {
        self.document.len().saturating_sub(self.rows)
    }

    pub(crate) fn scroll_to(&mut self, top: usize) {
        self.top = top.min(self.last_top());
        self.is_refused = false;
    }

    pub(crate) fn scroll_down(&mut self, rows: usize) {
        self.scroll_to((self.top + rows).min(self.drawn_top + self.rows));
    }

    /// Position line below a document that does not fit.
    pub(crate) fn position(&self, width: usize, theme: Theme) -> Line<'static> {
        let (total, unseen) = (self.document.len(), self.n_unseen());
        let (first, last) = (self.top + 1, (self.top + self.rows).min(total));
        let text = match (self.is_refused, self.seen.iter().position(|is_seen| !is_seen)) {
            (true, Some(at)) => format!(
                "  scroll to the end first (PgDn): {unseen} of {total} lines not seen, from line {} on",
                at + 1
            ),
            (_, Some(_)) => {
                format!("  lines {first}–{last} of {total} · PgDn and ↓ scroll · {unseen} not seen yet")
            }
            (_, None) => format!("  lines {first}–{last} of {total} · PgUp and ↑ scroll back · all seen"),
        };
        let style = if self.is_refused { theme.warning().patch(theme.strong()) } else { theme.accent() };
        Line::from(Span::styled(truncate_columns(&text, width), style))
    }
}
