//! Compaction by the provider.

use pal_wire::{Beta, BetaSet, RequestRules};
use serde_json::{Value, json};

use crate::{
    FINE, assistant, check, check_all, conversation, error_of, old_rules, request, text, tool, tool_use, user,
};

fn summary() -> Value {
    json!({"type": "compaction", "content": "so far", "signature": "c2ln", "tool_changes": []})
}

fn threshold() -> Value {
    json!({"type": "compaction", "content": null, "encrypted_content": "ZQ"})
}

fn said_by_assistant(blocks: Value) -> Value {
    json!({"role": "assistant", "content": blocks})
}

#[test]
fn signed_blocks() {
    let misplaced = "a signed `compaction` block must be the first block of the first message";
    let first = || said_by_assistant(json!([summary()]));
    check_all(
        &RequestRules::newest(),
        &[
            ("then the user", conversation(&json!([first(), user("a")])), FINE),
            ("then the answer", conversation(&json!([first(), assistant("a"), user("b")])), FINE),
            (
                "later",
                conversation(&json!([user("a"), first(), user("b")])),
                &format!("messages.1.content.0: {misplaced}"),
            ),
            (
                "second",
                conversation(&json!([said_by_assistant(json!([threshold(), summary()])), user("b")])),
                &format!("messages.0.content.1: {misplaced}"),
            ),
            (
                "and another",
                conversation(&json!([
                    first(),
                    user("b"),
                    said_by_assistant(json!([threshold(), text("c")])),
                    user("d")
                ])),
                "messages: only one `compaction` block is allowed beside a signed one",
            ),
            (
                "by the user",
                conversation(&json!([{"role": "user", "content": [summary()]}])),
                "messages.0.content.0: `compaction` blocks can only be in `assistant` messages",
            ),
            (
                "without words",
                conversation(&json!([
                    said_by_assistant(json!([{"type": "compaction", "content": null, "signature": "s"}])),
                    user("b")
                ])),
                "messages.0.content.0.compaction.content: a signed summary must not be empty",
            ),
            (
                "two answers after it",
                conversation(&json!([first(), assistant("a"), assistant("b"), user("c")])),
                "messages.2: roles must alternate between \"user\" and \"assistant\", but found multiple \"assistant\" roles in a row",
            ),
            (
                "then a system message",
                conversation(&json!([first(), {"role": "system", "content": "a"}])),
                "messages.1: role 'system' must follow a 'user' message or an 'assistant' message that ends in a server tool result",
            ),
        ],
    );
    let code = |body: &Value| error_of(body, &RequestRules::newest()).error_code;
    assert_eq!(
        code(&conversation(&json!([user("a"), first(), user("b")]))),
        Some("compaction_block_misplaced")
    );
    let threshold_only =
        RequestRules { betas: BetaSet::none().with(Beta::ThresholdCompaction), ..RequestRules::newest() };
    check(
        "without the beta",
        &conversation(&json!([first(), user("a")])),
        &threshold_only,
        "messages.0.content.0.compaction.signature: Extra inputs are not permitted",
    );
}

#[test]
fn threshold_blocks() {
    let later =
        conversation(&json!([user("a"), said_by_assistant(json!([threshold(), text("b")])), user("c")]));
    check("later", &later, &RequestRules::newest(), FINE);
    check(
        "paused",
        &conversation(&json!([user("a"), said_by_assistant(json!([threshold()]))])),
        &RequestRules::newest(),
        FINE,
    );
    let pieces =
        conversation(&json!([user("a"), said_by_assistant(json!([threshold()])), assistant("b"), user("c")]));
    check(
        "not merged with what follows",
        &pieces,
        &RequestRules::newest(),
        "messages.2: roles must alternate between \"user\" and \"assistant\", but found multiple \"assistant\" roles in a row",
    );
    let on_demand_only =
        RequestRules { betas: BetaSet::none().with(Beta::Compaction), ..RequestRules::newest() };
    let unsigned = json!({"type": "compaction", "content": "b"});
    check(
        "without the beta",
        &conversation(&json!([said_by_assistant(json!([unsigned])), user("c")])),
        &on_demand_only,
        "messages.0.content.0.compaction.signature: Field required",
    );
}

#[test]
fn asking_for_a_summary() {
    let ask = |fields: Value| {
        let mut body = request(&json!({"compaction": {"type": "summarize", "instructions": "short"}}));
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        body
    };
    let clash = |field: &str| format!("compaction: cannot be combined with `{field}`");
    let format = json!({"type": "json_schema", "schema": {}});
    let budget = json!({"type": "tokens", "total": 9, "remaining": 3});
    let call = json!([user("a"), said_by_assistant(json!([tool_use("b")]))]);
    let only_summary = json!([said_by_assistant(json!([summary()]))]);
    let long = json!({"type": "summarize", "instructions": "x".repeat(16_385)});
    check_all(
        &RequestRules::newest(),
        &[
            ("fine", ask(json!({})), FINE),
            ("after an answer", ask(json!({"messages": [user("a"), assistant("b")]})), FINE),
            ("edits", ask(json!({"context_management": {"edits": []}})), &clash("context_management")),
            ("stops", ask(json!({"stop_sequences": ["x"]})), &clash("stop_sequences")),
            ("format", ask(json!({"output_config": {"format": format}})), &clash("output_config.format")),
            (
                "budget",
                ask(json!({"output_config": {"task_budget": budget}})),
                &clash("output_config.task_budget.remaining"),
            ),
            (
                "open call",
                ask(json!({"messages": call})),
                "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: b. Each \
             `tool_use` block must have a corresponding `tool_result` block in the next message.",
            ),
            (
                "nothing new",
                ask(json!({"messages": only_summary})),
                "compaction: there is nothing to summarize",
            ),
            (
                "long instructions",
                ask(json!({"compaction": long})),
                "compaction.summarize.instructions: String should have at most 16384 characters",
            ),
        ],
    );
    let code = |body: &Value| error_of(body, &RequestRules::newest()).error_code;
    assert_eq!(code(&ask(json!({"messages": call}))), Some("compaction_incomplete_turn"));
    assert_eq!(code(&ask(json!({"messages": only_summary}))), Some("compaction_nothing_to_summarize"));
    let forcing = RequestRules { betas: BetaSet::public(), ..old_rules() };
    check(
        "forced tool",
        &ask(json!({"tools": [tool("a")], "tool_choice": {"type": "any"}})),
        &forcing,
        &clash("tool_choice"),
    );
}
