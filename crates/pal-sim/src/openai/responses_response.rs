//! Encodes answers in the Responses dialect, as one object or as events.

use bytes::Bytes;
use serde_json::{Value, json};

use super::openai_outcome::{OpenAiOutcome, OutputItem};
use crate::messages_response::{EventFrame, pieces};

/// Request values that the response repeats or depends on.
pub(crate) struct ResponseEcho<'a> {
    pub(crate) body: &'a Value,
    pub(crate) effort: &'a str,
    /// True if encrypted reasoning is requested.
    pub(crate) includes_encrypted: bool,
    /// True if a reasoning summary is requested.
    pub(crate) summarizes: bool,
    /// Applied cache options; `None` for models without breakpoints.
    pub(crate) cache_options: Option<Value>,
}

/// Encodes an answer as one object.
pub(crate) fn encode_whole(outcome: &OpenAiOutcome, echo: &ResponseEcho<'_>) -> Value {
    let stopped = match outcome.stop_reason.as_str() {
        "max_tokens" | "model_context_window_exceeded" => Some("max_output_tokens"),
        "refusal" => Some("content_filter"),
        _ => None,
    };
    let status = if stopped.is_some() { "incomplete" } else { "completed" };
    let mut response = response(outcome, echo, status);
    let last = outcome.items.len().saturating_sub(1);
    response["output"] = outcome
        .items
        .iter()
        .enumerate()
        .map(|(at, item)| whole_item(item, echo, if at == last { status } else { "completed" }))
        .collect();
    response["usage"] = outcome.responses_usage();
    response["incomplete_details"] = stopped.map_or(Value::Null, |reason| json!({"reason": reason}));
    if stopped.is_none() {
        response["completed_at"] = json!(outcome.created);
    }
    if let Some(diagnostics) = &outcome.diagnostics {
        response["prompt_cache_diagnostics"] = diagnostics.clone();
    }
    response
}

/// Encodes an answer as events.
pub(crate) fn encode_events(outcome: &OpenAiOutcome, echo: &ResponseEcho<'_>) -> Vec<EventFrame> {
    let mut events = EventSequence { frames: Vec::new(), number: 0 };
    let begun = response(outcome, echo, "in_progress");
    events.push("response.created", json!({"response": begun}), 0);
    events.push("response.in_progress", json!({"response": begun}), 0);
    let whole = encode_whole(outcome, echo);
    let done = whole["output"].as_array().cloned().unwrap_or_default();
    for (index, (item, done)) in outcome.items.iter().zip(done).enumerate() {
        events.item(index, item, &done);
    }
    let last = if whole["status"] == "completed" { "response.completed" } else { "response.incomplete" };
    events.push(last, json!({"response": whole}), 0);
    events.frames
}

/// Response without output, with the repeated request values.
fn response(outcome: &OpenAiOutcome, echo: &ResponseEcho<'_>, status: &str) -> Value {
    let body = echo.body;
    let or = |name: &str, default: Value| {
        body.get(name).filter(|value| !value.is_null()).cloned().unwrap_or(default)
    };
    json!({
        "id": outcome.id,
        "object": "response",
        "created_at": outcome.created,
        "status": status,
        "background": false,
        "error": null,
        "incomplete_details": null,
        "instructions": or("instructions", Value::Null),
        "max_output_tokens": or("max_output_tokens", Value::Null),
        "metadata": or("metadata", json!({})),
        "model": outcome.model,
        "output": [],
        "parallel_tool_calls": or("parallel_tool_calls", json!(true)),
        "previous_response_id": null,
        "prompt_cache_key": or("prompt_cache_key", Value::Null),
        "prompt_cache_options": echo.cache_options,
        "reasoning": {"effort": echo.effort, "summary": body.pointer("/reasoning/summary")},
        "service_tier": "default",
        "store": or("store", json!(true)),
        "temperature": or("temperature", json!(1.0)),
        "text": or("text", json!({"format": {"type": "text"}})),
        "tool_choice": or("tool_choice", json!("auto")),
        "tools": or("tools", json!([])),
        "top_p": or("top_p", json!(1.0)),
        "truncation": or("truncation", json!("disabled")),
        "usage": null,
        "user": null,
    })
}

fn whole_item(item: &OutputItem, echo: &ResponseEcho<'_>, status: &str) -> Value {
    match item {
        OutputItem::Reasoning { id, text, encrypted } => {
            let summary = if echo.summarizes && !text.is_empty() {
                json!([{"type": "summary_text", "text": text}])
            } else {
                json!([])
            };
            let mut item = json!({"id": id, "type": "reasoning", "summary": summary});
            if echo.includes_encrypted {
                item["encrypted_content"] = json!(encrypted);
            }
            item
        }
        OutputItem::Message { id, text } => json!({
            "id": id, "type": "message", "status": status, "role": "assistant",
            "content": [{"type": "output_text", "annotations": [], "logprobs": [], "text": text}],
        }),
        OutputItem::Call { id, call, name, arguments } => json!({
            "id": id, "type": "function_call", "status": status,
            "arguments": arguments, "call_id": call, "name": name,
        }),
    }
}

/// Events with their sequence numbers.
struct EventSequence {
    frames: Vec<EventFrame>,
    number: u64,
}

impl EventSequence {
    fn push(&mut self, kind: &str, members: Value, spoken: usize) {
        let mut event = json!({"type": kind, "sequence_number": self.number});
        if let (Some(event), Value::Object(members)) = (event.as_object_mut(), members) {
            event.extend(members);
        }
        self.number += 1;
        self.frames
            .push(EventFrame { bytes: Bytes::from(format!("event: {kind}\ndata: {event}\n\n")), spoken });
    }

    fn item(&mut self, index: usize, item: &OutputItem, done: &Value) {
        let mut added = done.clone();
        match item {
            OutputItem::Reasoning { .. } => added["summary"] = json!([]),
            OutputItem::Message { .. } => added["content"] = json!([]),
            OutputItem::Call { .. } => added["arguments"] = json!(""),
        }
        if added.get("status").is_some() {
            added["status"] = json!("in_progress");
        }
        self.push("response.output_item.added", json!({"output_index": index, "item": added}), 0);
        match item {
            OutputItem::Reasoning { id, .. } => self.summary(index, id, done),
            OutputItem::Message { id, text } => self.text(index, id, text),
            OutputItem::Call { id, arguments, .. } => {
                let at = json!({"item_id": id, "output_index": index});
                for piece in pieces(arguments) {
                    let delta = with(&at, json!({"delta": piece}));
                    self.push("response.function_call_arguments.delta", delta, piece.len());
                }
                let whole = with(&at, json!({"arguments": arguments, "name": done["name"]}));
                self.push("response.function_call_arguments.done", whole, 0);
            }
        }
        self.push("response.output_item.done", json!({"output_index": index, "item": done}), 0);
    }

    fn text(&mut self, index: usize, id: &str, text: &str) {
        let at = json!({"item_id": id, "output_index": index, "content_index": 0});
        let part =
            |text: &str| json!({"type": "output_text", "annotations": [], "logprobs": [], "text": text});
        self.push("response.content_part.added", with(&at, json!({"part": part("")})), 0);
        for piece in pieces(text) {
            let delta = with(&at, json!({"delta": piece, "logprobs": []}));
            self.push("response.output_text.delta", delta, piece.len());
        }
        self.push("response.output_text.done", with(&at, json!({"text": text, "logprobs": []})), 0);
        self.push("response.content_part.done", with(&at, json!({"part": part(text)})), 0);
    }

    fn summary(&mut self, index: usize, id: &str, done: &Value) {
        let Some(text) = done.pointer("/summary/0/text").and_then(Value::as_str) else { return };
        let at = json!({"item_id": id, "output_index": index, "summary_index": 0});
        let part = |text: &str| json!({"type": "summary_text", "text": text});
        self.push("response.reasoning_summary_part.added", with(&at, json!({"part": part("")})), 0);
        for piece in pieces(text) {
            self.push(
                "response.reasoning_summary_text.delta",
                with(&at, json!({"delta": piece})),
                piece.len(),
            );
        }
        self.push("response.reasoning_summary_text.done", with(&at, json!({"text": text})), 0);
        self.push("response.reasoning_summary_part.done", with(&at, json!({"part": part(text)})), 0);
    }
}

/// Merges two objects.
fn with(base: &Value, more: Value) -> Value {
    let mut both = base.clone();
    if let (Some(both), Value::Object(more)) = (both.as_object_mut(), more) {
        both.extend(more);
    }
    both
}
