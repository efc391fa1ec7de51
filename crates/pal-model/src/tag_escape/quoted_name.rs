//! Quoting of foreign names (files, branches, people) inside sentences of the program.

use super::lookalikes::is_invisible;

/// Marks truncated text.
const ELLIPSIS: char = '…';

/// Quotes a foreign name for a sentence: in quotation marks, on one line, at most `most` characters long, with guarded
/// tags escaped. Line breaks, control, invisible and bidirectional characters are written as escapes, so that the name
/// can end neither its line nor its quotation.
///
/// Truncation is shown as `…` inside the quotation marks. The length includes escapes, but neither the quotation marks
/// nor the backslash of an escaped tag.
pub fn quote_name(text: &str, most: usize) -> String {
    let mut line = String::with_capacity(text.len().min(most) + 2);
    let mut length = 0;
    for letter in text.chars() {
        let before = line.len();
        spell(&mut line, letter);
        length += line[before..].chars().count();
        if length > most {
            line.truncate(before);
            shorten(&mut line, most);
            line.push(ELLIPSIS);
            break;
        }
    }
    format!("\"{}\"", super::escape_tags(&line))
}

/// Makes room for the ellipsis.
fn shorten(line: &mut String, most: usize) {
    while line.chars().count() >= most.max(1) {
        line.pop();
    }
}

fn spell(line: &mut String, letter: char) {
    match letter {
        '"' => line.push_str("\\\""),
        '\n' => line.push_str("\\n"),
        '\r' => line.push_str("\\r"),
        '\t' => line.push_str("\\t"),
        letter if is_invisible(letter) => line.push_str(&format!("\\u{{{:x}}}", letter as u32)),
        letter if letter.is_whitespace() => line.push(' '),
        letter => line.push(letter),
    }
}
