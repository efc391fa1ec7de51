//! Results of the last calls, kept to be shown in full on request.

use ratatui_core::text::{Line, Span};

use crate::styled_text::{sanitize, wrap_anywhere};
use crate::theme::Theme;

/// Maximum total size of the kept results, in bytes.
const BYTES_MAX: usize = 1 << 20;
/// Maximum printed lines of one result.
const LINES_MAX: usize = 400;

/// Results since the last prompt that have not been shown in full.
#[derive(Default)]
pub(super) struct FoldedResults {
    /// Headline and text of each result.
    results: Vec<(String, String)>,
}

impl FoldedResults {
    /// Adds a result; drops the oldest ones beyond the size limit.
    pub(super) fn keep(&mut self, call: String, text: &str) {
        self.results.push((call, text.to_owned()));
        let mut bytes: usize = self.results.iter().map(|(_, text)| text.len()).sum();
        // The newest stays whatever its size: only its beginning is printed.
        while bytes > BYTES_MAX && self.results.len() > 1 {
            bytes -= self.results.remove(0).1.len();
        }
    }

    /// Drops all results at the start of a prompt.
    pub(super) fn forget(&mut self) {
        self.results.clear();
    }

    /// Takes the results in full, each below its headline.
    pub(super) fn unfold(&mut self, width: usize, theme: Theme) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        for (call, text) in std::mem::take(&mut self.results) {
            lines.push(Line::default());
            lines.push(Line::from(vec![
                Span::styled("● ", theme.accent()),
                Span::styled(call, theme.strong()),
            ]));
            let text = sanitize(&text);
            let all = text.trim_end().lines().count();
            for line in text.trim_end().lines().take(LINES_MAX) {
                let (spans, indent) = ([Span::styled(line.to_owned(), theme.dim())], [Span::raw("  ")]);
                lines.extend(wrap_anywhere(&spans, &indent, &indent, width));
            }
            if all > LINES_MAX {
                let left = format!("  … {} more lines; /export FILE writes them all", all - LINES_MAX);
                lines.push(Line::from(Span::styled(left, theme.dim())));
            }
        }
        lines
    }
}
