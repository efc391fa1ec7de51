//! Cache breakpoints.

use pal_wire::{Beta, BetaSet, RequestRules};
use serde_json::{Value, json};

use crate::{
    FINE, answered, check, check_all, counts_of, request, said, text, thinking, tool, tool_result, tool_use,
    user,
};

fn marked(mut block: Value, ttl: &str) -> Value {
    block["cache_control"] = json!({"type": "ephemeral", "ttl": ttl});
    block
}

#[test]
fn places() {
    let nested = json!({"type": "tool_result", "tool_use_id": "a", "content": [marked(text("x"), "5m")]});
    let results = |result: Value| {
        let messages = json!([
            user("x"), {"role": "assistant", "content": [marked(tool_use("a"), "5m")]},
            {"role": "user", "content": [result]}
        ]);
        request(&json!({"messages": messages}))
    };
    check_all(
        &RequestRules::newest(),
        &[
            ("text", said(&json!([marked(text("a"), "5m")])), FINE),
            ("call and result", results(marked(tool_result("a"), "5m")), FINE),
            ("tool", request(&json!({"tools": [marked(tool("a"), "1h")]})), FINE),
            ("system", request(&json!({"system": [marked(text("a"), "1h")]})), FINE),
            ("null", said(&json!([{"type": "text", "text": "a", "cache_control": null}])), FINE),
            (
                "thinking",
                answered(&json!([marked(thinking(), "5m"), text("a")])),
                "messages.1.content.0.thinking.cache_control: Extra inputs are not permitted",
            ),
            (
                "inside a result",
                results(nested),
                "messages.2.content.0.tool_result.content.0.text.cache_control: Extra inputs are not permitted",
            ),
            (
                "empty text",
                said(&json!([marked(text(""), "5m")])),
                "messages.0.content.0.text: cache_control cannot be set for empty text blocks",
            ),
            (
                "empty system text",
                request(&json!({"system": [marked(text(""), "5m")]})),
                "system.0.text: cache_control cannot be set for empty text blocks",
            ),
            (
                "on a message",
                request(&json!({"messages": [marked(user("a"), "5m")]})),
                "messages.0.cache_control: Extra inputs are not permitted",
            ),
        ],
    );
}

#[test]
fn form() {
    let with = |mark| said(&json!([{"type": "text", "text": "a", "cache_control": mark}]));
    let at = "messages.0.content.0.text.cache_control";
    let global = with(json!({"type": "ephemeral", "scope": "global"}));
    check_all(
        &RequestRules::newest(),
        &[
            ("plain", with(json!({"type": "ephemeral"})), FINE),
            (
                "ttl",
                with(json!({"type": "ephemeral", "ttl": "2h"})),
                &format!("{at}.ephemeral.ttl: Input should be '5m' or '1h'"),
            ),
            (
                "type",
                with(json!({"type": "eternal"})),
                &format!(
                    "{at}: Input tag 'eternal' found using 'type' does not match any of the expected tags: 'ephemeral'"
                ),
            ),
            ("no type", with(json!({})), &format!("{at}.type: Field required")),
            ("scope", global.clone(), &format!("{at}.ephemeral.scope: Extra inputs are not permitted")),
        ],
    );
    let private = RequestRules { betas: BetaSet::public().with(Beta::CacheScopes), ..RequestRules::newest() };
    check("scope, private beta", &global, &private, FINE);
}

#[test]
fn number() {
    let many = |n_marks: usize| {
        let blocks = vec![marked(text("a"), "5m"); n_marks];
        request(&json!({"system": blocks, "messages": [user("a")]}))
    };
    let automatic = |mut body: Value| {
        body["cache_control"] = json!({"type": "ephemeral"});
        body
    };
    let five = "A maximum of 4 blocks with cache_control may be provided. Found 5.";
    check_all(
        &RequestRules::newest(),
        &[
            ("four", many(4), FINE),
            ("five", many(5), five),
            ("three and the automatic one", automatic(many(3)), FINE),
            ("four and the automatic one", automatic(many(4)), five),
        ],
    );
    assert_eq!(counts_of(&automatic(many(3))).breakpoints, 4);
}

#[test]
fn ttl_order() {
    let late = |path: &str| {
        format!(
            "{path}cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control \
             block. Note that blocks are processed in the following order: `tools`, `system`, `messages`."
        )
    };
    let with = |tool_ttl: &str, system_ttl: &str, message_ttl: &str| {
        request(&json!({
            "messages": [{"role": "user", "content": [text("x"), marked(text("a"), message_ttl)]}],
            "system": [marked(text("b"), system_ttl)],
            "tools": [marked(tool("c"), tool_ttl)],
        }))
    };
    let automatic = |ttl: &str, last: &Value| {
        let mark = json!({"type": "ephemeral", "ttl": ttl});
        let messages = json!([{"role": "user", "content": [text("x"), last]}]);
        request(&json!({"cache_control": mark, "system": [marked(text("s"), "5m")], "messages": messages}))
    };
    check_all(
        &RequestRules::newest(),
        &[
            ("falling", with("1h", "1h", "5m"), FINE),
            ("tools before system", with("5m", "1h", "5m"), &late("system.0.")),
            ("system before messages", with("1h", "5m", "1h"), &late("messages.0.content.1.")),
            ("automatic, plain", automatic("5m", &text("a")), FINE),
            ("automatic, same", automatic("5m", &marked(text("a"), "5m")), FINE),
            ("automatic, longer", automatic("1h", &text("a")), &late("")),
            (
                "automatic, other",
                automatic("1h", &marked(text("a"), "5m")),
                "Top-level cache_control has ttl='1h' but the target block already has cache_control with ttl='5m'",
            ),
        ],
    );
}

#[test]
fn automatic_breakpoint_skips_blocks_that_accept_none() {
    // The last block accepts no breakpoint, so the target is the one before it, whose TTL differs.
    let switch = json!({"role": "system", "content": "plan", "clear_at": "next_user_message"});
    let messages = json!([{"role": "user", "content": [marked(text("a"), "1h")]}, switch]);
    let body = request(&json!({"cache_control": {"type": "ephemeral"}, "messages": messages}));
    check(
        "over a turn-scoped message",
        &body,
        &RequestRules::newest(),
        "Top-level cache_control has ttl='5m' but the target block already has cache_control with ttl='1h'",
    );
}
