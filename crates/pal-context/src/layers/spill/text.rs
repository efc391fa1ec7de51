//! What the model reads in place of a text on disk.

use pal_model::{Block, BlockType};

use crate::words::{beginning, ending, grouped};

/// The text blocks of a message, as one text.
pub(super) fn of_blocks(blocks: &[Block]) -> String {
    let texts = blocks.iter().filter(|block| block.kind() == BlockType::Text);
    let texts: Vec<_> = texts.filter_map(|block| block.string("text")).collect();
    texts.join("\n\n")
}

/// In place of a tool result: how long it is, where it is, how it begins.
pub(super) fn of_result(whole: &str, file: &str, most: usize, media: usize) -> String {
    let mut text = format!(
        "[This result has {} characters. All of it is in {file}; read the parts that you need from there. It begins:]\n",
        grouped(whole.chars().count() as u64)
    );
    if media > 0 {
        text.insert_str(0, &format!("[{media} pictures or documents of this result are left out.]\n"));
    }
    text.push_str(beginning(whole, most));
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str("[…]");
    text
}

/// In place of a result that a condenser made shorter.
pub(super) fn of_condensed(condensed: &str, whole: &str, file: &str) -> String {
    let end = if condensed.ends_with('\n') { "" } else { "\n" };
    format!(
        "{condensed}{end}[Shortened from {} characters. All of it is in {file}.]",
        grouped(whole.chars().count() as u64)
    )
}

/// In place of a page of a spilled file that is longer than the message may be: its beginning, and where to go on.
pub(super) fn of_page(whole: &str, most: usize, first_line: u64) -> String {
    let shown = beginning(whole, most);
    let next = first_line + shown.lines().count() as u64;
    let end = if shown.ends_with('\n') { "" } else { "\n" };
    format!("{shown}{end}[This page is cut here. Read on from line {next}, a smaller part at a time.]")
}

/// In place of what somebody pasted: its beginning and its end, where a question often stands.
pub(super) fn of_paste(whole: &str, file: &str, most: usize) -> String {
    let (start, end) = (beginning(whole, most / 4 * 3), ending(whole, most / 4));
    format!(
        "[The user's text has {} characters. All of it is in {file}; read the parts that you need from there. It \
         begins:]\n{start}\n[… and ends:]\n{end}",
        grouped(whole.chars().count() as u64)
    )
}
