//! What pal-wire promises: the strict validator through its one door, as a table of requests and what the provider
//! would say; and answers of every dialect (`answers`).

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

use pal_model::ThinkingKinds;
use pal_wire::{ApiError, ApiVersion, Betas, Checked, ErrorKind, Rules, check_request};
use serde_json::{Value, json};

/// The expectation of a request that passes.
const FINE: &str = "";

/// Judges one request; `expected` is the message, or [`FINE`].
#[track_caller]
fn check(name: &str, body: &Value, rules: &Rules, expected: &str) {
    let found = match check_request(body.to_string().as_bytes(), rules) {
        Ok(_) => String::new(),
        Err(error) => {
            assert_eq!((error.status, error.kind), (400, ErrorKind::InvalidRequest), "{name}: {error}");
            error.message
        }
    };
    assert_eq!(found, expected, "{name}: {body}");
}

/// Judges a table of requests under one set of rules.
#[track_caller]
fn check_all(rules: &Rules, table: &[(&str, Value, &str)]) {
    for (name, body, expected) in table {
        check(name, body, rules, expected);
    }
}

/// The error of a request that does not pass.
#[track_caller]
fn error_of(body: &Value, rules: &Rules) -> ApiError {
    check_request(body.to_string().as_bytes(), rules).unwrap_err()
}

/// The counts of a request that passes.
#[track_caller]
fn counts_of(body: &Value) -> Checked {
    check_request(body.to_string().as_bytes(), &Rules::newest()).unwrap()
}

/// A model before 4.6 on the old version: budgets, prefill, sampling, forced tools; no system messages, no betas.
fn old_rules() -> Rules {
    Rules {
        version: ApiVersion::V2023_06_01,
        betas: Betas::none(),
        max_output: 64_000,
        thinking: ThinkingKinds { adaptive: false, enabled: true, disabled: true, between_tools: false },
        system_messages: false,
        prefill: true,
        sampling: true,
        forced_tool_choice: true,
        ..Rules::newest()
    }
}

/// A small good request with these fields set, or left out where null.
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

/// A request with these messages.
fn talk(messages: &Value) -> Value {
    request(&json!({"messages": messages}))
}

/// A request whose only message is the user's, with these blocks.
fn said(blocks: &Value) -> Value {
    talk(&json!([{"role": "user", "content": blocks}]))
}

/// A request in which the assistant answered with these blocks and the user went on.
fn answered(blocks: &Value) -> Value {
    talk(&json!([user("hi"), {"role": "assistant", "content": blocks}, user("go on")]))
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
