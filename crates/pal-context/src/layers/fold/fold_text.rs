//! Text of a fold.

use pal_model::{BlockType, ContentBlock};
use pal_view::{View, VisibleEntry};

use crate::text::text_head;
use crate::visible_call::VisibleCall;

const WORDS_HEADING: &str = "\n[In it the user said, word for word:]\n";
/// Maximum bytes of the line that identifies an entry.
const LINE_BYTES: usize = 160;

/// Text of a person in an entry.
pub(super) fn entry_text(one: &VisibleEntry<'_>) -> String {
    let blocks = one.content().map_or(&[][..], |content| content.blocks());
    let texts: Vec<_> = blocks
        .iter()
        .filter(|block| block.kind() == BlockType::Text)
        .filter_map(|block| block.string("text"))
        .filter(|text| !text.trim().is_empty())
        .collect();
    texts.join("\n")
}

/// Writes the text of a fold: the summary, truncated to fit, and the user's words.
pub(super) fn fitted(
    view: &View,
    shown: &[VisibleEntry<'_>],
    summary: &str,
    most: u64,
    wrapped: impl Fn(&str) -> String,
) -> String {
    let said: Vec<String> = shown.iter().filter(|one| one.is_from_person()).map(entry_text).collect();
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
        if fits(text_head(summary, middle)) { low = middle } else { high = middle }
    }
    with_end(text_head(summary, low).trim_end())
}

/// First line of an entry, to identify it.
pub(super) fn first_line(one: &VisibleEntry<'_>) -> String {
    let blocks = one.content().map_or(&[][..], |content| content.blocks());
    let line = blocks.iter().find_map(|block| match block.kind() {
        BlockType::Text => block.string("text").map(|text| one_line(&text)),
        BlockType::ToolUse => VisibleCall::read(block).map(|call| called(&call)),
        BlockType::ToolResult => block.content().blocks().first().and_then(block_text),
        _ => None,
    });
    line.unwrap_or_default()
}

fn called(call: &VisibleCall<'_>) -> String {
    let about = call.path().or_else(|| call.command()).map(|about| one_line(&about));
    format!("{} {}", call.name, about.unwrap_or_else(|| one_line(call.input)))
}

fn block_text(block: &ContentBlock) -> Option<String> {
    let text = block.string("text")?;
    let line = one_line(&text);
    (!line.is_empty()).then_some(line)
}

/// First non-blank line of a text, truncated.
fn one_line(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("");
    let cut = text_head(line, LINE_BYTES);
    if cut.len() < line.len() { format!("{cut}…") } else { line.to_owned() }
}
