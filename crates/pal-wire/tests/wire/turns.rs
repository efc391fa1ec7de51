//! The order of messages.

use pal_wire::RequestRules;
use serde_json::json;

use crate::{
    FINE, answered, assistant, check, check_all, conversation, counts_of, old_rules, said, text, user,
};

const PREFILL: &str = "This model does not support assistant message prefill. \
                       The conversation must end with a user message.";

#[test]
fn roles() {
    check_all(
        &RequestRules::newest(),
        &[
            ("one", conversation(&json!([user("a")])), FINE),
            ("three", conversation(&json!([user("a"), assistant("b"), user("c")])), FINE),
            ("none", conversation(&json!([])), "messages: at least one message is required"),
            (
                "assistant first",
                conversation(&json!([assistant("a"), user("b")])),
                "messages: first message must use the \"user\" role",
            ),
            (
                "two users",
                conversation(&json!([user("a"), assistant("b"), user("c"), user("d")])),
                "messages.3: roles must alternate between \"user\" and \"assistant\", but found multiple \"user\" roles in a row",
            ),
            (
                "two assistants",
                conversation(&json!([user("a"), assistant("b"), assistant("c"), user("d")])),
                "messages.2: roles must alternate between \"user\" and \"assistant\", but found multiple \"assistant\" roles in a row",
            ),
            (
                "unknown role",
                conversation(&json!([{"role": "tool", "content": "a"}])),
                "messages.0.role: Input should be 'user', 'assistant' or 'system'",
            ),
            ("no role", conversation(&json!([{"content": "a"}])), "messages.0.role: Field required"),
            ("no content", conversation(&json!([{"role": "user"}])), "messages.0.content: Field required"),
            (
                "content type",
                conversation(&json!([{"role": "user", "content": 5}])),
                "messages.0.content: Input should be a valid list",
            ),
            (
                "extra field",
                conversation(&json!([{"role": "user", "content": "a", "id": "x"}])),
                "messages.0.id: Extra inputs are not permitted",
            ),
        ],
    );
}

#[test]
fn empty_messages() {
    let empty = "all messages must have non-empty content except for the optional final assistant message";
    let blank = "messages: text content blocks must contain non-whitespace text";
    check_all(
        &RequestRules::newest(),
        &[
            (
                "string",
                conversation(&json!([user("a"), assistant(""), user("b")])),
                &format!("messages.1: {empty}"),
            ),
            ("list", said(&json!([])), &format!("messages.0: {empty}")),
            ("text", said(&json!([text("")])), "messages: text content blocks must be non-empty"),
            ("blank string", conversation(&json!([user(" \t")])), blank),
            ("blank text", said(&json!([text("\u{2003}\n")])), blank),
            ("blank answer", answered(&json!([text("\n\n")])), blank),
            ("text with white space", said(&json!([text("\n a\n")])), FINE),
        ],
    );
}

#[test]
fn the_last_message() {
    let paused = json!([
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    ]);
    let prefilled = conversation(&json!([user("a"), assistant("b")]));
    check("prefill", &prefilled, &RequestRules::newest(), PREFILL);
    check("prefill, old", &prefilled, &old_rules(), FINE);
    check("empty prefill, old", &conversation(&json!([user("a"), assistant("")])), &old_rules(), FINE);
    check(
        "prefill with a trailing blank",
        &conversation(&json!([user("a"), {"role": "assistant", "content": [text("b ")]}])),
        &old_rules(),
        "messages: final assistant content cannot end with trailing whitespace",
    );
    let pause = conversation(&json!([user("a"), {"role": "assistant", "content": paused}]));
    check("pause_turn", &pause, &RequestRules::newest(), FINE);
}

#[test]
fn counts() {
    let body = conversation(
        &json!([user("a"), assistant("b"), {"role": "user", "content": [text("c"), text("d")]}]),
    );
    let checked = counts_of(&body);
    assert_eq!((checked.messages, checked.blocks, checked.bytes), (3, 4, body.to_string().len()));
}

#[test]
fn many_messages() {
    let pair = format!("{},{}", user("a"), assistant("b"));
    let many = |n_pairs: usize| {
        let pairs = vec![pair.as_str(); n_pairs].join(",");
        format!(r#"{{"model":"m","max_tokens":1,"messages":[{pairs},{}]}}"#, user("c"))
    };
    assert!(pal_wire::check_request(many(49_999).as_bytes(), &RequestRules::newest()).is_ok());
    let error = pal_wire::check_request(many(50_000).as_bytes(), &RequestRules::newest()).unwrap_err();
    assert_eq!(error.message, "messages: List should have at most 100000 items after validation, not 100001");
}
