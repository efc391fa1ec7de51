//! Layout of the editor's text in rows of limited width.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use crate::styled_text::columns;

/// Text in rows, with the cursor.
pub(crate) struct TextLayout {
    /// Byte range of each row, without line breaks.
    pub(crate) rows: Vec<Range<usize>>,
    /// Row of the cursor.
    pub(crate) row: usize,
    /// Column of the cursor.
    pub(crate) column: usize,
}

/// Breaks text into rows of at most `width` columns: at line breaks, after spaces, else anywhere.
pub(crate) fn lay_out_text(text: &str, cursor: usize, width: usize) -> TextLayout {
    let mut rows = Vec::new();
    let mut start = 0;
    for line in text.split('\n') {
        rows_of(line, start, width.max(1), &mut rows);
        start += line.len() + 1;
    }
    let row = rows.iter().rposition(|row: &Range<usize>| row.start <= cursor).unwrap_or(0);
    let column = columns(&text[rows[row].start..cursor.clamp(rows[row].start, rows[row].end)]);
    TextLayout { rows, row, column }
}

fn rows_of(line: &str, offset: usize, width: usize, rows: &mut Vec<Range<usize>>) {
    let (mut start, mut taken, mut space) = (0, 0, None);
    for (at, grapheme) in line.grapheme_indices(true) {
        let wide = columns(grapheme);
        if taken + wide > width && at > start {
            let end = space.filter(|space| *space > start).unwrap_or(at);
            rows.push(offset + start..offset + end);
            start = end;
            taken = columns(&line[start..at]);
            space = None;
        }
        taken += wide;
        if grapheme == " " {
            space = Some(at + 1);
        }
    }
    rows.push(offset + start..offset + line.len());
}

impl TextLayout {
    /// Byte offset at a row and column; the end of the row if it is shorter.
    pub(crate) fn at(&self, text: &str, row: usize, column: usize) -> usize {
        let Some(range) = self.rows.get(row) else { return text.len() };
        let mut taken = 0;
        for (at, grapheme) in text[range.clone()].grapheme_indices(true) {
            if taken >= column {
                return range.start + at;
            }
            taken += columns(grapheme);
        }
        // The end of a wrapped row is the start of the next one.
        let goes_on = self.rows.get(row + 1).is_some_and(|next| next.start == range.end);
        if goes_on { range.end.saturating_sub(1) } else { range.end }
    }
}
