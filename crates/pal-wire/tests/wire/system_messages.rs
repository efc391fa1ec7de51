//! System messages in the middle of a conversation.

use pal_wire::{Beta, BetaSet, RequestRules};
use serde_json::{Value, json};

use crate::{
    FINE, assistant, check, check_all, conversation, error_of, request, text, tool, tool_result, tool_use,
    user,
};

fn system(content: Value) -> Value {
    json!({"role": "system", "content": content})
}

#[test]
fn placement() {
    let note = || system(json!("plan mode"));
    let searched = json!({"role": "assistant", "content": [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
    ]});
    let call = json!({"role": "assistant", "content": [tool_use("a")]});
    let result = json!({"role": "user", "content": [tool_result("a")]});
    let follow = "role 'system' must follow a 'user' message or an 'assistant' message that ends in a server tool result";
    let precede = "role 'system' must precede an 'assistant' message or end the array";
    check_all(
        &RequestRules::newest(),
        &[
            ("last", conversation(&json!([user("a"), note()])), FINE),
            ("before an answer", conversation(&json!([user("a"), note(), assistant("b"), user("c")])), FINE),
            ("two", conversation(&json!([user("a"), note(), note()])), FINE),
            ("after a server result", conversation(&json!([user("a"), searched, note()])), FINE),
            (
                "after a server result, answered",
                conversation(&json!([user("a"), searched, note(), assistant("b"), user("c")])),
                FINE,
            ),
            ("first", conversation(&json!([note(), user("a")])), &format!("messages.0: {follow}")),
            (
                "after an answer",
                conversation(&json!([user("a"), assistant("b"), note()])),
                &format!("messages.2: {follow}"),
            ),
            (
                "before a user",
                conversation(&json!([user("a"), note(), user("b")])),
                &format!("messages.1: {precede}"),
            ),
            (
                "two before a user",
                conversation(&json!([user("a"), note(), note(), user("b")])),
                &format!("messages.2: {precede}"),
            ),
            (
                "between call and result",
                conversation(&json!([user("a"), call, note(), result])),
                &format!("messages.2: {follow}"),
            ),
            (
                "empty",
                conversation(&json!([user("a"), system(json!([]))])),
                "messages.1: all messages must have non-empty content except for the optional final assistant message",
            ),
        ],
    );
    check(
        "older model",
        &conversation(&json!([user("a"), note()])),
        &RequestRules { system_messages: false, ..RequestRules::newest() },
        "messages: Unexpected role \"system\". The Messages API accepts a top-level `system` parameter, \
         not \"system\" as an input message role.",
    );
}

#[test]
fn blocks() {
    check_all(
        &RequestRules::newest(),
        &[
            ("text", conversation(&json!([user("a"), system(json!([text("b")]))])), FINE),
            (
                "call",
                conversation(&json!([user("a"), system(json!([tool_use("b")]))])),
                "messages.1.content.0: `tool_use` blocks can only be in `assistant` messages",
            ),
        ],
    );
}

#[test]
fn turn_scope() {
    let scoped = |content: Value| {
        conversation(
            &json!([user("a"), {"role": "system", "content": content, "clear_at": "next_user_message"}]),
        )
    };
    let mark = json!({"type": "text", "text": "b", "cache_control": {"type": "ephemeral"}});
    let removal = json!({"type": "tool_removal", "tool": {"type": "tool_reference", "name": "a"}});
    check_all(
        &RequestRules::newest(),
        &[
            ("string", scoped(json!("b")), FINE),
            ("blocks", scoped(json!([text("b")])), FINE),
            (
                "mark",
                scoped(json!([mark])),
                "messages.1.content.0.text.cache_control: cache_control cannot be set in a system message with `clear_at`",
            ),
            (
                "tool change",
                scoped(json!([removal])),
                "messages.1.content.0: only `text` blocks are allowed in a system message with `clear_at`",
            ),
            (
                "value",
                conversation(&json!([user("a"), {"role": "system", "content": "b", "clear_at": "never"}])),
                "messages.1.clear_at: Input should be 'next_user_message'",
            ),
            (
                "of a user",
                conversation(&json!([{"role": "user", "content": "b", "clear_at": "next_user_message"}])),
                "messages.0.clear_at: Extra inputs are not permitted",
            ),
        ],
    );
    let plain = RequestRules { betas: BetaSet::public().without(Beta::ClearAt), ..RequestRules::newest() };
    check(
        "without the beta",
        &scoped(json!("b")),
        &plain,
        "messages.1.clear_at: Extra inputs are not permitted",
    );
}

#[test]
fn effort() {
    let switch = || json!({"role": "system", "content": [], "output_config": {"effort": "low"}});
    let call = json!({"role": "assistant", "content": [tool_use("a")]});
    let result = json!({"role": "user", "content": [tool_result("a")]});
    check_all(
        &RequestRules::newest(),
        &[
            ("last", conversation(&json!([user("a"), switch()])), FINE),
            ("first", conversation(&json!([switch(), user("a")])), FINE),
            ("before a user", conversation(&json!([user("a"), assistant("b"), switch(), user("c")])), FINE),
            (
                "between users",
                conversation(&json!([user("a"), switch(), user("c")])),
                "messages.2: roles must alternate between \"user\" and \"assistant\", but found multiple \"user\" roles in a row",
            ),
            (
                "with words, before a user",
                conversation(
                    &json!([user("a"), {"role": "system", "content": "b", "output_config": {"effort": "low"}}, user("c")]),
                ),
                "messages.1: role 'system' must precede an 'assistant' message or end the array",
            ),
            (
                "between call and result",
                conversation(&json!([user("a"), call, switch(), result])),
                "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: a. Each \
             `tool_use` block must have a corresponding `tool_result` block in the next message.",
            ),
            ("alone", conversation(&json!([switch()])), "messages: at least one message is required"),
            (
                "after an answer, last",
                conversation(&json!([user("a"), assistant("b"), switch()])),
                "This model does not support assistant message prefill. The conversation must end with a user message.",
            ),
            (
                "value",
                conversation(&json!([user("a"), {"role": "system", "content": [], "output_config": {}}])),
                "messages.1.output_config.effort: Field required",
            ),
        ],
    );
    let plain = RequestRules {
        betas: BetaSet::public().without(Beta::MessageOutputConfig),
        ..RequestRules::newest()
    };
    check(
        "without the beta",
        &conversation(&json!([user("a"), switch()])),
        &plain,
        "messages.1.output_config: Extra inputs are not permitted",
    );
}

#[test]
fn tool_changes() {
    let change =
        |blocks: Value| request(&json!({"tools": [tool("a")], "messages": [user("x"), system(blocks)]}));
    let reference =
        |kind: &str, name: &str| json!({"type": kind, "tool": {"type": "tool_reference", "name": name}});
    let define = |name: &str| json!({"type": "tool_addition", "tool": {"type": "tool_definition", "definition": tool(name)}});
    check_all(
        &RequestRules::newest(),
        &[
            (
                "by reference",
                change(json!([reference("tool_addition", "a"), reference("tool_removal", "a")])),
                FINE,
            ),
            ("inline", change(json!([define("b"), reference("tool_removal", "b")])), FINE),
            (
                "unknown",
                change(json!([reference("tool_addition", "b")])),
                "messages.1.content.0: Tool reference 'b' not found in available tools",
            ),
            (
                "defined twice",
                change(json!([define("a")])),
                "messages.1.content.0: Tool 'a' is already defined",
            ),
            (
                "field of the other reference",
                change(
                    json!([{"type": "tool_addition", "tool": {"type": "tool_reference", "tool_name": "a"}}]),
                ),
                "messages.1.content.0.tool_addition.tool.tool_reference.name: Field required",
            ),
            (
                "by the user",
                request(
                    &json!({"tools": [tool("a")], "messages": [{"role": "user", "content": [reference("tool_removal", "a")]}]}),
                ),
                "messages.0.content.0: `tool_removal` blocks can only be in `system` messages",
            ),
        ],
    );
    assert_eq!(
        error_of(&change(json!([define("a")])), &RequestRules::newest()).error_code,
        Some("tool_name_conflict")
    );
    let by_reference =
        RequestRules { betas: BetaSet::none().with(Beta::ToolChanges), ..RequestRules::newest() };
    check(
        "inline without the beta",
        &change(json!([define("b")])),
        &by_reference,
        "messages.1.content.0.tool_addition.tool: Input tag 'tool_definition' found using 'type' does not match \
         any of the expected tags: 'tool_reference'",
    );
}
