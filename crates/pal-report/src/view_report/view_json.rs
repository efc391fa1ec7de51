//! The report as one JSON object.

use pal_view::Visibility;
use serde_json::{Value, json};

use super::ViewReport;
use super::decision_margin::describe_decision;
use super::view_text::{message_author, message_start};
use crate::text_layout::clip_line;

/// Columns of a message that is not shown whole.
const BEGINNING: usize = 200;

pub(super) fn view_object(page: &ViewReport<'_>) -> Value {
    let size = page.view.size();
    let limits = &page.engine.limits;
    let estimator = page.view.estimator();
    let messages: Vec<Value> = page
        .view
        .visible_blocks()
        .enumerate()
        .map(|(at, (shown, blocks))| {
            let showing = match shown.visibility {
                Visibility::Visible => json!("itself"),
                Visibility::Snipped => json!("snipped"),
                Visibility::Folded(fold) => json!({"folded": fold}),
            };
            let decisions = match shown.visibility {
                Visibility::Visible => page.margin.decisions_for(&shown),
                Visibility::Snipped => page.margin.snip(shown.entry.id).map(describe_decision).into_iter().collect(),
                Visibility::Folded(fold) => page.margin.fold(fold).map(describe_decision).into_iter().collect(),
            };
            let mut message = json!({
                "number": at + 1, "id": shown.entry.id, "who": message_author(at + 1, &shown), "tokens": estimator.total(shown.tokens),
                "sent": shown.is_sent, "shows": showing, "decisions": decisions,
            });
            if page.is_full {
                let blocks: Vec<Value> =
                    blocks.iter().filter_map(|block| serde_json::from_str(block.raw()).ok()).collect();
                message["blocks"] = json!(blocks);
            } else {
                message["begins"] = json!(clip_line(&message_start(&blocks), BEGINNING));
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
    json!({
        "model": page.view.lens().card.model, "tokens": size.tokens, "window": limits.window,
        "percent_left": limits.fill(size.tokens).percent_left, "hidden": hidden, "messages": messages,
        "decisions": page.margin.others.iter().map(|decision| describe_decision(decision)).collect::<Vec<_>>(),
        "pins": pins, "pin_budget": page.engine.pin_budget(), "layers": layers,
        "problems": page.problems,
    })
}
