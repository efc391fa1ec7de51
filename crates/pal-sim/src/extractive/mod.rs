//! A model that extracts its answers from the request: directives are answered verbatim from the
//! conversation, other questions with a notice.
//!
//! Deterministic and stateless; it names nothing that is not in the request.

mod directive;
mod file_tools;
mod memory_answer;
mod notes_answer;
mod session_titles;
mod summary_answer;

use crate::prompt_text;
use crate::{ModelOutput, ModelPrompt, OutputBlock, SimulatedModel};
pub(crate) use directive::{ExtractionDirective, recognize_directive};
use pal_extract::{ConversationFacts, MessageBlock, truncate};

/// A deterministic model that extracts instead of generating.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExtractiveModel;

impl ExtractiveModel {
    /// True if a request is a directive that this model answers.
    pub fn is_directive(ask: &ModelPrompt<'_>) -> bool {
        recognize_directive(ask).is_some()
    }
}

/// Bytes that safely fit into a number of tokens.
fn room(max_tokens: u64) -> usize {
    const BYTES_A_TOKEN: u64 = 2;
    const MAX: u64 = 64_000;
    usize::try_from(max_tokens.saturating_mul(BYTES_A_TOKEN).min(MAX)).unwrap_or(0)
}

impl SimulatedModel for ExtractiveModel {
    fn answer(&mut self, ask: &ModelPrompt<'_>) -> ModelOutput {
        let room = room(ask.max_tokens);
        let Some(found) = recognize_directive(ask) else { return plain(ask, room) };
        let facts = conversation(ask, found.at);
        match found.directive {
            ExtractionDirective::Summary => {
                let is_provider_s = ask.compaction.is_some();
                let room = if is_provider_s { room } else { summary_answer::usual_room(&facts, room) };
                text(summary_answer::answer(&facts, &found.words, room))
            }
            ExtractionDirective::Notes => notes_answer::answer(&facts, &found.words, &ask.tools, room),
            ExtractionDirective::Memory => memory_answer::answer(&facts, &found.words, &ask.tools, room),
            ExtractionDirective::Title => text(session_titles::title(&facts)),
            ExtractionDirective::Progress => text(session_titles::progress(&facts)),
        }
    }
}

/// Facts of a conversation, without the directive's own block.
fn conversation(ask: &ModelPrompt<'_>, directive: Option<(usize, usize)>) -> ConversationFacts {
    ConversationFacts::from_messages(ask.messages.iter().enumerate().map(|(index, message)| {
        let blocks = message.blocks.iter().enumerate();
        let blocks = blocks.filter(move |(place, _)| directive != Some((index, *place)));
        (message.role, blocks.map(|(_, raw)| MessageBlock::parse(raw)))
    }))
}

/// Text-only answer.
fn text(words: String) -> ModelOutput {
    ModelOutput { blocks: vec![OutputBlock::Text(words)], stop: None }
}

/// Answer to a request that is not a directive.
fn plain(ask: &ModelPrompt<'_>, room: usize) -> ModelOutput {
    let last = ask.messages.last();
    let results = last.map_or(0, |message| {
        prompt_text::blocks(message).filter(|block| matches!(block, MessageBlock::ToolResult { .. })).count()
    });
    if results > 0 && last.is_some_and(|message| prompt_text::message_text(message).is_empty()) {
        return text(format!("Done; {results} tool result(s) received."));
    }
    let question = prompt_text::last_user_text(ask).unwrap_or_default();
    let quoted = truncate(question.trim(), 400.min(room / 2));
    let tools: Vec<String> = ask
        .tools
        .iter()
        .filter_map(|raw| prompt_text::tool_name(raw))
        .take(8)
        .map(|name| name.into_owned())
        .collect();
    let named = match (tools.len(), ask.tools.len()) {
        (0, _) => "no tools".to_owned(),
        (shown, all) if shown < all => format!("{all} tools ({}, …)", tools.join(", ")),
        (_, all) => format!("{all} tool(s) ({})", tools.join(", ")),
    };
    text(format!(
        "This is the simulator of Palimpsest; no language model is behind this answer. You said: \"{quoted}\". \
         I see {} message(s), {} system block(s) and {named}. \
         I can summarise a conversation, keep notes, extract memories and name a session from what I am sent; \
         for anything else give me a script.",
        ask.messages.len(),
        ask.system.len(),
    ))
}

#[cfg(test)]
mod tests;
