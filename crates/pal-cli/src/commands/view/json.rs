//! The page for programs.

use std::io::Write;

use pal_view::Showing;
use serde_json::{Value, json};

use super::Page;
use super::margin::words;
use super::page::{beginning, who};
use crate::colour::clipped;
use crate::failure::Failure;

/// Columns of a text that is not asked for as a whole.
const BEGINNING: usize = 200;

pub(super) fn print(page: &Page<'_>, out: &mut dyn Write) -> Result<(), Failure> {
    let size = page.view.size();
    let limits = &page.engine.limits;
    let estimator = page.view.estimator();
    let messages: Vec<Value> = page
        .view
        .seen()
        .enumerate()
        .map(|(at, (shown, blocks))| {
            let showing = match shown.showing {
                Showing::Itself => json!("itself"),
                Showing::Snipped => json!("snipped"),
                Showing::Folded(fold) => json!({"folded": fold}),
            };
            let decisions = match shown.showing {
                Showing::Itself => page.margin.beside(&shown),
                Showing::Snipped => page.margin.snip(shown.entry.id).map(words).into_iter().collect(),
                Showing::Folded(fold) => page.margin.fold(fold).map(words).into_iter().collect(),
            };
            let mut message = json!({
                "number": at + 1, "id": shown.entry.id, "who": who(at + 1, &shown), "tokens": estimator.total(shown.tokens),
                "sent": shown.is_sent, "shows": showing, "decisions": decisions,
            });
            if page.is_full {
                let blocks: Vec<Value> =
                    blocks.iter().filter_map(|block| serde_json::from_str(block.raw()).ok()).collect();
                message["blocks"] = json!(blocks);
            } else {
                message["begins"] = json!(clipped(&beginning(&blocks), BEGINNING));
            }
            message
        })
        .collect();
    let pins: Vec<Value> =
        page.pins.iter().map(|(text, tokens)| json!({"text": text, "tokens": tokens})).collect();
    let layers: Vec<Value> = page
        .layers
        .iter()
        .map(|layer| json!({"layer": layer.name, "would": layer.would, "reason": layer.reason}))
        .collect();
    let hidden = page.hidden.as_ref().map(
        |hidden| json!({"messages": hidden.messages, "by_people": hidden.by_people, "bytes": hidden.bytes}),
    );
    let report = json!({
        "model": page.view.lens().card.model, "tokens": size.tokens, "window": limits.window,
        "percent_left": limits.fill(size.tokens).percent_left, "hidden": hidden, "messages": messages,
        "decisions": page.margin.others.iter().map(|decision| words(decision)).collect::<Vec<_>>(),
        "pins": pins, "pin_budget": page.engine.pin_budget(), "layers": layers,
        "problems": page.problems,
    });
    writeln!(out, "{report}")?;
    Ok(())
}
