//! Pairing of tool calls and results.

use pal_wire::RequestRules;
use serde_json::{Value, json};

use crate::{
    FINE, answered, check_all, conversation, counts_of, said, text, thinking, tool_result, tool_use, user,
};

fn calls(blocks: Value) -> Value {
    json!({"role": "assistant", "content": blocks})
}

fn results(blocks: Value) -> Value {
    json!({"role": "user", "content": blocks})
}

#[test]
fn client_tools() {
    let missing = |message: usize, ids: &str| {
        format!(
            "messages.{message}: `tool_use` ids were found without `tool_result` blocks immediately after: {ids}. \
             Each `tool_use` block must have a corresponding `tool_result` block in the next message."
        )
    };
    let unexpected = |path: &str, id: &str| {
        format!(
            "{path}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` block must \
             have a corresponding `tool_use` block in the previous message."
        )
    };
    let two = calls(json!([thinking(), text("both"), tool_use("b"), tool_use("a")]));
    check_all(
        &RequestRules::newest(),
        &[
            (
                "parallel",
                conversation(&json!([user("x"), two, results(json!([tool_result("a"), tool_result("b")]))])),
                FINE,
            ),
            (
                "text after results",
                conversation(&json!([
                    user("x"),
                    two,
                    results(json!([tool_result("a"), tool_result("b"), text("and")]))
                ])),
                FINE,
            ),
            (
                "text before results",
                conversation(&json!([
                    user("x"),
                    two,
                    results(json!([text("and"), tool_result("a"), tool_result("b")]))
                ])),
                "messages.2.content.1: `tool_result` blocks must come before all other content of a `user` message",
            ),
            (
                "one missing",
                conversation(&json!([user("x"), two, results(json!([tool_result("a")]))])),
                &missing(1, "b"),
            ),
            ("both missing", conversation(&json!([user("x"), two, user("y")])), &missing(1, "b, a")),
            (
                "answered too late",
                conversation(&json!([
                    user("x"),
                    two,
                    user("y"),
                    calls(json!([text("z")])),
                    results(json!([tool_result("a")]))
                ])),
                &missing(1, "b, a"),
            ),
            ("without a call", said(&json!([tool_result("a")])), &unexpected("messages.0.content.0", "a")),
            (
                "of another message",
                conversation(&json!([
                    user("x"),
                    two,
                    results(json!([tool_result("a"), tool_result("b")])),
                    calls(json!([text("y")])),
                    results(json!([tool_result("a")]))
                ])),
                &unexpected("messages.4.content.0", "a"),
            ),
            (
                "twice",
                conversation(&json!([
                    user("x"),
                    two,
                    results(json!([tool_result("b"), tool_result("a"), tool_result("a")]))
                ])),
                "messages.2.content.2: each tool_use must have a single result. \
             Found multiple `tool_result` blocks with id: a",
            ),
            (
                "same id in one message",
                conversation(&json!([
                    user("x"),
                    calls(json!([tool_use("a"), tool_use("a")])),
                    results(json!([tool_result("a")]))
                ])),
                "messages.1: `tool_use` ids must be unique",
            ),
            (
                "same id later",
                conversation(&json!([
                    user("x"),
                    calls(json!([tool_use("a")])),
                    results(json!([tool_result("a")])),
                    calls(json!([tool_use("a")])),
                    results(json!([tool_result("a")]))
                ])),
                "messages.3: `tool_use` ids must be unique",
            ),
        ],
    );
    let body = conversation(&json!([user("x"), two, results(json!([tool_result("a"), tool_result("b")]))]));
    let checked = counts_of(&body);
    assert_eq!((checked.tool_uses, checked.tool_results, checked.thinking), (2, 2, 1));
}

#[test]
fn server_tools() {
    let search =
        json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "a"}});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []});
    let fetched = json!({"type": "web_fetch_tool_result", "tool_use_id": "srvtoolu_1", "content": {}});
    let regex =
        json!({"type": "server_tool_use", "id": "srvtoolu_2", "name": "tool_search_tool_regex", "input": {}});
    let tools = json!({"type": "tool_search_tool_result", "tool_use_id": "srvtoolu_2", "content": {}});
    let mixed = calls(json!([search, tool_use("a")]));
    let open = "messages.1: `web_search` tool use with id `srvtoolu_1` was found without a corresponding \
                `web_search_tool_result` block";
    let orphan = |path: &str, kind: &str| {
        format!(
            "{path}: unexpected `tool_use_id` found in `{kind}` blocks: srvtoolu_1. Each `{kind}` block must have \
             a corresponding `server_tool_use` block before it."
        )
    };
    check_all(
        &RequestRules::newest(),
        &[
            ("fine", answered(&json!([search, found, regex, tools, text("b")])), FINE),
            ("no result", answered(&json!([search, text("b")])), open),
            (
                "no call",
                answered(&json!([found, text("b")])),
                &orphan("messages.1.content.0", "web_search_tool_result"),
            ),
            (
                "result first",
                answered(&json!([found, search])),
                &orphan("messages.1.content.0", "web_search_tool_result"),
            ),
            (
                "other kind",
                answered(&json!([search, fetched])),
                &orphan("messages.1.content.1", "web_fetch_tool_result"),
            ),
            (
                "twice",
                answered(&json!([search, found, found])),
                &orphan("messages.1.content.2", "web_search_tool_result"),
            ),
            (
                "mixed turn",
                conversation(&json!([user("x"), mixed, results(json!([tool_result("a")]))])),
                FINE,
            ),
            (
                "mixed turn, finished",
                conversation(&json!([
                    user("x"),
                    mixed,
                    results(json!([tool_result("a")])),
                    calls(json!([found, text("b")])),
                    user("y")
                ])),
                FINE,
            ),
            (
                "mixed turn with text",
                conversation(&json!([user("x"), mixed, results(json!([tool_result("a"), text("y")]))])),
                open,
            ),
            (
                "id",
                answered(
                    &json!([{"type": "server_tool_use", "id": "toolu_1", "name": "web_search", "input": {}}]),
                ),
                "messages.1.content.0.server_tool_use.id: String should match pattern '^srvtoolu_[a-zA-Z0-9_]+$'",
            ),
            (
                "name",
                answered(
                    &json!([{"type": "server_tool_use", "id": "srvtoolu_1", "name": "grep", "input": {}}]),
                ),
                "messages.1.content.0.server_tool_use.name: Input should be 'advisor', 'web_search', 'web_fetch', \
             'code_execution', 'bash_code_execution', 'text_editor_code_execution', 'tool_search_tool_regex' or \
             'tool_search_tool_bm25'",
            ),
            (
                "by the user",
                said(&json!([found])),
                "messages.0.content.0: `web_search_tool_result` blocks can only be in `assistant` messages",
            ),
        ],
    );
}

#[test]
fn connector_tools() {
    let call =
        json!({"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "a", "server_name": "s", "input": {}});
    let result = json!({"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "content": [text("b")]});
    let empty = json!({"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "content": [text("")]});
    check_all(
        &RequestRules::newest(),
        &[
            ("fine", answered(&json!([call, result, text("c")])), FINE),
            (
                "empty",
                answered(&json!([call, empty, text("c")])),
                "messages: text content blocks must be non-empty",
            ),
            (
                "no call",
                answered(&json!([result])),
                "messages.1.content.0: unexpected `tool_use_id` found in `mcp_tool_result` blocks: mcptoolu_1. Each \
             `mcp_tool_result` block must have a corresponding `mcp_tool_use` block before it.",
            ),
            (
                "no result",
                answered(&json!([call, text("c")])),
                "messages.1: `a` tool use with id `mcptoolu_1` was found without a corresponding `mcp_tool_result` block",
            ),
        ],
    );
}
