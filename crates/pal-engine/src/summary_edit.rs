//! User edits of a summary before it is applied (§10.2): pins cannot be lost, and lost user messages are
//! restored.

use pal_model::{BlockType, Boundary, ContentBlock};
use pal_view::View;

use crate::EngineError;

/// Heading of user messages that an edit removed.
const PUT_BACK: &str = "Messages of the user that were lost when this summary was edited, word for word:";

/// Editable text of a boundary; none if it has none.
pub fn summary_text(boundary: &Boundary) -> Option<String> {
    message(boundary).and_then(|at| text_of(&boundary.summary.blocks()[at]))
}

/// Replaces the text of a boundary that is not part of `view` yet. Fails if a pin is lost or the context would
/// not shrink.
pub fn edit_summary(view: &View, boundary: &Boundary, text: &str) -> Result<Boundary, EngineError> {
    let not = |why: String| Err(EngineError::NotPossible(why));
    let Some((at, old)) = message(boundary).zip(summary_text(boundary)) else {
        return not(String::from("this summary has no text that could be edited"));
    };
    let lost = |words: &&String| holds(&old, words) && !holds(text, words);
    if let Some((number, pin)) = view.state().pins.values().enumerate().find(|(_, pin)| lost(pin)) {
        let beginning: String = pin.chars().take(60).collect();
        return not(format!("the edited summary has lost pin {}: {beginning}", number + 1));
    }
    let mut text = text.trim_end().to_owned();
    let said = boundary.snapshot.user_messages.messages.iter().map(|words| &words.text);
    let lost: Vec<&String> = said.filter(lost).collect();
    if !lost.is_empty() {
        text.push_str(&format!("\n\n{PUT_BACK}\n"));
        for words in lost {
            text.push_str(&format!("<user_message>\n{words}\n</user_message>\n"));
        }
    }
    let mut blocks: Vec<ContentBlock> = boundary.summary.blocks().to_vec();
    blocks[at] = ContentBlock::text(&text);
    let mut edited = Boundary { summary: blocks.into_iter().collect(), ..boundary.clone() };
    let after = view.with_boundary(&edited).size().tokens;
    // A short conversation may get longer by a summary; the edited one may be as long as that.
    let is_longer = boundary.tokens_after.is_none_or(|proposed| after > proposed);
    if is_longer && boundary.tokens_before.is_some_and(|before| after >= before) {
        return not(format!(
            "the context would have {after} tokens with the edited summary, no less than before"
        ));
    }
    edited.tokens_after = Some(after);
    Ok(edited)
}

/// Index of the text block: the last one, after a block of the provider.
fn message(boundary: &Boundary) -> Option<usize> {
    boundary.summary.blocks().iter().rposition(|block| block.kind() == BlockType::Text)
}

fn text_of(block: &ContentBlock) -> Option<String> {
    block.string("text").map(|text| text.into_owned())
}

/// Returns whether a text contains words, ignoring line breaks.
fn holds(text: &str, words: &str) -> bool {
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    text.contains(words) || flat(text).contains(&flat(words))
}
