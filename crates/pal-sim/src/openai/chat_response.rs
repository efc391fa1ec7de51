//! Encodes answers as Chat Completions, one object or chunks. Reasoning is counted but not shown.

use bytes::Bytes;
use serde_json::{Value, json};

use super::openai_outcome::{OpenAiOutcome, OutputItem};
use crate::messages_response::{EventFrame, pieces};

/// Encodes an answer as one object.
pub(crate) fn encode_whole(outcome: &OpenAiOutcome) -> Value {
    let mut message = json!({"role": "assistant", "content": null, "refusal": null, "annotations": []});
    let texts: Vec<&str> = outcome
        .items
        .iter()
        .filter_map(
            |item| if let OutputItem::Message { text, .. } = item { Some(text.as_str()) } else { None },
        )
        .collect();
    let calls: Vec<Value> = outcome
        .items
        .iter()
        .filter_map(|item| match item {
            OutputItem::Call { call, name, arguments, .. } => Some(
                json!({"id": call, "type": "function", "function": {"name": name, "arguments": arguments}}),
            ),
            _ => None,
        })
        .collect();
    if !texts.is_empty() {
        message["content"] = json!(texts.concat());
    }
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    let choice =
        json!({"index": 0, "message": message, "logprobs": null, "finish_reason": finish_reason(outcome)});
    with_frame(outcome, "chat.completion", &json!([choice]), Some(outcome.chat_usage()))
}

/// Encodes an answer as chunks, with a usage chunk if requested.
pub(crate) fn encode_events(outcome: &OpenAiOutcome, wants_usage: bool) -> Vec<EventFrame> {
    let mut frames = Vec::new();
    let mut push = |choices: Value, usage: Option<Value>, spoken: usize| {
        let mut chunk = with_frame(outcome, "chat.completion.chunk", &choices, usage.clone());
        if wants_usage && usage.is_none() {
            chunk["usage"] = Value::Null;
        }
        frames.push(EventFrame { bytes: Bytes::from(format!("data: {chunk}\n\n")), spoken });
    };
    let choice = |delta: Value, reason: Value| json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": reason}]);
    push(choice(json!({"role": "assistant", "content": "", "refusal": null}), Value::Null), None, 0);
    let mut calls = 0;
    for item in &outcome.items {
        match item {
            OutputItem::Reasoning { .. } => {}
            OutputItem::Message { text, .. } => {
                for piece in pieces(text) {
                    push(choice(json!({"content": piece}), Value::Null), None, piece.len());
                }
            }
            OutputItem::Call { call, name, arguments, .. } => {
                let first = json!({"index": calls, "id": call, "type": "function",
                    "function": {"name": name, "arguments": ""}});
                push(choice(json!({"tool_calls": [first]}), Value::Null), None, 0);
                for piece in pieces(arguments) {
                    let more = json!({"index": calls, "function": {"arguments": piece}});
                    push(choice(json!({"tool_calls": [more]}), Value::Null), None, piece.len());
                }
                calls += 1;
            }
        }
    }
    push(choice(json!({}), json!(finish_reason(outcome))), None, 0);
    if wants_usage {
        push(json!([]), Some(outcome.chat_usage()), 0);
    }
    frames.push(EventFrame { bytes: Bytes::from_static(b"data: [DONE]\n\n"), spoken: 0 });
    frames
}

fn with_frame(outcome: &OpenAiOutcome, object: &str, choices: &Value, usage: Option<Value>) -> Value {
    let mut json = json!({
        "id": outcome.id,
        "object": object,
        "created": outcome.created,
        "model": outcome.model,
        "service_tier": "default",
        "system_fingerprint": "fp_simulated",
        "choices": choices,
    });
    if let Some(usage) = usage {
        json["usage"] = usage;
    }
    json
}

fn finish_reason(outcome: &OpenAiOutcome) -> &'static str {
    match outcome.stop_reason.as_str() {
        "tool_use" => "tool_calls",
        "max_tokens" | "model_context_window_exceeded" => "length",
        "refusal" => "content_filter",
        _ => "stop",
    }
}
