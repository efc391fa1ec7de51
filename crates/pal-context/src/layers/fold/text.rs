//! What a fold says.

use pal_model::{Block, BlockType};
use pal_view::{Shown, View};

use crate::call::Call;
use crate::words::beginning;

const WORDS_HEADING: &str = "\n[In it the user said, word for word:]\n";
/// Bytes of the line by which an entry is found.
const LINE_BYTES: usize = 160;

/// What a person said in an entry.
pub(super) fn words(one: &Shown<'_>) -> String {
    let blocks = one.content().map_or(&[][..], |content| content.blocks());
    let texts: Vec<_> = blocks
        .iter()
        .filter(|block| block.kind() == BlockType::Text)
        .filter_map(|block| block.string("text"))
        .filter(|text| !text.trim().is_empty())
        .collect();
    texts.join("\n")
}

/// The text of a fold: the summary, cut to fit, and what people said.
pub(super) fn fitted(
    view: &View,
    shown: &[Shown<'_>],
    summary: &str,
    most: u64,
    wrapped: impl Fn(&str) -> String,
) -> String {
    let said: Vec<String> = shown.iter().filter(|one| one.is_of_a_person()).map(words).collect();
    let said: Vec<&String> = said.iter().filter(|text| !text.is_empty()).collect();
    let mut end = String::new();
    if !said.is_empty() {
        end.push_str(WORDS_HEADING);
        for text in said {
            end.push_str(text);
            end.push('\n');
        }
    }
    let estimator = view.estimator();
    let with_end = |cut: &str| wrapped(&format!("{cut}{end}"));
    let fits = |cut: &str| estimator.total(estimator.text(&with_end(cut))) <= most;
    let summary = summary.trim();
    if fits(summary) {
        return with_end(summary);
    }
    let (mut low, mut high) = (0, summary.len());
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if fits(beginning(summary, middle)) { low = middle } else { high = middle }
    }
    with_end(beginning(summary, low).trim_end())
}

/// How an entry begins, for somebody who looks for it.
pub(super) fn first_line(one: &Shown<'_>) -> String {
    let blocks = one.content().map_or(&[][..], |content| content.blocks());
    let line = blocks.iter().find_map(|block| match block.kind() {
        BlockType::Text => block.string("text").map(|text| one_line(&text)),
        BlockType::ToolUse => Call::read(block).map(|call| called(&call)),
        BlockType::ToolResult => block.content().blocks().first().and_then(said),
        _ => None,
    });
    line.unwrap_or_default()
}

fn called(call: &Call<'_>) -> String {
    let about = call.path().or_else(|| call.command()).map(|about| one_line(&about));
    format!("{} {}", call.name, about.unwrap_or_else(|| one_line(call.input)))
}

fn said(block: &Block) -> Option<String> {
    let text = block.string("text")?;
    let line = one_line(&text);
    (!line.is_empty()).then_some(line)
}

/// The first line of a text that is not blank, not too long.
fn one_line(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("");
    let cut = beginning(line, LINE_BYTES);
    if cut.len() < line.len() { format!("{cut}…") } else { line.to_owned() }
}
