//! A recorded session, read, and the requests that it made.

use std::borrow::Cow;
use std::path::Path;

use pal_import::{Measure, Options};
use pal_model::{Body, Card, Cards, Entry, Text};
use pal_sim::{Ask, AskMessage};
use pal_view::{Estimator, Lens, RenderOptions, Request, Scope, View};

struct Thirds;

impl Measure for Thirds {
    fn text(&self, _model: &str, text: &str) -> f64 {
        text.len() as f64 / 3.0
    }

    fn json(&self, _model: &str, json: &str) -> f64 {
        json.len() as f64 / 3.0
    }
}

/// The entries of a session's log.
pub(crate) fn entries(file: &Path) -> Vec<Entry> {
    let source = std::fs::read(file).unwrap();
    let imported = pal_import::import(&source, &Options { measure: &Thirds, strict: false }).unwrap();
    let log = Text::from(imported.log);
    log.lines().map(|line| Entry::parse(log.slice_of(line)).unwrap()).collect()
}

/// The request that a session's view renders, as a model is asked.
pub(crate) fn asked(request: &Request) -> Ask<'_> {
    let mut messages: Vec<AskMessage<'_>> = Vec::new();
    for (opens, block, _) in request.pieces() {
        if let Some(role) = opens {
            messages.push(AskMessage { role, blocks: Vec::new() });
        }
        messages.last_mut().unwrap().blocks.push(Cow::Borrowed(block.as_str()));
    }
    let raw = |texts: &'_ [Text]| -> Vec<Cow<'_, str>> {
        texts.iter().map(|text| Cow::Owned(text.to_string())).collect()
    };
    Ask {
        model: "claude-opus-5-5",
        system: raw(request.system()),
        tools: raw(request.tools()),
        messages,
        max_tokens: 32_000,
        thinks: false,
        compaction: None,
    }
}

/// Calls `visit` with each request of the main thread that a session made, and the number of entries before it.
pub(crate) fn requests(entries: &[Entry], scope: Scope, mut visit: impl FnMut(&Request, usize)) {
    let card: Card = Cards::shipped().find("claude-opus-4-5").card;
    let mut view =
        View::new(Lens { card: card.clone(), estimator: Estimator::shipped(card.generation), scope });
    let options = RenderOptions { max_tokens: 32_000, stream: true, spell_out_unseen: false };
    for (index, entry) in entries.iter().enumerate() {
        if let Body::Request(request) = &entry.body
            && request.source.is_conversation()
        {
            visit(&view.render(options), index);
        }
        view.push(entry.clone());
    }
}
