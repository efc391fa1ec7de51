//! Lines: how wide they are, how they are broken and cut, and that nothing in them drives a terminal.

use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// What a tab becomes.
const TAB: &str = "    ";

/// Columns of a text.
pub(crate) fn columns(text: &str) -> usize {
    text.width()
}

/// Columns of a line.
pub(crate) fn line_columns(line: &Line<'_>) -> usize {
    line.spans.iter().map(|span| columns(&span.content)).sum()
}

/// A text without anything that drives a terminal or turns the direction of writing; lines stay.
pub(crate) fn harmless(text: &str) -> String {
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

/// A text in which every character that drives a terminal or cannot be seen is spelt out; lines stay.
pub(crate) fn spelt_out(text: &str) -> String {
    pal_permissions::reveal(text).replace('\t', TAB)
}

/// The same as [`harmless`] in one line.
pub(crate) fn harmless_line(text: &str) -> String {
    harmless(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The beginning of a text in at most so many columns, with a sign where it was cut.
pub(crate) fn clipped(text: &str, width: usize) -> String {
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

/// A line of at most so many columns.
pub(crate) fn clipped_line(line: &Line<'static>, width: usize) -> Line<'static> {
    if line_columns(line) <= width {
        return line.clone();
    }
    let mut left = width;
    let mut spans = Vec::new();
    for span in &line.spans {
        let wide = columns(&span.content);
        // The span that does not fit ends with the sign; one that just fits must leave room for it.
        if wide >= left {
            spans.push(Span::styled(clipped_hard(&span.content, left), span.style));
            break;
        }
        left -= wide;
        spans.push(span.clone());
    }
    Line::from(spans)
}

/// Cuts and always ends with the sign.
fn clipped_hard(text: &str, width: usize) -> String {
    let cut = clipped(text, width);
    if cut.ends_with('…') || width == 0 {
        return cut;
    }
    let mut graphemes: Vec<&str> = cut.graphemes(true).collect();
    while columns(&graphemes.concat()) + 1 > width {
        graphemes.pop();
    }
    format!("{}…", graphemes.concat())
}

/// A piece of text that is not broken, as it stands in a line.
struct Atom<'a> {
    text: &'a str,
    style: Style,
    wide: usize,
}

/// Breaks styled text into lines of at most `width` columns, at spaces where there are any. The first line begins with
/// `first`, all others with `rest`.
pub(crate) fn wrapped(
    content: &[Span<'static>],
    first: &[Span<'static>],
    rest: &[Span<'static>],
    width: usize,
) -> Vec<Line<'static>> {
    let mut paragraph = Wrapping::new(first, rest, width);
    let mut word: Vec<Atom<'_>> = Vec::new();
    for span in content {
        for grapheme in span.content.graphemes(true) {
            if grapheme == "\n" || grapheme == "\r\n" {
                paragraph.word(&mut word);
                paragraph.line_break();
                continue;
            }
            let atom = Atom { text: grapheme, style: span.style, wide: columns(grapheme) };
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

/// Breaks text anywhere, as code wants it: every space counts.
pub(crate) fn chopped(
    content: &[Span<'static>],
    first: &[Span<'static>],
    rest: &[Span<'static>],
    width: usize,
) -> Vec<Line<'static>> {
    let mut lines = Wrapping::new(first, rest, width);
    for span in content {
        for grapheme in span.content.graphemes(true) {
            lines.atom(&Atom { text: grapheme, style: span.style, wide: columns(grapheme) });
        }
    }
    lines.finish()
}

struct Wrapping<'a> {
    lines: Vec<Line<'static>>,
    spans: Vec<Span<'static>>,
    rest: &'a [Span<'static>],
    width: usize,
    /// Columns that are taken, those of the beginning included.
    taken: usize,
    /// Columns of the beginning.
    indent: usize,
}

impl<'a> Wrapping<'a> {
    fn new(first: &[Span<'static>], rest: &'a [Span<'static>], width: usize) -> Wrapping<'a> {
        let indent = spans_columns(first);
        Wrapping {
            lines: Vec::new(),
            spans: first.to_vec(),
            rest,
            width: width.max(1),
            taken: indent,
            indent,
        }
    }

    fn word(&mut self, word: &mut Vec<Atom<'_>>) {
        let wide: usize = word.iter().map(|atom| atom.wide).sum();
        if self.taken > self.indent && self.taken + wide > self.width {
            self.line_break();
        }
        for atom in word.drain(..) {
            self.atom(&atom);
        }
    }

    /// A space at the end of a line is not needed; one at its beginning is, where the text has it so.
    fn space(&mut self, atom: &Atom<'_>) {
        if self.taken < self.width {
            self.push(atom);
        }
    }

    fn atom(&mut self, atom: &Atom<'_>) {
        if self.taken > self.indent && self.taken + atom.wide > self.width {
            self.line_break();
        }
        self.push(atom);
    }

    fn push(&mut self, atom: &Atom<'_>) {
        self.taken += atom.wide;
        match self.spans.last_mut() {
            Some(last) if last.style == atom.style => last.content.to_mut().push_str(atom.text),
            _ => self.spans.push(Span::styled(atom.text.to_owned(), atom.style)),
        }
    }

    fn line_break(&mut self) {
        let spans = std::mem::replace(&mut self.spans, self.rest.to_vec());
        self.lines.push(trimmed(spans));
        self.indent = spans_columns(self.rest);
        self.taken = self.indent;
    }

    fn finish(mut self) -> Vec<Line<'static>> {
        let spans = std::mem::take(&mut self.spans);
        self.lines.push(trimmed(spans));
        self.lines
    }
}

/// A line without spaces at its end, which would only be in the way when text is copied.
fn trimmed(mut spans: Vec<Span<'static>>) -> Line<'static> {
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

/// A size for people.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.1} KB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

/// A number of tokens for people.
pub(crate) fn short(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => format!("{:.1} K", count as f64 / 1e3),
        _ => format!("{:.1} M", count as f64 / 1e6),
    }
}
