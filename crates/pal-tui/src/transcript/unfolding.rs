//! Results of the last calls, kept so that they can be seen in full.

use ratatui_core::text::{Line, Span};

use crate::paint::{chopped, harmless};
use crate::theme::Theme;

/// Bytes of all results together that are kept.
const BYTES_MAX: usize = 1 << 20;
/// Lines of one result that are printed.
const LINES_MAX: usize = 400;

/// Results since the last prompt that nobody has seen in full.
#[derive(Default)]
pub(super) struct Folded {
    /// What was called, and what it returned.
    results: Vec<(String, String)>,
}

impl Folded {
    /// A call returned.
    pub(super) fn keep(&mut self, call: String, text: &str) {
        self.results.push((call, text.to_owned()));
        let mut bytes: usize = self.results.iter().map(|(_, text)| text.len()).sum();
        // The newest stays, however long it is: only its beginning is printed.
        while bytes > BYTES_MAX && self.results.len() > 1 {
            bytes -= self.results.remove(0).1.len();
        }
    }

    /// Another prompt begins: what came of the last one is history.
    pub(super) fn forget(&mut self) {
        self.results.clear();
    }

    /// The results in full, each below what was called. They are printed once.
    pub(super) fn unfold(&mut self, width: usize, theme: Theme) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        for (call, text) in std::mem::take(&mut self.results) {
            lines.push(Line::default());
            lines.push(Line::from(vec![
                Span::styled("● ", theme.accent()),
                Span::styled(call, theme.strong()),
            ]));
            let text = harmless(&text);
            let all = text.trim_end().lines().count();
            for line in text.trim_end().lines().take(LINES_MAX) {
                let (spans, indent) = ([Span::styled(line.to_owned(), theme.dim())], [Span::raw("  ")]);
                lines.extend(chopped(&spans, &indent, &indent, width));
            }
            if all > LINES_MAX {
                let left = format!("  … {} lines more; /export FILE has them", all - LINES_MAX);
                lines.push(Line::from(Span::styled(left, theme.dim())));
            }
        }
        lines
    }
}
