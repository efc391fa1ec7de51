//! Summaries that a person edits before they are applied (§10.2): what was pinned cannot be lost that way, and what the
//! user said is put back.

use pal_model::{Block, BlockType, Boundary};
use pal_view::View;

use crate::EngineError;

/// What stands over words of the user that an edit had left out.
const PUT_BACK: &str = "Messages of the user that were lost when this summary was edited, word for word:";

/// The message of a boundary that a person may edit; none if there is none.
pub fn summary_text(boundary: &Boundary) -> Option<String> {
    message(boundary).and_then(|at| text_of(&boundary.summary.blocks()[at]))
}

/// The boundary with another message in place of its own, for a view that it is not part of. Refused if a pin is lost, or
/// if it would no longer make the context smaller.
pub fn edited(view: &View, boundary: &Boundary, text: &str) -> Result<Boundary, EngineError> {
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
    let said = boundary.snapshot.carried.words.iter().map(|words| &words.text);
    let lost: Vec<&String> = said.filter(lost).collect();
    if !lost.is_empty() {
        text.push_str(&format!("\n\n{PUT_BACK}\n"));
        for words in lost {
            text.push_str(&format!("<user_message>\n{words}\n</user_message>\n"));
        }
    }
    let mut blocks: Vec<Block> = boundary.summary.blocks().to_vec();
    blocks[at] = Block::text(&text);
    let mut edited = Boundary { summary: blocks.into_iter().collect(), ..boundary.clone() };
    let after = view.with_boundary(&edited).size().tokens;
    if boundary.tokens_before.is_some_and(|before| after >= before) {
        return not(format!(
            "the context would have {after} tokens with the edited summary, no less than before"
        ));
    }
    edited.tokens_after = Some(after);
    Ok(edited)
}

/// Where the message stands among the blocks of the summary: last, behind a block of the provider's.
fn message(boundary: &Boundary) -> Option<usize> {
    boundary.summary.blocks().iter().rposition(|block| block.kind() == BlockType::Text)
}

fn text_of(block: &Block) -> Option<String> {
    block.string("text").map(|text| text.into_owned())
}

/// Whether a text holds words, however its lines are broken.
fn holds(text: &str, words: &str) -> bool {
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    text.contains(words) || flat(text).contains(&flat(words))
}
