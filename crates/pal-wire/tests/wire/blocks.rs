//! Content blocks: fields, and roles of messages that may contain them.

use pal_wire::{ApiVersion, Beta, BetaSet, RequestRules};
use serde_json::{Value, json};

use crate::{FINE, answered, check, check_all, conversation, said, text, tool_result, tool_use, user};

const EXTRA: &str = "Extra inputs are not permitted";

fn image(source: &Value) -> Value {
    json!({"type": "image", "source": source})
}

fn document(source: &Value) -> Value {
    json!({"type": "document", "source": source, "title": null, "context": "c", "citations": {"enabled": true}})
}

fn png(data: &str) -> Value {
    json!({"type": "base64", "media_type": "image/png", "data": data})
}

#[test]
fn text_blocks() {
    check_all(
        &RequestRules::newest(),
        &[
            ("fine", said(&json!([text("a"), text("b")])), FINE),
            ("no type", said(&json!([{"text": "a"}])), "messages.0.content.0.type: Field required"),
            (
                "type is no string",
                said(&json!([{"type": 1}])),
                "messages.0.content.0.type: Input should be a valid string",
            ),
            (
                "block is no object",
                said(&json!(["a"])),
                "messages.0.content.0: Input should be a valid dictionary",
            ),
            ("no text", said(&json!([{"type": "text"}])), "messages.0.content.0.text.text: Field required"),
            (
                "text type",
                said(&json!([{"type": "text", "text": null}])),
                "messages.0.content.0.text.text: Input should be a valid string",
            ),
            (
                "extra",
                said(&json!([{"type": "text", "text": "a", "id": 1}])),
                &format!("messages.0.content.0.text.id: {EXTRA}"),
            ),
            (
                "unknown type",
                said(&json!([text("a"), {"type": "audio"}])),
                "messages.0.content.1: Input tag 'audio' found using 'type' does not match any of the expected tags: \
             'text', 'image', 'document', 'search_result', 'thinking', 'redacted_thinking', 'tool_use', \
             'tool_result', 'server_tool_use', 'web_search_tool_result', 'web_fetch_tool_result', \
             'code_execution_tool_result', 'bash_code_execution_tool_result', \
             'text_editor_code_execution_tool_result', 'tool_search_tool_result', 'container_upload', \
             'advisor_tool_result', 'mcp_tool_use', 'mcp_tool_result', 'mcp_tool_listing', 'compaction', \
             'fallback', 'tool_addition', 'tool_removal'",
            ),
        ],
    );
}

#[test]
fn citations() {
    let cited = json!({"type": "text", "text": "a", "citations": [{"type": "char_location"}]});
    let uncited = json!({"type": "text", "text": "a", "citations": null});
    let found =
        |text: &Value| json!({"type": "search_result", "source": "s", "title": "t", "content": [text]});
    let old = RequestRules { version: ApiVersion::V2023_06_01, ..RequestRules::newest() };
    let complaint = |path: &str| format!("{path}.citations: citations are not permitted in user messages");
    check_all(
        &RequestRules::newest(),
        &[
            ("answer", answered(&json!([cited])), FINE),
            ("null", said(&json!([uncited])), FINE),
            ("user", said(&json!([cited])), &complaint("messages.0.content.0.text")),
            ("search result", said(&json!([found(&uncited)])), FINE),
            (
                "cited search result",
                said(&json!([found(&cited)])),
                &complaint("messages.0.content.0.search_result.content.0.text"),
            ),
        ],
    );
    check("user, old version", &said(&json!([cited])), &old, FINE);
    check("search result, old version", &said(&json!([found(&cited)])), &old, FINE);
}

#[test]
fn images() {
    let at = "messages.0.content.0.image";
    let marked =
        json!({"type": "image", "source": png("aGk="), "transformations": {"oversized_image": "downsize"}});
    check_all(
        &RequestRules::newest(),
        &[
            ("base64", said(&json!([image(&png("aGk="))])), FINE),
            ("escaped slash", said(&json!([image(&png("/+8="))])), FINE),
            ("url", said(&json!([image(&json!({"type": "url", "url": "https://a/b.png"}))])), FINE),
            ("file", said(&json!([image(&json!({"type": "file", "file_id": "file_1"}))])), FINE),
            ("transformed", said(&json!([marked])), FINE),
            ("no source", said(&json!([{"type": "image"}])), &format!("{at}.source: Field required")),
            (
                "media type",
                said(&json!([image(&json!({"type": "base64", "media_type": "image/bmp", "data": "aGk="}))])),
                &format!(
                    "{at}.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'"
                ),
            ),
            (
                "length",
                said(&json!([image(&png("aGk"))])),
                &format!("{at}.source.base64.data: Invalid base64 data"),
            ),
            (
                "alphabet",
                said(&json!([image(&png("aG-="))])),
                &format!("{at}.source.base64.data: Invalid base64 data"),
            ),
            (
                "nothing",
                said(&json!([image(&png(""))])),
                &format!("{at}.source.base64.data: Invalid base64 data"),
            ),
            (
                "unknown source",
                said(&json!([image(&json!({"type": "disk"}))])),
                &format!(
                    "{at}.source: Input tag 'disk' found using 'type' does not match any of the expected tags: \
                 'base64', 'url', 'file'"
                ),
            ),
            (
                "in an answer",
                answered(&json!([image(&png("aGk=")), text("a")])),
                "messages.1.content.0: `image` blocks can only be in `user` messages",
            ),
        ],
    );
}

#[test]
fn documents() {
    let pdf = json!({"type": "base64", "media_type": "application/pdf", "data": "aGk="});
    let inner = |words: &str| json!({"type": "content", "content": [text(words), image(&png("aGk="))]});
    let in_answer = answered(&json!([document(&pdf), text("a")]));
    check_all(
        &RequestRules::newest(),
        &[
            ("pdf", said(&json!([document(&pdf)])), FINE),
            (
                "text",
                said(&json!([document(&json!({"type": "text", "media_type": "text/plain", "data": "a"}))])),
                FINE,
            ),
            ("content", said(&json!([document(&inner("a"))])), FINE),
            ("content string", said(&json!([document(&json!({"type": "content", "content": "a"}))])), FINE),
            ("url", said(&json!([document(&json!({"type": "url", "url": "https://a"}))])), FINE),
            (
                "empty inside",
                said(&json!([document(&inner(""))])),
                "messages: text content blocks must be non-empty",
            ),
            (
                "wrong media type",
                said(&json!([document(&png("aGk="))])),
                "messages.0.content.0.document.source.base64.media_type: Input should be 'application/pdf'",
            ),
            (
                "in an answer",
                in_answer.clone(),
                "messages.1.content.0: `document` blocks can only be in `user` messages",
            ),
        ],
    );
    let old = RequestRules { version: ApiVersion::V2023_06_01, ..RequestRules::newest() };
    check("in an answer, old version", &in_answer, &old, FINE);
}

#[test]
fn tool_use_fields() {
    let called = |call: &Value, id: &str| {
        let result = json!({"role": "user", "content": [tool_result(id)]});
        conversation(&json!([user("a"), {"role": "assistant", "content": [call]}, result]))
    };
    let with = |field: &str, value: Value| {
        let mut call = tool_use("toolu_1");
        call[field] = value;
        call
    };
    let at = "messages.1.content.0.tool_use";
    check_all(
        &RequestRules::newest(),
        &[
            ("fine", called(&tool_use("toolu_1"), "toolu_1"), FINE),
            ("caller", called(&with("caller", json!({"type": "direct"})), "toolu_1"), FINE),
            ("toolset", called(&with("toolset_name", json!("browser")), "toolu_1"), FINE),
            (
                "input",
                called(&with("input", json!("{}")), "toolu_1"),
                &format!("{at}.input: Input should be a valid dictionary"),
            ),
            (
                "id",
                called(&with("id", json!("a.b")), "a"),
                &format!("{at}.id: String should match pattern '^[a-zA-Z0-9_-]+$'"),
            ),
            (
                "name",
                called(&with("name", json!("")), "toolu_1"),
                &format!("{at}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"),
            ),
            (
                "no name",
                called(&json!({"type": "tool_use", "id": "a", "input": {}}), "a"),
                &format!("{at}.name: Field required"),
            ),
            ("extra", called(&with("index", json!(0)), "toolu_1"), &format!("{at}.index: {EXTRA}")),
            (
                "result id",
                called(&tool_use("toolu_1"), "toolu 1"),
                "messages.2.content.0.tool_result.tool_use_id: String should match pattern '^[a-zA-Z0-9_-]+$'",
            ),
            (
                "by the user",
                said(&json!([tool_use("toolu_1")])),
                "messages.0.content.0: `tool_use` blocks can only be in `assistant` messages",
            ),
        ],
    );
}

#[test]
fn tool_result_contents() {
    let returned = |fields: Value| {
        let mut result = json!({"type": "tool_result", "tool_use_id": "toolu_1"});
        result.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let call = json!({"role": "assistant", "content": [tool_use("toolu_1")]});
        conversation(&json!([user("a"), call, {"role": "user", "content": [result]}]))
    };
    let at = "messages.2.content.0.tool_result";
    let search = json!({"type": "search_result", "source": "s", "title": "t", "content": [text("a")]});
    let empty = json!({"type": "search_result", "source": "s", "title": "t", "content": [text("")]});
    let state = json!({"type": "browser_state", "url": "https://a"});
    check_all(
        &RequestRules::newest(),
        &[
            ("nothing", returned(json!({})), FINE),
            ("empty string", returned(json!({"content": "", "is_error": true})), FINE),
            ("empty list", returned(json!({"content": []})), FINE),
            ("blocks", returned(json!({"content": [text("a"), image(&png("aGk=")), search, state]})), FINE),
            (
                "empty text",
                returned(json!({"content": [text("")]})),
                "messages: text content blocks must be non-empty",
            ),
            (
                "empty search",
                returned(json!({"content": [empty]})),
                "messages: text content blocks must be non-empty",
            ),
            (
                "blank text",
                returned(json!({"content": [text("\n")]})),
                "messages: text content blocks must contain non-whitespace text",
            ),
            (
                "number",
                returned(json!({"content": 3})),
                &format!("{at}.content: Input should be a valid list"),
            ),
            (
                "flag",
                returned(json!({"is_error": "no"})),
                &format!("{at}.is_error: Input should be a valid boolean"),
            ),
            (
                "call inside",
                returned(json!({"content": [tool_use("b")]})),
                &format!(
                    "{at}.content.0: Input tag 'tool_use' found using 'type' does not match any of the expected tags: \
                 'text', 'image', 'document', 'search_result', 'tool_reference', 'browser_state'"
                ),
            ),
            (
                "private field",
                returned(json!({"cache_reference": "toolu_1"})),
                &format!("{at}.cache_reference: {EXTRA}"),
            ),
            (
                "in an answer",
                answered(&json!([tool_result("a")])),
                "messages.1.content.0: `tool_result` blocks can only be in `user` messages",
            ),
        ],
    );
    let private = RequestRules { betas: BetaSet::public().with(Beta::CacheEdits), ..RequestRules::newest() };
    check("private field, private beta", &returned(json!({"cache_reference": "toolu_1"})), &private, FINE);
}

#[test]
fn rarer_blocks() {
    let upload = json!({"type": "container_upload", "file_id": "f"});
    let fallback = json!({"type": "fallback", "from": "a", "to": "b", "trigger": "refusal"});
    let listing = json!({"type": "mcp_tool_listing", "anything": 1});
    let edits = json!({"type": "cache_edits", "edits": [{"type": "delete", "cache_reference": "toolu_1"}]});
    check_all(
        &RequestRules::newest(),
        &[
            ("upload", said(&json!([upload])), FINE),
            (
                "upload without file",
                said(&json!([{"type": "container_upload"}])),
                "messages.0.content.0.container_upload.file_id: Field required",
            ),
            ("fallback", answered(&json!([fallback, text("a")])), FINE),
            (
                "fallback by the user",
                said(&json!([fallback])),
                "messages.0.content.0: `fallback` blocks can only be in `assistant` messages",
            ),
            ("listing", answered(&json!([listing, text("a")])), FINE),
            (
                "search result in an answer",
                answered(&json!([{"type": "search_result", "source": "s", "title": "t", "content": []}])),
                "messages.1.content.0: `search_result` blocks can only be in `user` messages",
            ),
            (
                "search result without title",
                said(&json!([{"type": "search_result", "source": "s", "content": []}])),
                "messages.0.content.0.search_result.title: Field required",
            ),
        ],
    );
    let private = RequestRules { betas: BetaSet::public().with(Beta::CacheEdits), ..RequestRules::newest() };
    check("cache edits", &said(&json!([edits, text("a")])), &private, FINE);
    let none = RequestRules { betas: BetaSet::none(), ..RequestRules::newest() };
    for block in [&fallback, &listing, &edits] {
        let error = crate::error_of(&answered(&json!([block])), &none);
        let kind = block["type"].as_str().unwrap();
        let start = format!("messages.1.content.0: Input tag '{kind}' found using 'type' does not match");
        assert!(error.message.starts_with(&start), "{error}");
    }
}
