//! Tests of pal-wire: the request check, as tables of requests and the provider's errors; and the decoding of responses
//! in every dialect (`answers`).

#![allow(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]
#![allow(
    clippy::needless_pass_by_value,
    reason = "`json!` makes values, and a table of them reads best bare"
)]

mod answers;
mod blocks;
mod compaction;
mod fields;
mod hostile;
mod json;
mod marks;
mod openai;
mod pairs;
mod samples;
mod system_messages;
mod thinking;
mod tools;
mod turns;

use pal_model::ThinkingModes;
use pal_wire::{ApiError, ApiErrorKind, ApiVersion, BetaSet, RequestRules, RequestStats, check_request};
use serde_json::{Value, json};

/// Expectation for a valid request.
const FINE: &str = "";

/// Checks one request; `expected` is the message, or [`FINE`].
#[track_caller]
fn check(name: &str, body: &Value, rules: &RequestRules, expected: &str) {
    let found = match check_request(body.to_string().as_bytes(), rules) {
        Ok(_) => String::new(),
        Err(error) => {
            assert_eq!((error.status, error.kind), (400, ApiErrorKind::InvalidRequest), "{name}: {error}");
            error.message
        }
    };
    assert_eq!(found, expected, "{name}: {body}");
}

/// Checks a table of requests under one set of rules.
#[track_caller]
fn check_all(rules: &RequestRules, table: &[(&str, Value, &str)]) {
    for (name, body, expected) in table {
        check(name, body, rules, expected);
    }
}

/// Returns the error of an invalid request.
#[track_caller]
fn error_of(body: &Value, rules: &RequestRules) -> ApiError {
    check_request(body.to_string().as_bytes(), rules).unwrap_err()
}

/// Returns the counts of a valid request.
#[track_caller]
fn counts_of(body: &Value) -> RequestStats {
    check_request(body.to_string().as_bytes(), &RequestRules::newest()).unwrap()
}

/// Rules of a model before 4.6 on the old version: budgets, prefill, sampling, forced tools; no system messages, no betas.
fn old_rules() -> RequestRules {
    RequestRules {
        version: ApiVersion::V2023_06_01,
        betas: BetaSet::none(),
        max_output: 64_000,
        thinking: ThinkingModes { adaptive: false, enabled: true, disabled: true, between_tools: false },
        system_messages: false,
        prefill: true,
        sampling: true,
        forced_tool_choice: true,
        ..RequestRules::newest()
    }
}

/// Returns a small valid request with these fields set; null fields are removed.
fn request(fields: &Value) -> Value {
    let mut body = json!({
        "model": "claude-opus-5-5",
        "max_tokens": 4096,
        "messages": [{"role": "user", "content": "hi"}],
    });
    for (key, value) in fields.as_object().unwrap() {
        body[key] = value.clone();
    }
    body.as_object_mut().unwrap().retain(|_, value| *value != json!("<none>"));
    body
}

/// Returns a request with these messages.
fn conversation(messages: &Value) -> Value {
    request(&json!({"messages": messages}))
}

/// Returns a request with one user message of these blocks.
fn said(blocks: &Value) -> Value {
    conversation(&json!([{"role": "user", "content": blocks}]))
}

/// Returns a request in which an assistant message of these blocks is followed by a user message.
fn answered(blocks: &Value) -> Value {
    conversation(&json!([user("hi"), {"role": "assistant", "content": blocks}, user("go on")]))
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn assistant(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}

fn text(words: &str) -> Value {
    json!({"type": "text", "text": words})
}

fn tool_use(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "read", "input": {"path": "a"}})
}

fn tool_result(id: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": "done"})
}

fn thinking() -> Value {
    json!({"type": "thinking", "thinking": "", "signature": "c2ln"})
}

fn tool(name: &str) -> Value {
    json!({"name": name, "input_schema": {"type": "object"}})
}
