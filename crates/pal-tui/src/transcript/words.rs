//! What is said of things that happened, in few words.

use std::time::Duration;

use pal_agent::Ended;
use pal_model::{BlockType, Boundary, CacheBreak, Content};

use crate::paint::{short, size};

/// The words of a message; pictures and the like are named.
pub(super) fn words_of(content: &Content) -> String {
    let word = |block: &pal_model::Block| match block.kind() {
        BlockType::Text => block.string("text").unwrap_or_default().into_owned(),
        BlockType::Image => String::from("[picture]"),
        BlockType::Document => String::from("[document]"),
        _ => String::new(),
    };
    let words: Vec<String> = content.blocks().iter().map(word).filter(|word| !word.is_empty()).collect();
    words.join("\n")
}

pub(super) fn compacted(boundary: &Boundary) -> String {
    let tokens = |count: Option<u64>| count.map_or_else(|| String::from("?"), short);
    let (before, after) = (tokens(boundary.tokens_before), tokens(boundary.tokens_after));
    format!(
        "the conversation was compacted: {before} → {after} tokens ({}); /uncompact takes it back",
        boundary.how
    )
}

pub(super) fn broke(fall: &CacheBreak) -> String {
    let cost = fall.cost.map_or(String::new(), |cost| format!(", ${cost:.4}"));
    format!("{} tokens fell out of the cache{cost}: {}", short(fall.tokens), fall.cause)
}

pub(super) fn spent(ended: &Ended) -> String {
    let spent = &ended.spent;
    let prompt = spent.input_tokens + spent.cache_creation_input_tokens + spent.cache_read_input_tokens;
    let read = if prompt == 0 { 0.0 } else { spent.cache_read_input_tokens as f64 / prompt as f64 * 100.0 };
    format!(
        "  {} · {} in ({read:.0} % cached), {} out · ${:.4}",
        seconds(ended.took),
        short(prompt),
        short(spent.output_tokens),
        spent.cost
    )
}

/// A time for people.
pub(super) fn seconds(took: Duration) -> String {
    match took.as_secs() {
        0..10 => format!("{:.1} s", took.as_secs_f64()),
        10..60 => format!("{} s", took.as_secs()),
        all => format!("{} min {} s", all / 60, all % 60),
    }
}

/// What a call gave, in few words.
pub(super) fn outcome(is_error: bool, took: Duration, bytes: u64) -> String {
    let what = if is_error { String::from("failed") } else { size(bytes) };
    if took < Duration::from_millis(100) { what } else { format!("{what}, {}", seconds(took)) }
}
