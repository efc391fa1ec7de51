//! Steps of a streaming response as events of the Messages API (`--include-partial-messages`).

use pal_events::{BlockGrowth, ResponseProgress};
use serde_json::{Value, json};

/// Events that a step prints.
pub(super) fn stream_events(progress: &ResponseProgress) -> Vec<Value> {
    match progress {
        ResponseProgress::Started { response, model, usage } => vec![json!({
            "type": "message_start",
            "message": {
                "id": response, "type": "message", "role": "assistant", "model": model, "content": [],
                "stop_reason": null, "stop_sequence": null, "usage": usage,
            },
        })],
        ResponseProgress::BlockStarted { index, kind, tool, call } => {
            let block = match *kind {
                "text" => json!({"type": "text", "text": ""}),
                "thinking" => json!({"type": "thinking", "thinking": "", "signature": ""}),
                kind if tool.is_some() => {
                    json!({"type": kind, "id": call.as_deref().unwrap_or(""), "name": tool, "input": {}})
                }
                kind => json!({"type": kind}),
            };
            vec![json!({"type": "content_block_start", "index": index, "content_block": block})]
        }
        ResponseProgress::BlockGrew { index, growth } => vec![delta(
            *index,
            &match growth {
                BlockGrowth::Text(text) => json!({"type": "text_delta", "text": text}),
                BlockGrowth::Thinking(text) => json!({"type": "thinking_delta", "thinking": text}),
                BlockGrowth::Input(text) => json!({"type": "input_json_delta", "partial_json": text}),
            },
        )],
        ResponseProgress::BlockEnded { index, block } => {
            let signature = block.string("signature").filter(|signature| !signature.is_empty());
            let signed =
                signature.map(|text| delta(*index, &json!({"type": "signature_delta", "signature": text})));
            let stop = json!({"type": "content_block_stop", "index": index});
            signed.into_iter().chain([stop]).collect()
        }
        ResponseProgress::Finished { stop_reason, usage } => vec![
            json!({
                "type": "message_delta", "delta": {"stop_reason": stop_reason, "stop_sequence": null},
                "usage": usage,
            }),
            json!({"type": "message_stop"}),
        ],
    }
}

fn delta(index: usize, delta: &Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}
