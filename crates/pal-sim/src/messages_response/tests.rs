//! Streamed and whole encodings carry the same answer.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn response(blocks: &[Value]) -> MessagesResponse {
    MessagesResponse {
        id: "msg_1".into(),
        model: "claude-opus-5-5".into(),
        blocks: blocks.iter().map(|block| SharedText::from(block.to_string())).collect(),
        stop_reason: Some("end_turn".into()),
        stop_sequence: None,
        usage: json!({
            "input_tokens": 8, "cache_creation_input_tokens": 41, "cache_read_input_tokens": 183,
            "cache_creation": {"ephemeral_5m_input_tokens": 41, "ephemeral_1h_input_tokens": 0},
            "output_tokens": 15, "output_tokens_details": {"thinking_tokens": 9}, "service_tier": "standard",
            "iterations": [{"type": "message", "output_tokens": 15}],
        })
        .to_string(),
        extras: vec![
            ("diagnostics", r#"{"cache_miss_reason":null}"#.into()),
            ("input_transformations", "[]".into()),
            ("container", r#"{"id":"c"}"#.into()),
            ("context_management", r#"{"applied_edits":[]}"#.into()),
        ],
    }
}

/// Events by name, as a client reads them.
fn events(frames: &[EventFrame]) -> Vec<(String, Value)> {
    let read = |frame: &EventFrame| {
        let text = std::str::from_utf8(&frame.bytes).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let [event, data, ""] = lines[..] else { panic!("three lines, the last of them blank: {text:?}") };
        let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        let name = event.strip_prefix("event: ").unwrap().to_owned();
        assert_eq!(data["type"], name.as_str());
        (name, data)
    };
    frames.iter().map(read).collect()
}

/// Assembles a message as a client does.
fn gathered(events: &[(String, Value)]) -> Value {
    let mut message = events[0].1["message"].clone();
    let mut blocks: Vec<Value> = Vec::new();
    let mut inputs = String::new();
    for (name, data) in events {
        match name.as_str() {
            "content_block_start" => {
                assert_eq!(data["index"], blocks.len());
                blocks.push(data["content_block"].clone());
                inputs.clear();
            }
            "content_block_delta" => {
                let block = blocks.last_mut().unwrap();
                grow(block, &data["delta"], &mut inputs);
            }
            "content_block_stop" if !inputs.is_empty() => {
                blocks.last_mut().unwrap()["input"] = serde_json::from_str(&inputs).unwrap();
            }
            "message_delta" => {
                for source in [&data["delta"], data] {
                    for (key, value) in source.as_object().unwrap() {
                        match key.as_str() {
                            "type" | "delta" => {}
                            "usage" => message["usage"]
                                .as_object_mut()
                                .unwrap()
                                .extend(value.as_object().unwrap().clone()),
                            _ => message[key] = value.clone(),
                        }
                    }
                }
            }
            _ => {}
        }
    }
    message["content"] = Value::Array(blocks);
    message
}

fn grow(block: &mut Value, delta: &Value, inputs: &mut String) {
    let append = |block: &mut Value, name: &str| {
        let grown = block[name].as_str().unwrap().to_owned() + delta[name].as_str().unwrap();
        block[name] = grown.into();
    };
    match delta["type"].as_str().unwrap() {
        "text_delta" => append(block, "text"),
        "thinking_delta" => append(block, "thinking"),
        "signature_delta" => block["signature"] = delta["signature"].clone(),
        "input_json_delta" => inputs.push_str(delta["partial_json"].as_str().unwrap()),
        "citations_delta" => block["citations"].as_array_mut().unwrap().push(delta["citation"].clone()),
        "compaction_delta" => {
            block["content"] = delta["content"].clone();
            block["encrypted_content"] = delta["encrypted_content"].clone();
        }
        other => panic!("a delta of type {other}"),
    }
}

fn check(blocks: &[Value]) -> Vec<(String, Value)> {
    let response = response(blocks);
    let events = events(&encode_events(&response));
    let whole: Value = serde_json::from_str(&encode_whole(&response)).unwrap();
    assert_eq!(whole["content"], Value::Array(blocks.to_vec()));
    assert_eq!(gathered(&events), whole);
    events
}

fn names(events: &[(String, Value)]) -> Vec<&str> {
    events.iter().map(|(name, _)| name.as_str()).collect()
}

#[test]
fn stream_and_object_carry_the_same_answer() {
    let events = check(&[
        json!({"type": "thinking", "thinking": "Let me look at the file before I say anything.", "signature": "c2ln"}),
        json!({"type": "text", "text": "I read it: naïve 漢字 and 🙂, twice, and then some more words to split."}),
        json!({"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"file_path": "/a/b.rs", "n": 1.5}}),
        json!({"type": "tool_use", "id": "toolu_2", "name": "List", "input": {}}),
    ]);
    let names = names(&events);
    assert_eq!(names[..3], ["message_start", "ping", "content_block_start"]);
    assert_eq!(names[names.len() - 3..], ["content_block_stop", "message_delta", "message_stop"]);
    assert_eq!(names.iter().filter(|name| **name == "message_delta").count(), 1);
    let deltas = |kind: &str| events.iter().filter(|(_, data)| data["delta"]["type"] == kind).count();
    assert!(deltas("text_delta") > 1 && deltas("thinking_delta") > 1 && deltas("input_json_delta") > 3);
    assert_eq!(deltas("signature_delta"), 1);
}

#[test]
fn the_prompt_is_counted_at_the_start_and_the_answer_at_the_end() {
    let events = check(&[json!({"type": "text", "text": "done"})]);
    let start = &events[0].1["message"];
    assert_eq!(start["usage"]["cache_read_input_tokens"], 183);
    assert_eq!(start["usage"]["cache_creation"]["ephemeral_5m_input_tokens"], 41);
    assert_eq!(start["usage"]["output_tokens"], 1);
    assert!(start["usage"].get("iterations").is_none());
    assert_eq!(start["content"], json!([]));
    assert_eq!(start["stop_reason"], Value::Null);
    assert!(start.get("diagnostics").is_some() && start.get("input_transformations").is_some());
    assert!(start.get("context_management").is_none());
    let delta = &events[events.len() - 2].1;
    assert_eq!(delta["usage"]["output_tokens"], 15);
    assert_eq!(delta["usage"]["input_tokens"], 8);
    assert_eq!(delta["delta"]["stop_reason"], "end_turn");
    assert_eq!(delta["delta"]["container"]["id"], "c");
    assert!(delta["context_management"]["applied_edits"].is_array());
    assert!(delta.get("diagnostics").is_none());
}

#[test]
fn blocks_without_deltas_are_sent_whole_in_their_start() {
    let still = [
        json!({"type": "redacted_thinking", "data": "b3BhcXVl"}),
        json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}),
        json!({"type": "compaction", "content": "So far …", "signature": "EqQB", "tool_changes": []}),
        json!({"type": "of_a_later_day", "text": "whatever"}),
        json!({"type": "text", "text": 7}),
    ];
    let events = check(&still);
    assert!(!names(&events).contains(&"content_block_delta"));
}

#[test]
fn omitted_thinking_sends_only_a_signature() {
    let events = check(&[
        json!({"type": "thinking", "thinking": "", "signature": "c2ln"}),
        json!({"type": "text", "text": ""}),
    ]);
    let deltas: Vec<&Value> =
        events.iter().filter(|(name, _)| name == "content_block_delta").map(|(_, data)| data).collect();
    assert_eq!(deltas.len(), 1);
    assert_eq!(deltas[0]["delta"], json!({"type": "signature_delta", "signature": "c2ln"}));
}

#[test]
fn a_summary_at_the_threshold_comes_in_one_delta() {
    for content in [json!("A long summary. ".repeat(50)), Value::Null] {
        let events = check(&[
            json!({"type": "compaction", "content": content, "encrypted_content": "ZW5j"}),
            json!({"type": "text", "text": "going on"}),
        ]);
        let summaries = events.iter().filter(|(_, data)| data["delta"]["type"] == "compaction_delta").count();
        assert_eq!(summaries, 1);
    }
}

#[test]
fn citations_follow_their_text() {
    let events = check(&[json!({
        "type": "text", "text": "It says so.",
        "citations": [{"type": "char_location", "cited_text": "so"}, {"type": "char_location", "cited_text": "It"}],
    })]);
    assert_eq!(events.iter().filter(|(_, data)| data["delta"]["type"] == "citations_delta").count(), 2);
}

#[test]
fn raw_blocks_with_line_ends_stay_one_line_of_data() {
    let mut response = response(&[]);
    response.blocks = vec![
        SharedText::from("{\n \"type\":\r\n\"novelty\"}"),
        SharedText::from("{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"n\",\"input\":{\n  \"a\": 1\n}}"),
    ];
    let events = events(&encode_events(&response));
    assert_eq!(events[2].1["content_block"]["type"], "novelty");
    let inputs: String =
        events.iter().filter_map(|(_, data)| data["delta"]["partial_json"].as_str()).collect();
    assert_eq!(inputs, "{\n  \"a\": 1\n}", "the input arrives as it was written");
}

#[test]
fn events_are_timed_by_their_content() {
    let response = response(&[json!({"type": "text", "text": "word ".repeat(400)})]);
    let (start, speaking) = (Duration::from_millis(500), Duration::from_secs(10));
    let chunks = chunks(encode_events(&response), start, speaking);
    assert!(chunks.is_sorted_by_key(|chunk| chunk.at));
    assert_eq!(chunks.first().unwrap().at, start);
    assert_eq!(chunks.last().unwrap().at, start + speaking);
    let half = chunks.iter().filter(|chunk| chunk.at < start + speaking / 2).count();
    assert!((chunks.len() * 2 / 5..chunks.len() * 3 / 5).contains(&half), "{half} of {}", chunks.len());
}

#[test]
fn a_long_text_has_a_bounded_number_of_events() {
    let response = response(&[json!({"type": "text", "text": "漢".repeat(1_000_000)})]);
    assert!(encode_events(&response).len() < PIECES_MAX + 10);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(pal_testkit::cases(200)))]

    #[test]
    fn any_text_and_any_input_arrive_unchanged(
        text in "\\PC{0,200}|(.|\\s){0,200}", thinking in ".{0,100}", key in ".{0,10}", value in "(.|\\s){0,300}",
    ) {
        check(&[
            json!({"type": "thinking", "thinking": thinking, "signature": "c2ln"}),
            json!({"type": "text", "text": text}),
            json!({"type": "tool_use", "id": "t", "name": "n", "input": {key: value, "z": [1, {"a": null}]}}),
        ]);
    }

    #[test]
    fn pieces_concatenate_to_the_text(text in "(.|\\s){0,500}") {
        let pieces: Vec<&str> = pieces(&text).collect();
        prop_assert_eq!(&pieces.concat(), &text);
        prop_assert!(pieces.iter().all(|piece| !piece.is_empty()));
    }
}
