//! Short texts for events.

use std::time::Duration;

use pal_events::PromptResult;
use pal_model::{BlockType, Boundary, CacheBreak, Content};

use crate::styled_text::{format_size, format_tokens};

/// Text of a message, with placeholders for images and documents.
pub(super) fn message_text(content: &Content) -> String {
    let word = |block: &pal_model::ContentBlock| match block.kind() {
        BlockType::Text => block.string("text").unwrap_or_default().into_owned(),
        BlockType::Image => String::from("[picture]"),
        BlockType::Document => String::from("[document]"),
        _ => String::new(),
    };
    let words: Vec<String> = content.blocks().iter().map(word).filter(|word| !word.is_empty()).collect();
    words.join("\n")
}

pub(super) fn compaction_text(boundary: &Boundary) -> String {
    let tokens = |count: Option<u64>| count.map_or_else(|| String::from("?"), format_tokens);
    let (before, after) = (tokens(boundary.tokens_before), tokens(boundary.tokens_after));
    let note = if boundary.has_not_shrunk() { "; this did not shrink the context" } else { "" };
    format!(
        "the conversation was compacted: {before} → {after} tokens ({}){note}; /uncompact undoes it",
        boundary.method
    )
}

pub(super) fn cache_break_text(fall: &CacheBreak) -> String {
    let cost = fall.cost.map_or(String::new(), |cost| format!(", ${cost:.4}"));
    format!("{} tokens fell out of the cache{cost}: {}", format_tokens(fall.tokens), fall.reason())
}

pub(super) fn usage_text(ended: &PromptResult) -> String {
    let spent = &ended.spent;
    if !spent.is_reported() {
        return format!("  {} · the server reports no usage", format_duration(ended.took));
    }
    let prompt = spent.input_tokens + spent.cache_creation_input_tokens + spent.cache_read_input_tokens;
    let read = if prompt == 0 { 0.0 } else { spent.cache_read_input_tokens as f64 / prompt as f64 * 100.0 };
    format!(
        "  {} · {} in ({read:.0}% cached), {} out · ${:.4}{}",
        format_duration(ended.took),
        format_tokens(prompt),
        format_tokens(spent.output_tokens),
        spent.cost,
        spent.simulated_mark()
    )
}

/// Formats a duration for display.
pub(super) fn format_duration(took: Duration) -> String {
    match took.as_secs() {
        0..10 => format!("{:.1} s", took.as_secs_f64()),
        10..60 => format!("{} s", took.as_secs()),
        all => format!("{} min {} s", all / 60, all % 60),
    }
}

/// Formats size and duration of a result.
pub(super) fn result_summary(is_error: bool, took: Duration, bytes: u64) -> String {
    let what = if is_error { String::from("failed") } else { format_size(bytes) };
    if took < Duration::from_millis(100) { what } else { format!("{what}, {}", format_duration(took)) }
}
