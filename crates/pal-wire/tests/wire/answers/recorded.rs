//! Recorded streams and their events.

use pal_wire::{Dialect, FailureKind, ResponseEvent, decode_response, unparsed_input};

use super::{decode, shown, stream};

/// First event of every stream here.
const START: &str = r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-opus-5-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":12,"cache_creation_input_tokens":400,"cache_read_input_tokens":8000,"cache_creation":{"ephemeral_5m_input_tokens":400,"ephemeral_1h_input_tokens":0},"output_tokens":1,"service_tier":"standard"}}}"#;

/// Expected event of [`START`].
const STARTED: &str = "started msg_1 claude-opus-5-5 8412\n";

/// Merged usage of [`START`] and [`end`].
const USAGE: &str = r#""usage":{"cache_creation":{"ephemeral_5m_input_tokens":400,"ephemeral_1h_input_tokens":0},"cache_creation_input_tokens":400,"cache_read_input_tokens":8000,"input_tokens":12,"output_tokens":77,"service_tier":"standard"}"#;

/// Returns the last events of a stream.
fn end(stop_reason: &str) -> String {
    format!(
        r#"{{"type":"message_delta","delta":{{"stop_reason":"{stop_reason}","stop_sequence":null}},"usage":{{"output_tokens":77}}}}
        {{"type":"message_stop"}}"#
    )
}

/// Decodes a body in one piece and split at every position.
fn events_of(body: &str) -> Vec<ResponseEvent> {
    let bytes = body.as_bytes();
    let events = decode(Dialect::Messages, [bytes]);
    for cut in 0..=bytes.len() {
        let (one, two) = bytes.split_at(cut);
        assert_eq!(decode(Dialect::Messages, [one, two]), events, "cut at {cut}");
    }
    events
}

/// Checks the events between [`START`] and [`end`].
#[track_caller]
fn check(lines: &str, stop_reason: &str, expected: &str) {
    let body = stream(&format!("{START}\n{lines}\n{}", end(stop_reason)));
    let expected: String = expected.lines().map(|line| line.trim().to_owned() + "\n").collect();
    let finished = format!("finished msg_1 claude-opus-5-5 {stop_reason} 8412+77 {{{USAGE}}}\n");
    assert_eq!(shown(&events_of(&body)), format!("{STARTED}{expected}{finished}"));
}

/// Checks all events of a stream.
#[track_caller]
fn check_whole(lines: &str, expected: &str) {
    let expected: String = expected.lines().map(|line| line.trim().to_owned() + "\n").collect();
    assert_eq!(shown(&events_of(&stream(lines))), expected);
}

#[test]
fn text_deltas_become_one_block() {
    check(
        r#"{"type":"ping"}
        {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}
        {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Héllo,\n"}}
        {"type":"ping"}
        {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":""}}
        {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\"wörld\" \ud83d\ude42"}}
        {"type":"content_block_stop","index":0}"#,
        "end_turn",
        r#"0 opened text
        0 said "Héllo,\n"
        0 said "\"wörld\" 🙂"
        0 is {"type":"text","text":"Héllo,\n\"wörld\" \ud83d\ude42"}"#,
    );
}

#[test]
fn split_characters_are_joined() {
    check(
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"a"}}
        {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\ud83d"}}
        {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\ude42"}}
        {"type":"content_block_stop","index":0}
        {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"Say","input":{}}}
        {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\":\"\ud83d"}}
        {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"\ude42\"}"}}
        {"type":"content_block_stop","index":1}"#,
        "tool_use",
        r#"0 opened text
        0 said "�"
        0 said "�"
        0 is {"type":"text","text":"a\ud83d\ude42"}
        1 opened tool_use Say
        1 put in "{\"a\":\"�"
        1 put in "�\"}"
        1 is {"type":"tool_use","id":"toolu_1","name":"Say","input":{"a":"🙂"}}"#,
    );
}

#[test]
fn thinking_is_signed_and_may_be_hidden() {
    check(
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}
        {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Let me ","estimated_tokens":2}}
        {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"see."}}
        {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQB+/="}}
        {"type":"content_block_stop","index":0}
        {"type":"content_block_start","index":1,"content_block":{"type":"thinking","thinking":"","signature":""}}
        {"type":"content_block_delta","index":1,"delta":{"type":"signature_delta","signature":"EqQC"}}
        {"type":"content_block_stop","index":1}
        {"type":"content_block_start","index":2,"content_block":{"type":"thinking","thinking":""}}
        {"type":"content_block_delta","index":2,"delta":{"type":"signature_delta","signature":"EqQD"}}
        {"type":"content_block_stop","index":2}
        {"type":"content_block_start","index":3,"content_block":{"type":"redacted_thinking","data":"opaque"}}
        {"type":"content_block_stop","index":3}"#,
        "end_turn",
        r#"0 opened thinking
        0 thought "Let me "
        0 thought "see."
        0 is {"type":"thinking","thinking":"Let me see.","signature":"EqQB+/="}
        1 opened thinking
        1 is {"type":"thinking","thinking":"","signature":"EqQC"}
        2 opened thinking
        2 is {"type":"thinking","thinking":"","signature":"EqQD"}
        3 opened redacted_thinking
        3 is {"type":"redacted_thinking","data":"opaque"}"#,
    );
}

#[test]
fn calls_keep_the_models_own_json() {
    check(
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"Read","input":{}}}
        {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":""}}
        {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"b\": 1e2, "}}
        {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"\"a\":\n\"x\\n\\u00e9\"}"}}
        {"type":"content_block_stop","index":0}
        {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_2","name":"Now","input":{},"caller":{"type":"direct"}}}
        {"type":"content_block_stop","index":1}
        {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_3","name":"Now"}}
        {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""}}
        {"type":"content_block_stop","index":2}
        {"type":"content_block_start","index":3,"content_block":{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"whole"}}}
        {"type":"content_block_stop","index":3}
        {"type":"content_block_start","index":4,"content_block":{"type":"mcp_tool_use","id":"mcptoolu_1","name":"echo","server_name":"s","input":{}}}
        {"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":"{\"q\":[]}"}}
        {"type":"content_block_stop","index":4}"#,
        "tool_use",
        r#"0 opened tool_use Read
        0 put in "{\"b\": 1e2, "
        0 put in "\"a\":\n\"x\\n\\u00e9\"}"
        0 is {"type":"tool_use","id":"toolu_1","name":"Read","input":{"b": 1e2, "a": "x\n\u00e9"}}
        1 opened tool_use Now
        1 is {"type":"tool_use","id":"toolu_2","name":"Now","input":{},"caller":{"type":"direct"}}
        2 opened tool_use Now
        2 is {"type":"tool_use","id":"toolu_3","name":"Now","input":{}}
        3 opened server_tool_use web_search
        3 is {"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"whole"}}
        4 opened mcp_tool_use echo
        4 put in "{\"q\":[]}"
        4 is {"type":"mcp_tool_use","id":"mcptoolu_1","name":"echo","server_name":"s","input":{"q":[]}}"#,
    );
}

#[test]
fn invalid_tool_input_is_kept_beside_the_call() {
    for (input, text) in
        [(r#"{\"path\":\"/a"#, "{\"path\":\"/a"), ("[1]", "[1]"), ("{} {}", "{} {}"), ("{'a':1}", "{'a':1}")]
    {
        let lines = format!(
            r#"{START}
            {{"type":"content_block_start","index":0,"content_block":{{"type":"tool_use","id":"toolu_1","name":"Read","input":{{}}}}}}
            {{"type":"content_block_delta","index":0,"delta":{{"type":"input_json_delta","partial_json":"{input}"}}}}
            {{"type":"content_block_stop","index":0}}
            {}"#,
            end("max_tokens")
        );
        let events = events_of(&stream(&lines));
        let [_, _, _, ResponseEvent::Block { block, .. }, ResponseEvent::Finished(finished)] =
            events.as_slice()
        else {
            panic!("{}", shown(&events))
        };
        assert_eq!(finished.stop_reason.as_deref(), Some("max_tokens"));
        assert_eq!(block.field("input"), Some("{}"));
        assert_eq!(unparsed_input(block).as_deref(), Some(text));
    }
    let fine =
        pal_model::ContentBlock::parse(pal_model::SharedText::from(r#"{"type":"tool_use","input":{"a":1}}"#));
    assert_eq!(unparsed_input(&fine), None);
}

#[test]
fn compaction_arrives_in_one_delta_or_complete() {
    check(
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"compaction","content":null,"encrypted_content":null}}
        {"type":"content_block_delta","index":0,"delta":{"type":"compaction_delta","content":"Summary: \"x\"","encrypted_content":"Zm9v"}}
        {"type":"content_block_stop","index":0}
        {"type":"content_block_start","index":1,"content_block":{"type":"compaction","content":""}}
        {"type":"content_block_delta","index":1,"delta":{"type":"compaction_delta","content":null}}
        {"type":"content_block_stop","index":1}
        {"type":"content_block_start","index":2,"content_block":{"type":"compaction","content":"Whole","signature":"EqQB","tool_changes":[]}}
        {"type":"content_block_stop","index":2}"#,
        "compaction",
        r#"0 opened compaction
        0 is {"type":"compaction","content":"Summary: \"x\"","encrypted_content":"Zm9v"}
        1 opened compaction
        1 is {"type":"compaction","content":null}
        2 opened compaction
        2 is {"type":"compaction","content":"Whole","signature":"EqQB","tool_changes":[]}"#,
    );
}

#[test]
fn citations_are_collected() {
    check(
        r#"{"type":"content_block_start","index":0,"content_block":{"citations":[],"type":"text","text":""}}
        {"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{"type":"char_location","cited_text":"a"}}}
        {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"A"}}
        {"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{"type":"char_location","cited_text":"b"}}}
        {"type":"content_block_stop","index":0}
        {"type":"content_block_start","index":1,"content_block":{"type":"text","text":"","citations":null}}
        {"type":"content_block_delta","index":1,"delta":{"type":"citations_delta","citation":{"n":1}}}
        {"type":"content_block_stop","index":1}
        {"type":"content_block_start","index":2,"content_block":{"type":"text","text":"","citations":[ {"n":0} ]}}
        {"type":"content_block_delta","index":2,"delta":{"type":"citations_delta","citation":{"n":1}}}
        {"type":"content_block_stop","index":2}"#,
        "end_turn",
        r#"0 opened text
        0 said "A"
        0 is {"citations":[{"type":"char_location","cited_text":"a"},{"type":"char_location","cited_text":"b"}],"type":"text","text":"A"}
        1 opened text
        1 is {"type":"text","text":"","citations":[{"n":1}]}
        2 opened text
        2 is {"type":"text","text":"","citations":[{"n":0},{"n":1}]}"#,
    );
}

#[test]
fn unknown_blocks_keep_their_bytes() {
    check(
        r#"{"type":"weather","sunny":true}
        {"type":"content_block_start","index":0,"content_block": {"type": "hologram", "beam":[1 , 2], "b\u0065am2":"\/","big":12345678901234567890123} }
        {"type":"content_block_delta","index":0,"delta":{"type":"beam_delta","beam":3}}
        {"type":"content_block_stop","index":0}
        {"type":"content_block_start","index":1,"content_block":{"type":"later","new":1.0}}
        {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"words"}}
        {"type":"content_block_delta","index":1,"delta":{"type":"thinking_delta","thinking":"hm"}}
        {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{}"}}
        {"type":"content_block_stop","index":1}
        {"type":"content_block_start","index":2,"content_block":{"x": 1.50,"text":"","type":"text","y":{"z" : null}}}
        {"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"A","extra":1}}
        {"type":"content_block_delta","index":2,"delta":{"type":"odd_delta","text":"B"}}
        {"type":"content_block_stop","index":2}
        {"type":"content_block_start","index":3,"content_block":{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","title":"t"}]}}
        {"type":"content_block_stop","index":3}
        {"type":"content_block_start","index":4,"content_block":{}}
        {"type":"content_block_delta","index":4,"delta":{"type":"text_delta","text":"A"}}
        {"type":"content_block_stop","index":4}"#,
        "end_turn",
        r#"0 opened ?
        0 is {"type": "hologram", "beam":[1 , 2], "b\u0065am2":"\/","big":12345678901234567890123}
        1 opened ?
        1 said "words"
        1 thought "hm"
        1 put in "{}"
        1 is {"type":"later","new":1.0,"text":"words","thinking":"hm","input":{}}
        2 opened text
        2 said "A"
        2 is {"x": 1.50,"text":"A","type":"text","y":{"z" : null}}
        3 opened web_search_tool_result
        3 is {"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","title":"t"}]}
        4 opened ?
        4 said "A"
        4 is {"text":"A"}"#,
    );
}

#[test]
fn usage_and_other_members_are_merged() {
    check_whole(
        r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":5,"output_tokens":1,"cache_read_input_tokens":7},"diagnostics":{"cache_miss_reason":{"type":"messages_changed"}},"container":null,"later":{"a":1}}}
        {"type":"message_delta","delta":{"stop_reason":null},"usage":{"output_tokens":3},"context_management":{"applied_edits":[]}}
        {"type":"message_delta","delta":{"stop_reason":"refusal","stop_sequence":"X","stop_details":{"category":"bio"},"container":{"id":"c"}},"usage":{"input_tokens":null,"output_tokens":9,"cache_creation_input_tokens":2,"iterations":[{"type":"compaction","input_tokens":1,"output_tokens":2},{"type":"message","model":"m","input_tokens":5,"output_tokens":9}]},"context_management":{"applied_edits":[1]},"input_transformations":[{"type":"thinking_dropped"}]}
        {"type":"message_stop","later":1}"#,
        r#"started msg_1 m 12
        finished msg_1 m refusal 14+9 {"container":{"id":"c"},"context_management":{"applied_edits":[1]},"diagnostics":{"cache_miss_reason":{"type":"messages_changed"}},"input_transformations":[{"type":"thinking_dropped"}],"later":{"a":1},"stop_details":{"category":"bio"},"stop_sequence":"X","usage":{"cache_creation_input_tokens":2,"cache_read_input_tokens":7,"input_tokens":5,"iterations":[{"type":"compaction","input_tokens":1,"output_tokens":2},{"type":"message","model":"m","input_tokens":5,"output_tokens":9}],"output_tokens":9}}"#,
    );
    // Malformed members do not affect the counts.
    check_whole(
        r#"{"type":"message_start","message":{"id":"msg_1","usage":{"input_tokens":5,"iterations":7,"cache_creation":[]}}}
        {"type":"message_stop"}"#,
        r#"started msg_1  5
        finished msg_1  - 5+0 {"usage":{"cache_creation":[],"input_tokens":5,"iterations":7}}"#,
    );
}

#[test]
fn error_event_ends_the_stream_with_its_kind() {
    let kinds = [
        ("overloaded_error", "Overloaded", FailureKind::Overloaded),
        ("api_error", "Internal server error", FailureKind::Server),
        ("rate_limit_error", "slow down", FailureKind::RateLimited),
        ("timeout_error", "took too long", FailureKind::Timeout),
        (
            "invalid_request_error",
            "prompt is too long: 12 tokens > 10 maximum",
            FailureKind::TooLong(pal_model::ContextOverflow {
                prompt: Some(12),
                window: Some(10),
                ..pal_model::ContextOverflow::UNKNOWN
            }),
        ),
        ("later_error", "new", FailureKind::Server),
    ];
    for (name, message, kind) in kinds {
        let error = format!(
            r#"{{"type":"error","error":{{"type":"{name}","message":"{message}"}},"request_id":"req_1"}}"#
        );
        for before in ["", START] {
            let events = events_of(&stream(&format!("{before}\n{error}\n{{\"type\":\"message_stop\"}}")));
            let Some(ResponseEvent::Failed(failure)) = events.last() else { panic!("{events:?}") };
            assert_eq!((failure.kind, failure.message.as_str()), (kind, message));
            assert_eq!(
                (failure.status, failure.request_id.as_deref(), failure.code.as_deref()),
                (None, Some("req_1"), Some(name))
            );
        }
    }
}

#[test]
fn names_of_events_may_be_missing() {
    let named = stream(&format!("{START}\n{}", end("end_turn")));
    let unnamed: String =
        named.lines().filter(|line| !line.starts_with("event:")).map(|line| format!("{line}\r\n")).collect();
    assert_eq!(events_of(&unnamed), events_of(&named));
    let untyped = named.replace(r#"{"type":"message_stop"}"#, "{}").replace(r#""type":"message_delta","#, "");
    assert_eq!(events_of(&untyped), events_of(&named));
    let with_done = named.replace("event: message_stop", "data: [DONE]\n\nevent: message_stop");
    assert_eq!(events_of(&with_done), events_of(&named));
}

#[test]
fn complete_response_equals_its_stream() {
    let message = r#"{"id":"msg_1","type":"message","role":"assistant","model":"m",
      "content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"A\n"},
        {"type":"tool_use","id":"toolu_1","name":"Read","input":{"a": 1}},{"type":"tool_use","id":"toolu_2","name":"Now","input":{}},{"type":"redacted_thinking","data":"d"}],
      "stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":5,"output_tokens":9},"diagnostics":{"a":[]}}"#;
    let expected = r#"started msg_1 m 5
0 opened thinking
0 thought "hm"
0 is {"type":"thinking","thinking":"hm","signature":"s"}
1 opened text
1 said "A\n"
1 is {"type":"text","text":"A\n"}
2 opened tool_use Read
2 put in "{\"a\": 1}"
2 is {"type":"tool_use","id":"toolu_1","name":"Read","input":{"a": 1}}
3 opened tool_use Now
3 is {"type":"tool_use","id":"toolu_2","name":"Now","input":{}}
4 opened redacted_thinking
4 is {"type":"redacted_thinking","data":"d"}
finished msg_1 m tool_use 5+9 {"diagnostics":{"a":[]},"usage":{"input_tokens":5,"output_tokens":9}}
"#;
    assert_eq!(shown(&decode_response(Dialect::Messages, message.as_bytes())), expected);
    // Some gateways put everything into the first event.
    let streamed = format!(
        "data: {{\"type\":\"message_start\",\"message\":{}}}\n\ndata: {{\"type\":\"message_stop\"}}\n\n",
        message.replace('\n', " ")
    );
    assert_eq!(shown(&events_of(&streamed)), expected);
}

#[test]
fn invalid_complete_response_fails_with_its_kind() {
    use FailureKind::*;
    let table: [(&[u8], FailureKind, &str); 8] = [
        (b"", Cut, "the response is empty"),
        (b"<html><title>Sign in</title></html>", Malformed, "the response is not a message: Sign in"),
        (
            b"{\"id\":\"msg_1\",\"content\":[{\"type\":\"te",
            Malformed,
            "the response is not a message: {\"id\":\"msg_1\",\"content\":[{\"type\":\"te",
        ),
        (b"{}", Malformed, "the message has no list of blocks"),
        (b"{\"content\":[]}", Malformed, "the message has no id"),
        (b"{\"id\":\"msg_1\",\"content\":[7]}", Malformed, "a block is not an object"),
        (b"\xff", Malformed, "the response is not UTF-8"),
        (
            b"{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}",
            Overloaded,
            "Overloaded",
        ),
    ];
    for (body, kind, message) in table {
        let events = decode_response(Dialect::Messages, body);
        let Some(ResponseEvent::Failed(failure)) = events.last() else { panic!("{events:?}") };
        assert_eq!((failure.kind, failure.message.as_str()), (kind, message));
    }
}
