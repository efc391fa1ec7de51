//! Calls of the Messages dialect: paths and headers. The view renders the body.

use pal_model::{ChunkedText, ModelCard};

use crate::{ApiCall, Dialect};

/// Value of the `anthropic-version` header.
const VERSION: &str = "2026-10-21";

/// Predicate on a model card.
type CardPredicate = fn(&ModelCard) -> bool;

/// Beta headers and the cards that need them. The headers are part of the provider's cache key, so they depend on the
/// card alone and are the same in every request.
const BETAS: [(&str, CardPredicate); 6] = [
    ("context-management-2025-06-27", |card| !card.can.context_management.is_empty()),
    ("compact-2026-01-12", |card| card.can.context_management.iter().any(|edit| edit == "compact_20260112")),
    ("compact-2026-09-04", |card| card.can.provider_compaction),
    ("thinking-binding-controls-2026-08-01", |card| card.can.bound_thinking),
    ("mid-conversation-tool-changes-2026-07-01", |card| card.can.tool_changes),
    // Private to one vendor's client: only for user-defined cards.
    ("prompt-caching-scope-2026-01-05", |card| card.can.cache_scopes),
];

/// Beta header of requests with a task budget.
pub const TASK_BUDGET_BETA: &str = "task-budgets-2026-03-13";

/// Creates the call for a response with given beta headers; a session keeps those of its first request.
pub fn messages_call<B: AsRef<str>>(betas: &[B], body: ChunkedText, stream: bool) -> ApiCall {
    let headers = headers_with(betas);
    ApiCall { dialect: Dialect::Messages, path: "/v1/messages", headers, body, stream }
}

/// Creates the call that counts the tokens of a request. The body is that of a request without `max_tokens` and `stream`.
pub fn count_tokens_call(card: &ModelCard, body: ChunkedText) -> ApiCall {
    let headers = messages_headers(card);
    ApiCall { dialect: Dialect::Messages, path: "/v1/messages/count_tokens", headers, body, stream: false }
}

/// Returns the headers of all calls of the dialect, in a fixed order.
fn messages_headers(card: &ModelCard) -> Vec<(&'static str, String)> {
    headers_with(&beta_headers(card))
}

/// Returns the beta headers of a card, in a fixed order.
pub fn beta_headers(card: &ModelCard) -> Vec<&'static str> {
    BETAS.iter().filter(|(_, wants)| wants(card)).map(|(beta, _)| *beta).collect()
}

/// Returns the header with the version of the API.
pub(crate) fn messages_version() -> (&'static str, String) {
    ("anthropic-version", VERSION.to_owned())
}

fn headers_with<B: AsRef<str>>(betas: &[B]) -> Vec<(&'static str, String)> {
    let mut headers = vec![messages_version()];
    if !betas.is_empty() {
        let betas: Vec<&str> = betas.iter().map(AsRef::as_ref).collect();
        headers.push(("anthropic-beta", betas.join(",")));
    }
    headers
}

#[cfg(test)]
mod tests {
    use std::slice;

    use pal_model::ModelCatalog;

    use super::*;
    use crate::Beta;

    #[test]
    fn beta_headers_depend_on_the_card_alone() {
        let cards = ModelCatalog::built_in()
            .with_overrides("[models.plain]\nlike = \"claude-opus-4-5\"\ntool_changes = false\ncontext_management = []\n[models.odd]\nlike = \"plain\"\ncache_scopes = true\n")
            .unwrap();
        let headers = |model: &str| messages_headers(&cards.find(model).card);
        let version = ("anthropic-version", String::from("2026-10-21"));
        let beta = |betas: &str| ("anthropic-beta", betas.to_owned());
        assert_eq!(headers("plain"), slice::from_ref(&version));
        assert_eq!(headers("odd"), [version.clone(), beta("prompt-caching-scope-2026-01-05")]);
        assert_eq!(headers("unknown-model"), slice::from_ref(&version));
        let newest = "context-management-2025-06-27,compact-2026-01-12,compact-2026-09-04,thinking-binding-controls-2026-08-01,mid-conversation-tool-changes-2026-07-01";
        assert_eq!(headers("claude-opus-5-5"), [version.clone(), beta(newest)]);
        let older =
            "context-management-2025-06-27,compact-2026-01-12,mid-conversation-tool-changes-2026-07-01";
        assert_eq!(headers("claude-opus-4-5"), [version, beta(older)]);
        // The request check knows all headers that are sent.
        assert!(BETAS.iter().all(|(beta, _)| Beta::from_header(beta).is_some()));
    }

    #[test]
    fn calls_of_both_endpoints_have_the_same_headers() {
        let card = ModelCatalog::built_in().find("claude-opus-5-5").card;
        let body = ChunkedText::from(String::from("{}"));
        let asked = messages_call(&beta_headers(&card), body.clone(), true);
        let counted = count_tokens_call(&card, body);
        assert_eq!(
            (asked.path, asked.stream, asked.body.to_joined_string().as_str()),
            ("/v1/messages", true, "{}")
        );
        assert_eq!((counted.path, counted.stream), ("/v1/messages/count_tokens", false));
        assert_eq!(asked.headers, counted.headers);
    }
}
