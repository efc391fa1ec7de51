//! Calls of the Messages dialect: paths and headers. The body is made elsewhere.

use pal_model::{Card, Parts};

use crate::{Call, Dialect};

/// The version of the API that we speak.
const VERSION: &str = "2026-10-21";

/// Whether a card wants something.
type Wants = fn(&Card) -> bool;

/// The surfaces that exist only behind a header, and the cards that want them. The set is part of the fingerprint by
/// which a provider recognises a conversation: it follows from the card alone and is the same in every request.
const BETAS: [(&str, Wants); 6] = [
    ("context-management-2025-06-27", |card| !card.can.context_management.is_empty()),
    ("compact-2026-01-12", |card| card.can.context_management.iter().any(|edit| edit == "compact_20260112")),
    ("compact-2026-09-04", |card| card.can.provider_compaction),
    ("thinking-binding-controls-2026-08-01", |card| card.can.bound_thinking),
    ("mid-conversation-tool-changes-2026-07-01", |card| card.can.tool_changes),
    // Private to one vendor's client: only for cards that a user wrote.
    ("prompt-caching-scope-2026-01-05", |card| card.can.cache_scopes),
];

/// The call that has a request answered, with the beta headers that the card asks for.
pub fn messages_call(card: &Card, body: Parts, stream: bool) -> Call {
    messages_call_with(&betas(card), body, stream)
}

/// The call that has a request answered, with these beta headers: a session sends the same ones from its first request
/// on.
pub fn messages_call_with<B: AsRef<str>>(betas: &[B], body: Parts, stream: bool) -> Call {
    let headers = headers_with(betas);
    Call { dialect: Dialect::Messages, path: "/v1/messages", headers, body, stream }
}

/// The call that has the tokens of a request counted. The body is that of a request without `max_tokens` and `stream`.
pub fn count_tokens_call(card: &Card, body: Parts) -> Call {
    let headers = messages_headers(card);
    Call { dialect: Dialect::Messages, path: "/v1/messages/count_tokens", headers, body, stream: false }
}

/// The headers of every call of the dialect, in a fixed order; also those of `GET /v1/models/{id}`.
pub fn messages_headers(card: &Card) -> Vec<(&'static str, String)> {
    headers_with(&betas(card))
}

/// The beta headers that a card asks for, in a fixed order.
pub fn betas(card: &Card) -> Vec<&'static str> {
    BETAS.iter().filter(|(_, wants)| wants(card)).map(|(beta, _)| *beta).collect()
}

fn headers_with<B: AsRef<str>>(betas: &[B]) -> Vec<(&'static str, String)> {
    let mut headers = vec![("anthropic-version", VERSION.to_owned())];
    if !betas.is_empty() {
        let betas: Vec<&str> = betas.iter().map(AsRef::as_ref).collect();
        headers.push(("anthropic-beta", betas.join(",")));
    }
    headers
}

#[cfg(test)]
mod tests {
    use std::slice;

    use pal_model::Cards;

    use super::*;
    use crate::Beta;

    #[test]
    fn betas_follow_from_the_card_alone() {
        let cards = Cards::shipped()
            .overridden("[models.plain]\ntool_changes = false\ncontext_management = []\n[models.odd]\nlike = \"plain\"\ncache_scopes = true\n")
            .unwrap();
        let headers = |model: &str| messages_headers(&cards.find(model).card);
        let version = ("anthropic-version", String::from("2026-10-21"));
        let beta = |betas: &str| ("anthropic-beta", betas.to_owned());
        assert_eq!(headers("plain"), slice::from_ref(&version));
        assert_eq!(headers("odd"), [version.clone(), beta("prompt-caching-scope-2026-01-05")]);
        assert_eq!(headers("nobody-knows-it"), slice::from_ref(&version));
        let newest = "context-management-2025-06-27,compact-2026-01-12,compact-2026-09-04,thinking-binding-controls-2026-08-01,mid-conversation-tool-changes-2026-07-01";
        assert_eq!(headers("claude-opus-5-5"), [version.clone(), beta(newest)]);
        let older =
            "context-management-2025-06-27,compact-2026-01-12,mid-conversation-tool-changes-2026-07-01";
        assert_eq!(headers("claude-opus-4-5"), [version, beta(older)]);
        // What we ask for is what the judge knows.
        assert!(BETAS.iter().all(|(beta, _)| Beta::from_header(beta).is_some()));
    }

    #[test]
    fn a_call_carries_its_body_and_the_same_headers_everywhere() {
        let card = Cards::shipped().find("claude-opus-5-5").card;
        let body = Parts::from(String::from("{}"));
        let asked = messages_call(&card, body.clone(), true);
        let counted = count_tokens_call(&card, body);
        assert_eq!((asked.path, asked.stream, asked.body.joined().as_str()), ("/v1/messages", true, "{}"));
        assert_eq!((counted.path, counted.stream), ("/v1/messages/count_tokens", false));
        assert_eq!(asked.headers, counted.headers);
    }
}
