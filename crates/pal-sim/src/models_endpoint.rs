//! Models endpoint: model cards in the provider's format.

use pal_model::{ModelCard, ModelCatalog, TokenGeneration};
use pal_wire::{ApiError, ApiErrorKind};
use serde_json::{Value, json};

/// Card of a Claude model; fails if the model is unknown.
pub(crate) fn find(cards: &ModelCatalog, model: &str) -> Result<ModelCard, ApiError> {
    let found = cards.find(model);
    if found.notice.is_none() && found.card.generation != TokenGeneration::O200k {
        return Ok(found.card);
    }
    Err(ApiError::new(ApiErrorKind::NotFound, format!("model: {model}")))
}

/// Page of models, newest name first.
pub(crate) fn list(cards: &ModelCatalog, query: &str) -> Value {
    let value = |name: &str| {
        let mut parts = query.split('&').filter_map(|part| part.split_once('='));
        parts.find(|(key, _)| *key == name).map(|(_, value)| value)
    };
    let mut names: Vec<&str> = cards.names().filter(|name| find(cards, name).is_ok()).collect();
    names.reverse();
    let first =
        value("after_id").and_then(|id| names.iter().position(|name| *name == id)).map_or(0, |at| at + 1);
    let end =
        value("before_id").and_then(|id| names.iter().position(|name| *name == id)).unwrap_or(names.len());
    let limit = value("limit").and_then(|limit| limit.parse().ok()).unwrap_or(20).clamp(1, 1_000);
    let page: Vec<&str> = names.get(first..end).unwrap_or_default().iter().copied().take(limit).collect();
    let data: Vec<Value> =
        page.iter().filter_map(|name| find(cards, name).ok()).map(|card| info(&card)).collect();
    json!({
        "data": data,
        "first_id": page.first(),
        "last_id": page.last(),
        "has_more": first + page.len() < end,
    })
}

/// Description of one model.
pub(crate) fn info(card: &ModelCard) -> Value {
    let is = |supported: bool| json!({"supported": supported});
    let edits = &card.can.context_management;
    let edit = |name: &str| is(edits.iter().any(|edit| edit == name));
    let thinking = card.thinking;
    let is_newest = card.generation == TokenGeneration::Claude47;
    let takes_effort = thinking.adaptive;
    json!({
        "type": "model",
        "id": card.model,
        "display_name": display_name(&card.model),
        // Cards have no release date; the provider writes the epoch for unknown dates.
        "created_at": "1970-01-01T00:00:00Z",
        "deprecated_at": null,
        "retires_at": null,
        "lifecycle": "active",
        "line": line(&card.model),
        "max_input_tokens": card.window,
        "max_tokens": card.max_output,
        "capabilities": {
            "batch": is(false),
            "citations": is(card.can.documents),
            "code_execution": is(false),
            "compaction": {"supported": card.can.provider_compaction, "summarize": is(card.can.provider_compaction)},
            "context_management": {
                "supported": !edits.is_empty(),
                "clear_thinking_20251015": edit("clear_thinking_20251015"),
                "clear_tool_uses_20250919": edit("clear_tool_uses_20250919"),
                "compact_20260112": edit("compact_20260112"),
            },
            "effort": {
                "supported": takes_effort,
                "low": is(takes_effort),
                "medium": is(takes_effort),
                "high": is(takes_effort),
                "xhigh": is(takes_effort && is_newest),
                "max": is(takes_effort),
            },
            "image_input": is(card.can.images),
            "pdf_input": is(card.can.documents),
            "server_tools": {"supported": card.can.web_search},
            "structured_outputs": is(true),
            "thinking": {
                "supported": thinking.is_supported(),
                "types": {
                    "adaptive": is(thinking.adaptive),
                    "between_tools": is(thinking.between_tools),
                    "disabled": is(thinking.disabled),
                    "enabled": is(thinking.enabled),
                },
            },
        },
        "allowed_fallback_models": [],
    })
}

/// Display name: `claude-opus-5-5` becomes "Claude Opus 5.5".
fn display_name(model: &str) -> String {
    let mut name = String::new();
    let mut was_number = false;
    for part in model.split('-') {
        let is_number = part.bytes().all(|byte| byte.is_ascii_digit());
        if !name.is_empty() {
            name.push(if is_number && was_number { '.' } else { ' ' });
        }
        let mut letters = part.chars();
        name.extend(letters.next().into_iter().flat_map(char::to_uppercase));
        name.extend(letters);
        was_number = is_number;
    }
    name
}

fn line(model: &str) -> Option<&'static str> {
    ["haiku", "sonnet", "opus", "fable", "mythos"].into_iter().find(|line| model.contains(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_paged_and_exclude_openai() {
        let cards = ModelCatalog::built_in();
        let all = list(&cards, "limit=1000");
        let ids: Vec<&str> =
            all["data"].as_array().unwrap().iter().filter_map(|model| model["id"].as_str()).collect();
        assert!(ids.contains(&"claude-opus-5-5") && !ids.iter().any(|id| id.starts_with("gpt")), "{ids:?}");
        assert_eq!(all["has_more"], false);
        let mut paged = Vec::new();
        let mut query = "limit=4".to_owned();
        loop {
            let page = list(&cards, &query);
            paged.extend(
                page["data"].as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap().to_owned()),
            );
            if page["has_more"] == false {
                break;
            }
            query = format!("limit=4&after_id={}", page["last_id"].as_str().unwrap());
        }
        assert_eq!(paged, ids);
        assert_eq!(display_name("claude-opus-5-5"), "Claude Opus 5.5");
    }

    #[test]
    fn capabilities_follow_the_card() {
        let cards = ModelCatalog::built_in();
        let opus = info(&cards.find("claude-opus-5-5").card);
        assert_eq!(opus["max_input_tokens"], 1_000_000);
        assert_eq!(opus["capabilities"]["thinking"]["types"]["disabled"]["supported"], false);
        assert_eq!(opus["capabilities"]["compaction"]["summarize"]["supported"], true);
        let old = info(&cards.find("claude-opus-4-5").card);
        assert_eq!(old["capabilities"]["effort"]["supported"], false);
        assert_eq!(old["capabilities"]["compaction"]["summarize"]["supported"], false);
        assert!(find(&cards, "gpt-5").is_err() && find(&cards, "nobody").is_err());
    }
}
