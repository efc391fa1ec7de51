//! Replacement texts for spilled content.

use pal_model::{BlockType, ContentBlock};

use crate::text::{group_by_spaces, text_head, text_tail};

/// Maximum bytes of a note at the end of a result.
const CLOSING_NOTE_MAX: usize = 400;

/// Joins the text blocks of a message.
pub(super) fn of_blocks(blocks: &[ContentBlock]) -> String {
    let texts = blocks.iter().filter(|block| block.kind() == BlockType::Text);
    let texts: Vec<_> = texts.filter_map(|block| block.string("text")).collect();
    texts.join("\n\n")
}

/// Text for a spilled tool result: its length, its path and its beginning.
pub(super) fn of_result(whole: &str, file: &str, most: usize, media: usize) -> String {
    let note = closing_note(whole);
    let place = match note {
        Some(_) => format!("It is in {file} as it was returned"),
        None => format!("All of it is in {file}"),
    };
    let mut text = format!(
        "[This result has {} characters. {place}; read the parts that you need from there. It begins:]\n",
        group_by_spaces(whole.chars().count() as u64)
    );
    if media > 0 {
        text.insert_str(0, &format!("[{media} pictures or documents of this result are left out.]\n"));
    }
    text.push_str(text_head(whole, most));
    if !text.ends_with('\n') {
        text.push('\n');
    }
    match note {
        Some(note) => text.push_str(&format!("[… and ends with this note:]\n{note}")),
        None => text.push_str("[…]"),
    }
    text
}

/// The note in brackets that a tool put at the end of a result that is not everything: a page of a file, an answer
/// that was cut.
fn closing_note(whole: &str) -> Option<&str> {
    let last = whole.trim_end().lines().next_back()?;
    (last.starts_with('[') && last.ends_with(']') && last.len() <= CLOSING_NOTE_MAX).then_some(last)
}

/// Text for a condensed result.
pub(super) fn of_condensed(condensed: &str, whole: &str, file: &str) -> String {
    let end = if condensed.ends_with('\n') { "" } else { "\n" };
    format!(
        "{condensed}{end}[Shortened from {} characters. All of it is in {file}.]",
        group_by_spaces(whole.chars().count() as u64)
    )
}

/// Text for a page of a spilled file that is too long for the message: its beginning, and where to continue.
pub(super) fn of_page(whole: &str, most: usize, first_line: u64) -> String {
    let shown = text_head(whole, most);
    let next = first_line + shown.lines().count() as u64;
    let end = if shown.ends_with('\n') { "" } else { "\n" };
    format!("{shown}{end}[This page is cut here. Read on from line {next}, a smaller part at a time.]")
}

/// Text for a long paste: its beginning and its end, where a question often stands.
pub(super) fn of_paste(whole: &str, file: &str, most: usize) -> String {
    let (start, end) = (text_head(whole, most / 4 * 3), text_tail(whole, most / 4));
    format!(
        "[The user's text has {} characters. All of it is in {file}; read the parts that you need from there. It \
         begins:]\n{start}\n[… and ends:]\n{end}",
        group_by_spaces(whole.chars().count() as u64)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_not_called_the_whole() {
        let lines: String = (1..2_000).map(|number| format!("{number}\tline\n")).collect();
        let note = "[Lines 1 to 1999 of 9000. Read on with offset 2000.]";
        let text = of_result(&format!("{lines}\n{note}"), "/s/results/a.txt", 100, 0);
        assert!(!text.contains("All of it") && text.contains("It is in /s/results/a.txt"), "{text}");
        assert!(text.ends_with(&format!("[… and ends with this note:]\n{note}")), "{text}");
        let text = of_result(&lines, "/s/results/a.txt", 100, 0);
        assert!(text.contains("All of it is in /s/results/a.txt") && text.ends_with("[…]"), "{text}");
    }
}
