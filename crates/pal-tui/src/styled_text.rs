//! Width, wrapping, truncation and sanitizing of terminal text.

use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Replacement for a tab.
const TAB: &str = "    ";

/// Width of a text, in columns.
pub(crate) fn columns(text: &str) -> usize {
    text.width()
}

/// Width of a line, in columns.
pub(crate) fn line_columns(line: &Line<'_>) -> usize {
    line.spans.iter().map(|span| columns(&span.content)).sum()
}

/// Replaces control and bidirectional characters; keeps line breaks.
pub(crate) fn sanitize(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' => clean.push('\n'),
            '\t' => clean.push_str(TAB),
            '\r' => {}
            '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => clean.push('·'),
            character if character.is_control() => clean.push('·'),
            character => clean.push(character),
        }
    }
    clean
}

/// Spells out control and invisible characters; keeps line breaks.
pub(crate) fn spell_out(text: &str) -> String {
    pal_permissions::reveal(text).replace('\t', TAB)
}

/// Like [`sanitize`], joined into one line.
pub(crate) fn sanitize_line(text: &str) -> String {
    sanitize(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Truncates text to `width` columns, with an ellipsis.
pub(crate) fn truncate_columns(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let mut cut = String::new();
    let mut taken = 0;
    for grapheme in text.graphemes(true) {
        let wide = columns(grapheme);
        if taken + wide + 1 > width {
            break;
        }
        cut.push_str(grapheme);
        taken += wide;
    }
    if width > 0 {
        cut.push('…');
    }
    cut
}

/// Truncates a line to `width` columns, with an ellipsis.
pub(crate) fn truncate_line(line: &Line<'static>, width: usize) -> Line<'static> {
    if line_columns(line) <= width {
        return line.clone();
    }
    let mut left = width;
    let mut spans = Vec::new();
    for span in &line.spans {
        let wide = columns(&span.content);
        // The span that does not fit ends with the ellipsis; one that just fits must leave room for it.
        if wide >= left {
            spans.push(Span::styled(truncate_with_ellipsis(&span.content, left), span.style));
            break;
        }
        left -= wide;
        spans.push(span.clone());
    }
    Line::from(spans)
}

/// Truncates and always ends with an ellipsis.
fn truncate_with_ellipsis(text: &str, width: usize) -> String {
    let cut = truncate_columns(text, width);
    if cut.ends_with('…') || width == 0 {
        return cut;
    }
    let mut graphemes: Vec<&str> = cut.graphemes(true).collect();
    while columns(&graphemes.concat()) + 1 > width {
        graphemes.pop();
    }
    format!("{}…", graphemes.concat())
}

/// A grapheme with its style and width.
struct TextAtom<'a> {
    text: &'a str,
    style: Style,
    wide: usize,
}

/// Breaks styled text into lines of at most `width` columns, at spaces where there are any. The first line begins with
/// `first`, all others with `rest`.
pub(crate) fn wrap(
    content: &[Span<'static>],
    first: &[Span<'static>],
    rest: &[Span<'static>],
    width: usize,
) -> Vec<Line<'static>> {
    let mut paragraph = LineWrapper::new(first, rest, width);
    let mut word: Vec<TextAtom<'_>> = Vec::new();
    for span in content {
        for grapheme in span.content.graphemes(true) {
            if grapheme == "\n" || grapheme == "\r\n" {
                paragraph.word(&mut word);
                paragraph.line_break();
                continue;
            }
            let atom = TextAtom { text: grapheme, style: span.style, wide: columns(grapheme) };
            if grapheme == " " {
                paragraph.word(&mut word);
                paragraph.space(&atom);
            } else {
                word.push(atom);
            }
        }
    }
    paragraph.word(&mut word);
    paragraph.finish()
}

/// Breaks text anywhere, as for code: every space counts.
pub(crate) fn wrap_anywhere(
    content: &[Span<'static>],
    first: &[Span<'static>],
    rest: &[Span<'static>],
    width: usize,
) -> Vec<Line<'static>> {
    let mut lines = LineWrapper::new(first, rest, width);
    for span in content {
        for grapheme in span.content.graphemes(true) {
            lines.atom(&TextAtom { text: grapheme, style: span.style, wide: columns(grapheme) });
        }
    }
    lines.finish()
}

struct LineWrapper<'a> {
    lines: Vec<Line<'static>>,
    spans: Vec<Span<'static>>,
    rest: &'a [Span<'static>],
    width: usize,
    /// Used columns, including the indent.
    taken: usize,
    /// Columns of the indent.
    indent: usize,
}

impl<'a> LineWrapper<'a> {
    fn new(first: &[Span<'static>], rest: &'a [Span<'static>], width: usize) -> LineWrapper<'a> {
        let indent = spans_columns(first);
        LineWrapper {
            lines: Vec::new(),
            spans: first.to_vec(),
            rest,
            width: width.max(1),
            taken: indent,
            indent,
        }
    }

    fn word(&mut self, word: &mut Vec<TextAtom<'_>>) {
        let wide: usize = word.iter().map(|atom| atom.wide).sum();
        if self.taken > self.indent && self.taken + wide > self.width {
            self.line_break();
        }
        for atom in word.drain(..) {
            self.atom(&atom);
        }
    }

    /// Adds a space; drops it at the end of a full line.
    fn space(&mut self, atom: &TextAtom<'_>) {
        if self.taken < self.width {
            self.push(atom);
        }
    }

    fn atom(&mut self, atom: &TextAtom<'_>) {
        if self.taken > self.indent && self.taken + atom.wide > self.width {
            self.line_break();
        }
        self.push(atom);
    }

    fn push(&mut self, atom: &TextAtom<'_>) {
        self.taken += atom.wide;
        match self.spans.last_mut() {
            Some(last) if last.style == atom.style => last.content.to_mut().push_str(atom.text),
            _ => self.spans.push(Span::styled(atom.text.to_owned(), atom.style)),
        }
    }

    fn line_break(&mut self) {
        let spans = std::mem::replace(&mut self.spans, self.rest.to_vec());
        self.lines.push(trim_line(spans));
        self.indent = spans_columns(self.rest);
        self.taken = self.indent;
    }

    fn finish(mut self) -> Vec<Line<'static>> {
        let spans = std::mem::take(&mut self.spans);
        self.lines.push(trim_line(spans));
        self.lines
    }
}

/// Removes trailing spaces, which disturb copied text.
fn trim_line(mut spans: Vec<Span<'static>>) -> Line<'static> {
    while let Some(last) = spans.last_mut() {
        let kept = last.content.trim_end_matches(' ').len();
        if kept == last.content.len() {
            break;
        }
        if kept > 0 {
            last.content.to_mut().truncate(kept);
            break;
        }
        spans.pop();
    }
    Line::from(spans)
}

fn spans_columns(spans: &[Span<'_>]) -> usize {
    spans.iter().map(|span| columns(&span.content)).sum()
}

/// Formats a size in bytes.
pub(crate) fn format_size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.1} KB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

/// Formats a number of tokens.
pub(crate) fn format_tokens(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => format!("{:.1} K", count as f64 / 1e3),
        _ => format!("{:.1} M", count as f64 / 1e6),
    }
}
