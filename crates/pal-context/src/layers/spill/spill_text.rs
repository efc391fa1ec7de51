//! Replacement texts for spilled content.

use pal_model::{BlockType, ContentBlock};

use crate::text::{group_by_spaces, text_head, text_tail};

/// Joins the text blocks of a message.
pub(super) fn of_blocks(blocks: &[ContentBlock]) -> String {
    let texts = blocks.iter().filter(|block| block.kind() == BlockType::Text);
    let texts: Vec<_> = texts.filter_map(|block| block.string("text")).collect();
    texts.join("\n\n")
}

/// Text for a spilled tool result: its length, its path and its beginning.
pub(super) fn of_result(whole: &str, file: &str, most: usize, media: usize) -> String {
    let mut text = format!(
        "[This result has {} characters. All of it is in {file}; read the parts that you need from there. It begins:]\n",
        group_by_spaces(whole.chars().count() as u64)
    );
    if media > 0 {
        text.insert_str(0, &format!("[{media} pictures or documents of this result are left out.]\n"));
    }
    text.push_str(text_head(whole, most));
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str("[…]");
    text
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
