//! Thinking: the parameter and the blocks.

use pal_model::ThinkingModes;
use pal_wire::{Beta, BetaSet, RequestRules};
use serde_json::json;

use crate::{
    FINE, answered, check, check_all, old_rules, request, said, text, thinking, tool_result, tool_use, user,
};

#[test]
fn kinds() {
    let with = |thinking| request(&json!({"thinking": thinking}));
    let unsupported = |kind: &str| {
        format!(
            "\"thinking.type.{kind}\" is not supported for this model. \
             Use \"thinking.type.adaptive\" and \"output_config.effort\"."
        )
    };
    let budget = with(json!({"type": "enabled", "budget_tokens": 2048}));
    check_all(
        &RequestRules::newest(),
        &[
            ("adaptive", with(json!({"type": "adaptive", "display": "summarized"})), FINE),
            ("updates", with(json!({"type": "adaptive", "display": "updates"})), FINE),
            ("enabled", budget.clone(), &unsupported("enabled")),
            ("disabled", with(json!({"type": "disabled"})), &unsupported("disabled")),
            ("between_tools", with(json!({"type": "between_tools"})), &unsupported("between_tools")),
            (
                "unknown",
                with(json!({"type": "hard"})),
                "thinking: Input tag 'hard' found using 'type' does not match any of the expected tags: \
             'adaptive', 'enabled', 'disabled', 'between_tools'",
            ),
        ],
    );
    check_all(
        &old_rules(),
        &[
            (
                "adaptive",
                with(json!({"type": "adaptive"})),
                "\"thinking.type.adaptive\" is not supported for this model.",
            ),
            ("enabled", budget, FINE),
            ("disabled", with(json!({"type": "disabled"})), FINE),
            (
                "small budget",
                with(json!({"type": "enabled", "budget_tokens": 1023})),
                "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
            ),
            ("no budget", with(json!({"type": "enabled"})), "thinking.enabled.budget_tokens: Field required"),
            (
                "budget of all output",
                with(json!({"type": "enabled", "budget_tokens": 4096})),
                "`max_tokens` must be greater than `thinking.budget_tokens`.",
            ),
        ],
    );
    let quiet =
        RequestRules { betas: BetaSet::public().without(Beta::DisplayUpdates), ..RequestRules::newest() };
    check(
        "updates without the beta",
        &with(json!({"type": "adaptive", "display": "updates"})),
        &quiet,
        "thinking.adaptive.display: Input should be 'summarized' or 'omitted'",
    );
}

#[test]
fn between_tools_limits_the_effort() {
    let kinds = ThinkingModes { adaptive: true, enabled: false, disabled: false, between_tools: true };
    let rules = RequestRules { thinking: kinds, ..RequestRules::newest() };
    let with = |effort| {
        request(&json!({"thinking": {"type": "between_tools"}, "output_config": {"effort": effort}}))
    };
    check("high", &with("high"), &rules, FINE);
    check(
        "max",
        &with("max"),
        &rules,
        "output_config.effort: 'max' is not supported with \"thinking.type.between_tools\"",
    );
}

#[test]
fn blocks() {
    let redacted = json!({"type": "redacted_thinking", "data": "ZGF0YQ"});
    check_all(
        &RequestRules::newest(),
        &[
            ("empty words", answered(&json!([thinking(), text("a")])), FINE),
            ("redacted", answered(&json!([redacted, text("a")])), FINE),
            ("in the middle", answered(&json!([text("a"), thinking(), text("b")])), FINE),
            (
                "no words",
                answered(&json!([{"type": "thinking", "signature": "s"}, text("a")])),
                "messages.1.content.0.thinking.thinking: Field required",
            ),
            (
                "no signature",
                answered(&json!([{"type": "thinking", "thinking": "a"}, text("a")])),
                "messages.1.content.0.thinking.signature: Field required",
            ),
            (
                "empty signature",
                answered(&json!([{"type": "thinking", "thinking": "a", "signature": ""}, text("a")])),
                "messages.1.content.0: Invalid `signature` in `thinking` block",
            ),
            (
                "empty data",
                answered(&json!([{"type": "redacted_thinking", "data": ""}, text("a")])),
                "messages.1.content.0: Invalid `data` in `redacted_thinking` block",
            ),
            (
                "last",
                answered(&json!([text("a"), thinking()])),
                "messages.1: The final block in an assistant message cannot be `thinking`.",
            ),
            (
                "alone",
                answered(&json!([redacted])),
                "messages.1: The final block in an assistant message cannot be `redacted_thinking`.",
            ),
            (
                "by the user",
                said(&json!([thinking()])),
                "messages.0.content.0: `thinking` blocks can only be in `assistant` messages",
            ),
        ],
    );
}

#[test]
fn tool_loop_with_budget_begins_with_thinking() {
    let looped = |blocks| {
        let answer = json!({"role": "user", "content": [tool_result("a")]});
        let messages = json!([user("x"), {"role": "assistant", "content": blocks}, answer]);
        request(&json!({"messages": messages, "thinking": {"type": "enabled", "budget_tokens": 1024}}))
    };
    let complaint = "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `text`. \
                     When `thinking` is enabled, a final `assistant` message must start with a thinking block \
                     (preceeding the lastmost set of `tool_use` and `tool_result` blocks). \
                     To avoid this requirement, disable `thinking`.";
    let mut over = looped(json!([text("b"), tool_use("a")]));
    over["messages"]
        .as_array_mut()
        .unwrap()
        .extend([json!({"role": "assistant", "content": "c"}), user("d")]);
    let mut long = looped(json!([thinking(), tool_use("a")]));
    long["messages"].as_array_mut().unwrap().extend([
        json!({"role": "assistant", "content": [tool_use("b")]}),
        json!({"role": "user", "content": [tool_result("b")]}),
    ]);
    let mut thoughtless = looped(json!([text("b"), tool_use("a")]));
    thoughtless["messages"].as_array_mut().unwrap().extend([
        json!({"role": "assistant", "content": [text("c"), tool_use("b")]}),
        json!({"role": "user", "content": [tool_result("b")]}),
    ]);
    check_all(
        &old_rules(),
        &[
            ("without, twice", thoughtless, &complaint.replace("messages.1", "messages.3")),
            ("with", looped(json!([thinking(), tool_use("a")])), FINE),
            ("without", looped(json!([text("b"), tool_use("a")])), complaint),
            ("without, but over", over, FINE),
            ("only at the start of the loop", long, FINE),
        ],
    );
    let mut adaptive = looped(json!([tool_use("a")]));
    adaptive["thinking"] = json!({"type": "adaptive"});
    check("adaptive", &adaptive, &RequestRules::newest(), FINE);
}
