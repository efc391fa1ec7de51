//! Top-level fields of the body.

use pal_model::ThinkingModes;
use pal_wire::{ApiErrorKind, Beta, BetaSet, MessagesEndpoint, RequestRules, check_request};
use serde_json::json;

use crate::{FINE, check, check_all, old_rules, request, tool};

#[test]
fn required_fields_and_types() {
    check_all(
        &RequestRules::newest(),
        &[
            ("minimal", request(&json!({})), FINE),
            ("no model", request(&json!({"model": "<none>"})), "model: Field required"),
            ("model type", request(&json!({"model": 5})), "model: Input should be a valid string"),
            ("model empty", request(&json!({"model": ""})), "model: String should have at least 1 character"),
            ("no max_tokens", request(&json!({"max_tokens": "<none>"})), "max_tokens: Field required"),
            (
                "max_tokens type",
                request(&json!({"max_tokens": "9"})),
                "max_tokens: Input should be a valid integer",
            ),
            ("fraction", request(&json!({"max_tokens": 1.5})), "max_tokens: Input should be a valid integer"),
            (
                "below zero",
                request(&json!({"max_tokens": -1})),
                "max_tokens: Input should be greater than or equal to 0",
            ),
            ("at the limit", request(&json!({"max_tokens": 128_000})), FINE),
            (
                "too much output",
                request(&json!({"max_tokens": 128_001})),
                "max_tokens: 128001 > 128000, which is the maximum allowed number of output tokens for claude-opus-5-5",
            ),
            ("no messages", request(&json!({"messages": "<none>"})), "messages: Field required"),
            ("messages type", request(&json!({"messages": {}})), "messages: Input should be a valid list"),
            (
                "message type",
                request(&json!({"messages": [1]})),
                "messages.0: Input should be a valid dictionary",
            ),
            ("body type", json!([]), "Input should be a valid dictionary"),
            ("unknown", request(&json!({"foo": 1})), "foo: Extra inputs are not permitted"),
            (
                "header fields",
                request(&json!({"workspace_id": "w"})),
                "workspace_id: Extra inputs are not permitted",
            ),
        ],
    );
}

#[test]
fn plain_options() {
    check_all(
        &RequestRules::newest(),
        &[
            ("system text", request(&json!({"system": "be brief"})), FINE),
            ("system blocks", request(&json!({"system": [{"type": "text", "text": "be brief"}]})), FINE),
            (
                "system empty",
                request(&json!({"system": [{"type": "text", "text": ""}]})),
                "system: text content blocks must be non-empty",
            ),
            (
                "system blank",
                request(&json!({"system": [{"type": "text", "text": " \n"}]})),
                "system: text content blocks must contain non-whitespace text",
            ),
            (
                "system image",
                request(&json!({"system": [{"type": "image"}]})),
                "system.0: Input tag 'image' found using 'type' does not match any of the expected tags: 'text'",
            ),
            ("system type", request(&json!({"system": 1})), "system: Input should be a valid list"),
            ("stream", request(&json!({"stream": true})), FINE),
            ("stream type", request(&json!({"stream": "yes"})), "stream: Input should be a valid boolean"),
            ("metadata", request(&json!({"metadata": {"user_id": null}})), FINE),
            (
                "metadata extra",
                request(&json!({"metadata": {"a": 1}})),
                "metadata.a: Extra inputs are not permitted",
            ),
            ("tier", request(&json!({"service_tier": "standard_only"})), FINE),
            (
                "tier wrong",
                request(&json!({"service_tier": "gold"})),
                "service_tier: Input should be 'auto' or 'standard_only'",
            ),
            ("speed", request(&json!({"speed": "fast"})), FINE),
            ("speed wrong", request(&json!({"speed": 1})), "speed: Input should be 'standard' or 'fast'"),
            ("geo", request(&json!({"inference_geo": "eu"})), FINE),
            (
                "geo type",
                request(&json!({"inference_geo": []})),
                "inference_geo: Input should be a valid string",
            ),
            ("stops", request(&json!({"stop_sequences": ["END"]})), FINE),
            (
                "stops type",
                request(&json!({"stop_sequences": [1]})),
                "stop_sequences.0: Input should be a valid string",
            ),
            (
                "stops blank",
                request(&json!({"stop_sequences": ["\n"]})),
                "stop_sequences: each stop sequence must contain non-whitespace",
            ),
            ("diagnostics", request(&json!({"diagnostics": {"previous_message_id": null}})), FINE),
            (
                "diagnostics without id",
                request(&json!({"diagnostics": {}})),
                "diagnostics.previous_message_id: Field required",
            ),
            ("container id", request(&json!({"container": "c_1"})), FINE),
            (
                "container skills",
                request(
                    &json!({"container": {"skills": [{"type": "custom", "skill_id": "s", "version": "1"}]}}),
                ),
                FINE,
            ),
            (
                "container skill without id",
                request(&json!({"container": {"skills": [{"type": "custom"}]}})),
                "container.skills.0.custom.skill_id: Field required",
            ),
        ],
    );
}

#[test]
fn output_config() {
    check_all(
        &RequestRules::newest(),
        &[
            ("effort", request(&json!({"output_config": {"effort": "xhigh"}})), FINE),
            (
                "effort wrong",
                request(&json!({"output_config": {"effort": "huge"}})),
                "output_config.effort: Input should be 'low', 'medium', 'high', 'xhigh' or 'max'",
            ),
            (
                "format",
                request(&json!({"output_config": {"format": {"type": "json_schema", "schema": {}}}})),
                FINE,
            ),
            (
                "format without schema",
                request(&json!({"output_config": {"format": {"type": "json_schema"}}})),
                "output_config.format.json_schema.schema: Field required",
            ),
            (
                "budget",
                request(&json!({"output_config": {"task_budget": {"type": "tokens", "total": 9}}})),
                FINE,
            ),
            (
                "budget without total",
                request(&json!({"output_config": {"task_budget": {"type": "tokens"}}})),
                "output_config.task_budget.tokens.total: Field required",
            ),
        ],
    );
}

#[test]
fn betas_switch_fields_on() {
    let plain = RequestRules { betas: BetaSet::none(), ..RequestRules::newest() };
    let table = [
        ("context_management", json!({"context_management": {"edits": []}})),
        ("compaction", json!({"compaction": {"type": "summarize"}})),
        ("thread", json!({"thread": {"type": "create"}})),
        ("mcp_servers", json!({"mcp_servers": [{"type": "url", "url": "https://a", "name": "a"}]})),
        ("fallbacks", json!({"fallbacks": "default"})),
        ("fallback_credit_token", json!({"fallback_credit_token": "t"})),
        (
            "output_config.task_budget",
            json!({"output_config": {"task_budget": {"type": "tokens", "total": 1}}}),
        ),
        (
            "thinking.adaptive.block_binding",
            json!({"thinking": {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}}),
        ),
    ];
    for (path, fields) in table {
        check(path, &request(&fields), &RequestRules::newest(), FINE);
        check(path, &request(&fields), &plain, &format!("{path}: Extra inputs are not permitted"));
    }
}

#[test]
fn sizes() {
    let body = request(&json!({})).to_string();
    let rules = RequestRules { max_body_bytes: body.len(), ..RequestRules::newest() };
    assert_eq!(check_request(body.as_bytes(), &rules).unwrap().bytes, body.len());
    let rules = RequestRules { max_body_bytes: body.len() - 1, ..rules };
    let error = check_request(body.as_bytes(), &rules).unwrap_err();
    assert_eq!((error.status, error.kind), (413, ApiErrorKind::RequestTooLarge));
    assert_eq!(
        error.to_json("req_1"),
        r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"},"request_id":"req_1"}"#
    );
    assert_eq!(RequestRules::newest().max_body_bytes, 33_554_432);
}

#[test]
fn count_tokens_accepts_no_output_fields() {
    let rules = RequestRules { endpoint: MessagesEndpoint::CountTokens, ..RequestRules::newest() };
    check_all(
        &rules,
        &[
            ("without", request(&json!({"max_tokens": "<none>"})), FINE),
            ("with max_tokens", request(&json!({})), "max_tokens: Extra inputs are not permitted"),
            (
                "with stream",
                request(&json!({"max_tokens": "<none>", "stream": true})),
                "stream: Extra inputs are not permitted",
            ),
        ],
    );
}

#[test]
fn prewarming() {
    let rules = RequestRules {
        thinking: ThinkingModes { adaptive: true, enabled: true, disabled: true, between_tools: true },
        forced_tool_choice: true,
        ..RequestRules::newest()
    };
    check_all(
        &rules,
        &[
            (
                "alone",
                request(&json!({"max_tokens": 0, "thinking": {"type": "adaptive"}, "stream": false})),
                FINE,
            ),
            (
                "stream",
                request(&json!({"max_tokens": 0, "stream": true})),
                "max_tokens: 0 cannot be combined with streaming",
            ),
            (
                "budget",
                request(&json!({"max_tokens": 0, "thinking": {"type": "enabled", "budget_tokens": 1024}})),
                "max_tokens: 0 cannot be combined with `thinking.type` \"enabled\"",
            ),
            (
                "format",
                request(
                    &json!({"max_tokens": 0, "output_config": {"format": {"type": "json_schema", "schema": {}}}}),
                ),
                "max_tokens: 0 cannot be combined with `output_config.format`",
            ),
            (
                "forced tool",
                request(&json!({"max_tokens": 0, "tools": [tool("a")], "tool_choice": {"type": "any"}})),
                "max_tokens: 0 cannot be combined with a `tool_choice` that forces tool use",
            ),
        ],
    );
}

#[test]
fn sampling() {
    let hot = request(&json!({"temperature": 0.5}));
    check("newest version", &hot, &RequestRules::newest(), "temperature: Extra inputs are not permitted");
    let newer_model = RequestRules { sampling: false, ..old_rules() };
    check("newer model", &hot, &newer_model, "`temperature` is deprecated for this model.");
    check("neutral", &request(&json!({"temperature": 1, "top_p": 0.99})), &newer_model, FINE);
    check("top_p", &request(&json!({"top_p": 0.9})), &newer_model, "`top_p` is deprecated for this model.");
    check("top_k", &request(&json!({"top_k": 1})), &newer_model, "`top_k` is deprecated for this model.");
    check(
        "older model",
        &request(&json!({"temperature": 0.5, "top_p": 0.2, "top_k": 3})),
        &old_rules(),
        FINE,
    );
    check(
        "out of range",
        &request(&json!({"top_p": 2})),
        &old_rules(),
        "top_p: Input should be between 0 and 1",
    );
}

#[test]
fn context_management() {
    let edits = |edits| {
        let thinking = json!({"type": "adaptive"});
        request(&json!({"thinking": thinking, "context_management": {"edits": edits}}))
    };
    let clear_thinking =
        json!({"type": "clear_thinking_20251015", "keep": {"type": "thinking_turns", "value": 2}});
    let clear_tools = json!({
        "type": "clear_tool_uses_20250919", "trigger": {"type": "input_tokens", "value": 120_000},
        "keep": {"type": "tool_uses", "value": 5}, "clear_at_least": {"type": "input_tokens", "value": 20_000},
        "exclude_tools": ["memory"], "clear_tool_inputs": ["read"]
    });
    let compact = |least| {
        let trigger = json!({"type": "input_tokens", "value": least});
        json!({"type": "compact_20260112", "trigger": trigger, "pause_after_compaction": true, "instructions": "x"})
    };
    let path = "context_management.edits";
    check_all(
        &RequestRules::newest(),
        &[
            ("all", edits(json!([clear_thinking, clear_tools, compact(50_000)])), FINE),
            ("keep all", edits(json!([{"type": "clear_thinking_20251015", "keep": "all"}])), FINE),
            (
                "order",
                edits(json!([clear_tools, clear_thinking])),
                &format!(
                    "{path}.1: `clear_thinking_20251015` strategy must be the first in the list of edits"
                ),
            ),
            (
                "needs thinking",
                request(&json!({"context_management": {"edits": [clear_thinking]}})),
                "`clear_thinking_20251015` strategy requires `thinking` to be enabled or adaptive",
            ),
            (
                "low trigger",
                edits(json!([compact(49_999)])),
                &format!(
                    "{path}.0.compact_20260112.trigger.input_tokens.value: \
                 Input should be greater than or equal to 50000"
                ),
            ),
            (
                "unknown edit",
                edits(json!([{"type": "forget"}])),
                &format!(
                    "{path}.0: Input tag 'forget' found using 'type' does not match any of the expected tags: \
                 'clear_tool_uses_20250919', 'clear_thinking_20251015', 'compact_20260112'"
                ),
            ),
        ],
    );
    let only_clearing =
        RequestRules { betas: BetaSet::none().with(Beta::ContextManagement), ..RequestRules::newest() };
    check(
        "compaction edit without its header",
        &edits(json!([compact(50_000)])),
        &only_clearing,
        "context_management.edits.0: Input tag 'compact_20260112' found using 'type' does not match any of the \
         expected tags: 'clear_tool_uses_20250919', 'clear_thinking_20251015'",
    );
}

#[test]
fn threads() {
    let go_on = json!({"type": "continue", "previous_message_id": "msg_1"});
    let result = json!([{"role": "user", "content": [crate::tool_result("toolu_far")]}]);
    check_all(
        &RequestRules::newest(),
        &[
            ("create", request(&json!({"thread": {"type": "create"}, "system": "s"})), FINE),
            ("continue", request(&json!({"thread": go_on})), FINE),
            (
                "result of a call that the server holds",
                request(&json!({"thread": go_on, "messages": result})),
                FINE,
            ),
            (
                "no id",
                request(&json!({"thread": {"type": "continue"}})),
                "thread.continue.previous_message_id: Field required",
            ),
            (
                "system again",
                request(&json!({"thread": go_on, "system": "s"})),
                "system: must be omitted when a thread is continued",
            ),
            (
                "with edits",
                request(&json!({"thread": go_on, "context_management": {}})),
                "thread: not supported together with `context_management`",
            ),
        ],
    );
}

#[test]
fn headers() {
    assert_eq!(Beta::from_header(" compact-2026-09-04"), Some(Beta::Compaction));
    assert_eq!(Beta::from_header("prompt-caching-2024-07-31"), None);
    assert!(BetaSet::public().has(Beta::ClearAt) && !BetaSet::public().has(Beta::CacheEdits));
}
