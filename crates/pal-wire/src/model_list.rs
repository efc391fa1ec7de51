//! Answers of the Models endpoints: what providers say about their models.
//!
//! Anthropic reports limits and capabilities; OpenAI only names. Compatible servers add the window under names of their
//! own. Prices and the minimum cacheable prefix are reported by none.

use std::fmt::Write;

use serde_json::Value;

use crate::Dialect;
use crate::messages::messages_version;

/// Models per page of a list.
const PAGE: usize = 1_000;

/// A model as its provider describes it; none for what it does not report.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ModelListing {
    /// Name of the model.
    pub id: String,
    /// Context window in tokens.
    pub window: Option<u64>,
    /// Maximum output tokens.
    pub max_output: Option<u64>,
    /// Accepted values of `thinking.type`.
    pub thinking: Option<Vec<String>>,
    /// Context-management edits that the provider runs.
    pub context_management: Option<Vec<String>>,
    /// The provider summarizes on demand.
    pub provider_compaction: Option<bool>,
    /// Accepts images.
    pub images: Option<bool>,
    /// Accepts documents.
    pub documents: Option<bool>,
}

/// A page of a model list.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ModelListPage {
    /// The models.
    pub models: Vec<ModelListing>,
    /// Path of the next page; none if this is the last.
    pub next: Option<String>,
}

/// Path of the first page of the model list.
pub fn model_list_path(dialect: Dialect) -> String {
    match dialect {
        Dialect::Messages => format!("/v1/models?limit={PAGE}"),
        Dialect::Responses | Dialect::Chat => String::from("/v1/models"),
    }
}

/// Headers of a request for the model list, besides the key.
pub fn model_list_headers(dialect: Dialect) -> Vec<(&'static str, String)> {
    match dialect {
        Dialect::Messages => vec![messages_version()],
        Dialect::Responses | Dialect::Chat => Vec::new(),
    }
}

/// Reads a page of a model list; none if it is no such list. Models without a usable name are left out.
pub fn parse_model_list(json: &str) -> Option<ModelListPage> {
    let page: Value = serde_json::from_str(json).ok()?;
    let models = page.get("data")?.as_array()?.iter().filter_map(listing).collect();
    let has_more = page.get("has_more").and_then(Value::as_bool).unwrap_or(false);
    let last = page.get("last_id").and_then(Value::as_str).filter(|id| has_more && is_plain(id));
    Some(ModelListPage { models, next: last.map(|id| format!("/v1/models?limit={PAGE}&after_id={id}")) })
}

fn listing(model: &Value) -> Option<ModelListing> {
    let id = model.get("id")?.as_str().filter(|id| is_plain(id))?;
    let number = |paths: &[&str]| {
        let found = paths.iter().find_map(|path| model.pointer(path).and_then(Value::as_u64));
        found.filter(|count| *count > 0)
    };
    let is_supported =
        |path: &str| model.pointer(&format!("/capabilities/{path}/supported")).and_then(Value::as_bool);
    let supported_among = |path: &str| {
        let group = model.pointer(&format!("/capabilities/{path}"))?.as_object()?;
        let names = group.iter().filter(|(_, leaf)| leaf.get("supported") == Some(&Value::Bool(true)));
        Some(names.map(|(name, _)| name.clone()).filter(|name| is_plain(name)).collect())
    };
    Some(ModelListing {
        id: id.to_owned(),
        // vLLM, OpenRouter, Groq, llama.cpp; the window that a model was trained with may be larger than the server's.
        window: number(&[
            "/max_input_tokens",
            "/max_model_len",
            "/context_length",
            "/context_window",
            "/meta/n_ctx",
        ]),
        max_output: number(&["/max_tokens", "/max_completion_tokens"]),
        thinking: supported_among("thinking/types"),
        context_management: supported_among("context_management"),
        provider_compaction: is_supported("compaction/summarize"),
        images: is_supported("image_input"),
        documents: is_supported("pdf_input"),
    })
}

/// Names that need no escaping in a path or a table.
fn is_plain(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:/@+".contains(&byte);
    !name.is_empty() && name.len() <= 200 && name.bytes().all(is_plain)
}

/// Writes the models as a table of cards, in the format of `models.toml`. `like` names the card whose other fields hold,
/// such as prices, if one is known.
pub fn model_list_table(models: &[ModelListing], like: impl Fn(&str) -> Option<String>) -> String {
    let mut table = String::new();
    for model in models {
        let texts = |names: &Vec<String>| format!("{names:?}");
        let fields = [
            ("window", model.window.map(|tokens| tokens.to_string())),
            ("max_output", model.max_output.map(|tokens| tokens.to_string())),
            ("thinking", model.thinking.as_ref().map(texts)),
            ("context_management", model.context_management.as_ref().map(texts)),
            ("provider_compaction", model.provider_compaction.map(|can| can.to_string())),
            ("images", model.images.map(|can| can.to_string())),
            ("documents", model.documents.map(|can| can.to_string())),
        ];
        // A name alone says nothing.
        if fields.iter().all(|(_, value)| value.is_none()) {
            continue;
        }
        let like = ("like", like(&model.id).map(|name| format!("{name:?}")));
        let _ = writeln!(table, "\n[models.{:?}]", model.id);
        for (name, value) in fields.into_iter().chain([like]) {
            if let Some(value) = value {
                let _ = writeln!(table, "{name} = {value}");
            }
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use pal_model::ModelCatalog;

    use super::*;

    #[test]
    fn limits_and_capabilities_become_cards() {
        let json = r#"{"data":[
            {"id":"claude-next-7","max_input_tokens":750000,"max_tokens":90000,"capabilities":{
                "thinking":{"supported":true,"types":{"adaptive":{"supported":true},"disabled":{"supported":false}}},
                "context_management":{"supported":true,"clear_tool_uses_20250919":{"supported":true}},
                "compaction":{"summarize":{"supported":true}},"image_input":{"supported":true},"pdf_input":{"supported":false}}},
            {"id":"claude-opus-5-5-20261001","max_input_tokens":900000},
            {"id":"bad \"name\"","max_input_tokens":1},{"id":"only-a-name"}],"has_more":true,"last_id":"only-a-name"}"#;
        let page = parse_model_list(json).unwrap();
        assert_eq!(page.next.as_deref(), Some("/v1/models?limit=1000&after_id=only-a-name"));
        assert_eq!(page.models.len(), 3);
        let like = |id: &str| id.starts_with("claude-opus-5-5-").then(|| String::from("claude-opus-5-5"));
        let table = model_list_table(&page.models, like);
        let cards = ModelCatalog::built_in().with_overrides(&table).unwrap();
        let next = cards.find("claude-next-7").card;
        assert_eq!((next.window, next.max_output), (750_000, 90_000));
        assert!(next.thinking.adaptive && !next.thinking.disabled && next.can.provider_compaction);
        assert_eq!(next.can.context_management, ["clear_tool_uses_20250919"]);
        assert!(next.can.images && !next.can.documents);
        let dated = cards.find("claude-opus-5-5-20261001").card;
        assert_eq!((dated.window, dated.prices.is_some()), (900_000, true));
        assert!(!table.contains("only-a-name"), "{table}");
    }

    #[test]
    fn compatible_servers_report_windows_under_their_own_names() {
        let window = |fields: &str| {
            let json = format!(r#"{{"object":"list","data":[{{"id":"m",{fields}}}]}}"#);
            parse_model_list(&json).unwrap().models[0].window
        };
        assert_eq!(window(r#""max_model_len":32768"#), Some(32_768));
        assert_eq!(window(r#""context_length":131072"#), Some(131_072));
        assert_eq!(window(r#""meta":{"n_ctx":8192,"n_ctx_train":131072}"#), Some(8_192));
        assert_eq!(window(r#""meta":{"n_ctx_train":131072}"#), None);
        assert_eq!(parse_model_list(r#"{"error":"no"}"#), None);
    }
}
