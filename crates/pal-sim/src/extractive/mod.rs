//! A model without a model: answers directives from what it was sent, word for word, and any other question
//! honestly.
//!
//! Deterministic and without memory: an answer is a function of the request alone. It names nothing that does not
//! stand in the request.

mod directive;
mod labels;
mod memory;
mod notes;
mod summary;
mod tools;

use crate::heard;
use crate::{Answer, Ask, Model, Said};
pub(crate) use directive::{Directive, recognise};
use pal_extract::{Facts, Heard, cut};

/// A model that extracts instead of thinking.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extractive;

impl Extractive {
    /// Whether a request is a directive that it answers, so that another model can leave it to this one.
    pub fn is_asked(ask: &Ask<'_>) -> bool {
        recognise(ask).is_some()
    }
}

/// The bytes that fit into a number of tokens, whatever is said in them.
fn room(max_tokens: u64) -> usize {
    const BYTES_A_TOKEN: u64 = 2;
    const MOST: u64 = 64_000;
    usize::try_from(max_tokens.saturating_mul(BYTES_A_TOKEN).min(MOST)).unwrap_or(0)
}

impl Model for Extractive {
    fn answer(&mut self, ask: &Ask<'_>) -> Answer {
        let room = room(ask.max_tokens);
        let Some(found) = recognise(ask) else { return plain(ask, room) };
        let facts = conversation(ask, found.at);
        match found.directive {
            Directive::Summary => text(summary::answer(&facts, &found.words, room)),
            Directive::Notes => notes::answer(&facts, &found.words, &ask.tools, room),
            Directive::Memory => memory::answer(&facts, &found.words, &ask.tools, room),
            Directive::Title => text(labels::title(&facts)),
            Directive::Progress => text(labels::progress(&facts)),
        }
    }
}

/// The facts of a conversation; the block of the directive itself is not part of it.
fn conversation(ask: &Ask<'_>, directive: Option<(usize, usize)>) -> Facts {
    Facts::of_messages(ask.messages.iter().enumerate().map(|(index, message)| {
        let blocks = message.blocks.iter().enumerate();
        let blocks = blocks.filter(move |(place, _)| directive != Some((index, *place)));
        (message.role, blocks.map(|(_, raw)| Heard::of(raw)))
    }))
}

/// An answer of words alone.
fn text(words: String) -> Answer {
    Answer { blocks: vec![Said::Text(words)], stop: None }
}

/// The answer to a question that is no directive.
fn plain(ask: &Ask<'_>, room: usize) -> Answer {
    let last = ask.messages.last();
    let results = last.map_or(0, |message| {
        heard::blocks(message).filter(|block| matches!(block, Heard::Returned { .. })).count()
    });
    if results > 0 && last.is_some_and(|message| heard::words(message).is_empty()) {
        return text(format!("Done; {results} tool result(s) received."));
    }
    let question = heard::last_words(ask).unwrap_or_default();
    let quoted = cut(question.trim(), 400.min(room / 2));
    let tools: Vec<String> = ask
        .tools
        .iter()
        .filter_map(|raw| heard::tool_name(raw))
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
