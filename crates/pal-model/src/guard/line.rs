//! Names of files, branches and people inside sentences that the program writes.

use super::letters::is_unseen;

/// Stands where a text was cut.
const CUT: char = '…';

/// A name for a sentence of ours: in quotation marks, on one line, of at most `most` characters, and without a tag or a
/// character that only seems to be absent. Line ends, controls and whatever turns the direction of reading are spelled
/// out, so that the name can end neither its line nor its quotation.
///
/// A cut is shown as `…` inside the quotation marks; the length counts what is spelled out, not the marks around it and
/// not the backslash of a defused tag.
pub fn one_line(text: &str, most: usize) -> String {
    let mut line = String::with_capacity(text.len().min(most) + 2);
    let mut length = 0;
    for letter in text.chars() {
        let before = line.len();
        spell(&mut line, letter);
        length += line[before..].chars().count();
        if length > most {
            line.truncate(before);
            shorten(&mut line, most);
            line.push(CUT);
            break;
        }
    }
    format!("\"{}\"", super::defuse(&line))
}

/// Leaves room for the sign that something was cut.
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
        letter if is_unseen(letter) => line.push_str(&format!("\\u{{{:x}}}", letter as u32)),
        letter if letter.is_whitespace() => line.push(' '),
        letter => line.push(letter),
    }
}
