//! Log entries of a recorded session and the requests it made.

use std::borrow::Cow;

use pal_model::{EntryBody, LogEntry, ModelCard, ModelCatalog, SharedText};
use pal_sim::{ModelPrompt, PromptMessage};
use pal_view::{Estimator, Lens, RenderOptions, Request, View, ViewScope};

/// Converts a rendered request to a model prompt.
pub(crate) fn asked(request: &Request) -> ModelPrompt<'_> {
    let mut messages: Vec<PromptMessage<'_>> = Vec::new();
    for (opens, block, _) in request.pieces() {
        if let Some(role) = opens {
            messages.push(PromptMessage { role, blocks: Vec::new() });
        }
        messages.last_mut().unwrap().blocks.push(Cow::Borrowed(block.as_str()));
    }
    let raw = |texts: &'_ [SharedText]| -> Vec<Cow<'_, str>> {
        texts.iter().map(|text| Cow::Owned(text.to_string())).collect()
    };
    ModelPrompt {
        model: "claude-opus-5-5",
        system: raw(request.system_blocks()),
        tools: raw(request.tools()),
        messages,
        max_tokens: 32_000,
        thinks: false,
        compaction: None,
    }
}

/// Calls `visit` with each request of the main thread that a session made, and the number of entries before it.
pub(crate) fn requests(entries: &[LogEntry], scope: ViewScope, mut visit: impl FnMut(&Request, usize)) {
    let card: ModelCard = ModelCatalog::built_in().find("claude-opus-4-5").card;
    let mut view =
        View::new(Lens { card: card.clone(), estimator: Estimator::shipped(card.generation), scope });
    let options = RenderOptions { max_tokens: 32_000, stream: true, spell_out_unseen: false };
    for (index, entry) in entries.iter().enumerate() {
        if let EntryBody::Request(request) = &entry.body
            && request.source.is_conversation()
        {
            visit(&view.render(options), index);
        }
        view.push(entry.clone());
    }
}
