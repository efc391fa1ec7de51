//! Responses of the Responses dialect.

use pal_wire::{Dialect, FailureKind, ResponseDecoder, ResponseEvent, decode_response};

use super::{check, check_whole, decoded, joined, stream};

const REASONING: &str = r#"{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"First."},{"type":"summary_text","text":"Then."}],"encrypted_content":"gAAA"}"#;
const MESSAGE: &str = r#"{"id":"msg_1","type":"message","status":"completed","role":"assistant","phase":"commentary","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"I \"look\"."},{"type":"output_text","annotations":[],"text":" Now 🙂"}]}"#;
const CALL: &str = r#"{"id":"fc_1","type":"function_call","status":"completed","arguments":"{\"path\":\"a\"}","call_id":"call_1","name":"Read"}"#;
const USAGE: &str = r#"{"input_tokens":2000,"input_tokens_details":{"cached_tokens":1500,"cache_write_tokens":400},"output_tokens":60,"output_tokens_details":{"reasoning_tokens":40},"total_tokens":2060}"#;

fn response(status: &str, output: &str, more: &str) -> String {
    format!(
        r#"{{"id":"resp_1","object":"response","created_at":1,"status":"{status}","model":"gpt-6-sol","instructions":"be good","tools":[],"output":[{output}]{more}}}"#
    )
}

pub(super) fn event(kind: &str, members: &str) -> String {
    format!(r#"{{"type":"response.{kind}","sequence_number":1{members}}}"#)
}

fn delta(kind: &str, index: usize, words: &str) -> String {
    let words = serde_json::to_string(words).unwrap();
    event(kind, &format!(r#","item_id":"x","output_index":{index},"content_index":0,"delta":{words}"#))
}

fn added(index: usize, item: &str) -> String {
    event("output_item.added", &format!(r#","output_index":{index},"item":{item}"#))
}

fn done(index: usize, item: &str) -> String {
    event("output_item.done", &format!(r#","output_index":{index},"item":{item}"#))
}

pub(super) fn created() -> String {
    event("created", &format!(r#","response":{}"#, response("in_progress", "", r#","usage":null"#)))
}

pub(super) fn completed(output: &str) -> String {
    let whole = response("completed", output, &format!(r#","usage":{USAGE}"#));
    event("completed", &format!(r#","response":{whole}"#))
}

/// A recorded turn with every kind of item.
fn turn() -> Vec<String> {
    vec![
        created(),
        event("in_progress", &format!(r#","response":{}"#, response("in_progress", "", ""))),
        added(0, r#"{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"draft"}"#),
        event(
            "reasoning_summary_part.added",
            r#","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}"#,
        ),
        delta("reasoning_summary_text.delta", 0, "Fir"),
        delta("reasoning_summary_text.delta", 0, "st."),
        event(
            "reasoning_summary_part.added",
            r#","output_index":0,"summary_index":1,"part":{"type":"summary_text","text":""}"#,
        ),
        delta("reasoning_summary_text.delta", 0, "Then."),
        done(0, REASONING),
        added(1, r#"{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}"#),
        event(
            "content_part.added",
            r#","output_index":1,"content_index":0,"part":{"type":"output_text","annotations":[],"text":""}"#,
        ),
        delta("output_text.delta", 1, "I \"lo"),
        delta("output_text.delta", 1, "ok\"."),
        event("output_text.done", r#","output_index":1,"content_index":0,"text":"I \"look\".""#),
        delta("output_text.delta", 1, " Now 🙂"),
        event("something.new", r#","output_index":1,"delta":7"#),
        done(1, MESSAGE),
        added(
            2,
            r#"{"id":"fc_1","type":"function_call","status":"in_progress","arguments":"","call_id":"call_1","name":"Read"}"#,
        ),
        delta("function_call_arguments.delta", 2, "{\"path\""),
        delta("function_call_arguments.delta", 2, ":\"a\"}"),
        event("function_call_arguments.done", r#","output_index":2,"arguments":"{\"path\":\"a\"}""#),
        done(2, CALL),
        completed(&format!("{REASONING},{MESSAGE},{CALL}")),
    ]
}

pub(super) fn texts(frames: &[String]) -> Vec<&str> {
    frames.iter().map(String::as_str).collect()
}

#[test]
fn turn_becomes_blocks_with_raw_items() {
    let blocks = [
        format!(r#"0 = {{"type":"reasoning","item":{REASONING}}}"#),
        format!(r#"1 = {{"type":"text","text":"I \"look\". Now 🙂","item":{MESSAGE}}}"#),
        format!(
            r#"2 = {{"type":"tool_use","id":"call_1","name":"Read","input":{{"path":"a"}},"item":{CALL}}}"#
        ),
    ];
    check(
        Dialect::Responses,
        &texts(&turn()),
        &[
            "started resp_1 gpt-6-sol",
            "0 reasoning",
            "0 ~ Fir",
            "0 ~ st.",
            "0 ~ \n\n",
            "0 ~ Then.",
            &blocks[0],
            "1 text",
            "1 + I \"lo",
            "1 + ok\".",
            "1 +  Now 🙂",
            &blocks[1],
            "2 tool_use Read",
            "2 < {\"path\"",
            "2 < :\"a\"}",
            &blocks[2],
            "resp_1 tool_use in 100 write 400 read 1500 out 60",
        ],
    );
}

#[test]
fn complete_response_equals_its_stream() {
    let whole = response(
        "completed",
        &format!("{REASONING},{MESSAGE},{CALL}"),
        &format!(r#","usage":{USAGE},"error":null"#),
    );
    let streamed = decoded(Dialect::Responses, &stream(&texts(&turn())));
    assert_eq!(joined(decode_response(Dialect::Responses, whole.as_bytes())), joined(streamed));
    // A response with line breaks is the same except for spaces inside items.
    let pretty = serde_json::to_string_pretty(&serde_json::from_str::<serde_json::Value>(&whole).unwrap());
    for event in decode_response(Dialect::Responses, pretty.unwrap().as_bytes()) {
        if let ResponseEvent::Block { block, .. } = event {
            assert!(!block.raw().contains('\n'));
        }
    }
}

#[test]
fn items_of_the_last_event_alone_are_emitted() {
    let expected = [
        "started resp_1 gpt-6-sol",
        "0 text",
        "0 + I \"look\". Now 🙂",
        &format!(r#"0 = {{"type":"text","text":"I \"look\". Now 🙂","item":{MESSAGE}}}"#),
        "resp_1 end_turn in 100 write 400 read 1500 out 60",
    ];
    check(Dialect::Responses, &[&created(), &completed(MESSAGE)], &expected);
    check(Dialect::Responses, &[&completed(MESSAGE)], &expected);
    check(Dialect::Responses, &[&created(), &done(0, MESSAGE), &done(0, MESSAGE), &completed("")], &expected);
}

#[test]
fn incomplete_responses_have_a_stop_reason() {
    let half = r#"{"id":"fc_1","type":"function_call","status":"incomplete","arguments":"{\"pa","call_id":"call_1","name":"Read"}"#;
    let incomplete = |output: &str, reason: &str| {
        response("incomplete", output, &format!(r#","incomplete_details":{{"reason":"{reason}"}}"#))
    };
    let full = incomplete(half, "max_output_tokens");
    check(
        Dialect::Responses,
        &[&created(), &done(0, half), &event("incomplete", &format!(r#","response":{full}"#))],
        &[
            "started resp_1 gpt-6-sol",
            "0 tool_use Read",
            "0 < {\"pa",
            &format!(
                r#"0 = {{"type":"tool_use","id":"call_1","name":"Read","input":{{}},"unparsed_input":"{{\"pa","item":{half}}}"#
            ),
            "resp_1 max_tokens in 0 write 0 read 0 out 0",
        ],
    );
    // Text whose item never arrived is kept.
    let filtered = incomplete("", "content_filter");
    check(
        Dialect::Responses,
        &[
            &created(),
            &delta("output_text.delta", 0, "Well,"),
            &event("incomplete", &format!(r#","response":{filtered}"#)),
        ],
        &[
            "started resp_1 gpt-6-sol",
            "0 text",
            "0 + Well,",
            r#"0 = {"type":"text","text":"Well,"}"#,
            "resp_1 refusal in 0 write 0 read 0 out 0",
        ],
    );
    let refusal = r#"{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"refusal","refusal":"No."}]}"#;
    check_whole(
        Dialect::Responses,
        &response("completed", refusal, ""),
        &[
            "started resp_1 gpt-6-sol",
            "0 text",
            "0 + No.",
            &format!(r#"0 = {{"type":"text","text":"No.","item":{refusal}}}"#),
            "resp_1 refusal in 0 write 0 read 0 out 0",
        ],
    );
}

#[test]
fn items_of_other_types_are_kept() {
    let item = r#"{"id":"cmp_1","type":"compaction","encrypted_content":"gBBB"}"#;
    let search = r#"{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search"}}"#;
    check_whole(
        Dialect::Responses,
        &response("completed", &format!("{item},{search}"), ""),
        &[
            "started resp_1 gpt-6-sol",
            "0 compaction",
            &format!(r#"0 = {{"type":"compaction","item":{item}}}"#),
            "1 unknown",
            &format!(r#"1 = {{"type":"web_search_call","item":{search}}}"#),
            "resp_1 end_turn in 0 write 0 read 0 out 0",
        ],
    );
}

/// Returns the failure kind of a stream.
#[track_caller]
fn failure(frames: &[&str]) -> FailureKind {
    match decoded(Dialect::Responses, &stream(frames)).pop() {
        Some(ResponseEvent::Failed(failure)) => failure.kind,
        other => panic!("{frames:?}: {other:?}"),
    }
}

#[test]
fn failures_keep_their_kind() {
    let overflow = r#"{"code":"context_length_exceeded","message":"Your input exceeds the context window of this model."}"#;
    let too_long = FailureKind::TooLong(pal_model::ContextOverflow::UNKNOWN);
    let failed = response("failed", "", &format!(r#","error":{overflow}"#));
    assert_eq!(failure(&[&created(), &event("failed", &format!(r#","response":{failed}"#))]), too_long);
    let error = r#"{"type":"error","sequence_number":2,"code":"context_length_exceeded","message":"Your input exceeds …","param":"input"}"#;
    assert_eq!(failure(&[error]), too_long);
    assert_eq!(failure(&[&format!(r#"{{"error":{overflow}}}"#)]), too_long);
    let limited = r#"{"type":"error","code":"rate_limit_exceeded","message":"slow down","param":null}"#;
    assert_eq!(failure(&[&created(), limited]), FailureKind::RateLimited);
    assert!(matches!(decode_response(Dialect::Responses, failed.as_bytes()).as_slice(),
        [ResponseEvent::Failed(failure)] if failure.kind == too_long));
    // Incomplete streams are cut, contradictory ones are malformed.
    assert_eq!(failure(&[]), FailureKind::Cut);
    assert_eq!(failure(&[&created()]), FailureKind::Cut);
    assert_eq!(failure(&[&created(), &added(0, MESSAGE), "[DONE]"]), FailureKind::Cut);
    assert_eq!(
        failure(&[&created(), &done(0, MESSAGE), &delta("output_text.delta", 0, "x")]),
        FailureKind::Malformed
    );
    assert_eq!(failure(&[&delta("output_text.delta", 0, "x")]), FailureKind::Malformed);
    assert_eq!(failure(&["{\"type\":"]), FailureKind::Malformed);
    assert_eq!(failure(&[&created(), &added(0, "7")]), FailureKind::Malformed);
    let queued = response("queued", "", "");
    assert!(matches!(decode_response(Dialect::Responses, queued.as_bytes()).last(),
        Some(ResponseEvent::Failed(failure)) if failure.kind == FailureKind::Cut));
}

#[test]
fn any_split_gives_the_same_events() {
    let bytes = stream(&texts(&turn()));
    let whole = decoded(Dialect::Responses, &bytes);
    for size in [1, 2, 3, 7, 64, 1000] {
        let mut decoder = ResponseDecoder::new(Dialect::Responses);
        let mut events = Vec::new();
        for piece in bytes.chunks(size) {
            decoder.push(piece, &mut events);
        }
        decoder.finish(&mut events);
        assert_eq!(events, whole, "{size}");
    }
}
