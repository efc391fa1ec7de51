//! Responses of Chat Completions from OpenAI and local servers.

use pal_wire::{Dialect, FailureKind, ResponseDecoder, ResponseEvent, decode_response};

use super::{check, check_whole, decoded, joined, stream};

fn chunk(choice: &str) -> String {
    format!(
        r#"{{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{{"index":0,{choice}}}],"usage":null}}"#
    )
}

fn delta(members: &str) -> String {
    chunk(&format!(r#""delta":{{{members}}},"finish_reason":null"#))
}

fn finish(reason: &str) -> String {
    chunk(&format!(r#""delta":{{}},"finish_reason":"{reason}""#))
}

const USAGE: &str = r#"{"id":"chatcmpl-1","object":"chat.completion.chunk","model":"m","choices":[],"usage":{"prompt_tokens":30,"completion_tokens":5,"total_tokens":35,"prompt_tokens_details":{"cached_tokens":20}}}"#;
const STARTED: &str = "started chatcmpl-1 m";
const STOPPED: &str = "chatcmpl-1 end_turn in 0 write 0 read 0 out 0";
const CALLED: &str = "chatcmpl-1 tool_use in 0 write 0 read 0 out 0";

/// A turn with everything in it.
fn turn() -> Vec<String> {
    vec![
        delta(r#""role":"assistant","content":"","refusal":null"#),
        delta(r#""reasoning_content":"hm""#),
        delta(r#""content":"I ""#),
        // A character may be split.
        delta(r#""content":"look \ud83d""#),
        delta(r#""content":"\ude42""#),
        delta(
            r#""tool_calls":[{"index":0,"id":"call_a","type":"function","function":{"name":"Read","arguments":""}}]"#,
        ),
        delta(r#""tool_calls":[{"index":0,"function":{"arguments":"{\"a\""}}]"#),
        delta(
            r#""tool_calls":[{"index":1,"id":"call_b","type":"function","function":{"name":"Bash","arguments":"{}"}}]"#,
        ),
        delta(r#""tool_calls":[{"index":0,"function":{"arguments":":1}"}}]"#),
        finish("tool_calls"),
        USAGE.to_owned(),
        String::from("[DONE]"),
    ]
}

fn texts(frames: &[String]) -> Vec<&str> {
    frames.iter().map(String::as_str).collect()
}

#[test]
fn text_reasoning_and_calls_are_decoded() {
    check(
        Dialect::Chat,
        &texts(&turn()),
        &[
            STARTED,
            "0 reasoning",
            "0 ~ hm",
            r#"0 = {"type":"reasoning","text":"hm"}"#,
            "1 text",
            "1 + I ",
            "1 + look \u{fffd}",
            "1 + \u{fffd}",
            "2 tool_use Read",
            "2 < {\"a\"",
            "3 tool_use Bash",
            "3 < {}",
            "2 < :1}",
            r#"1 = {"type":"text","text":"I look \ud83d\ude42"}"#,
            r#"2 = {"type":"tool_use","id":"call_a","name":"Read","input":{"a":1}}"#,
            r#"3 = {"type":"tool_use","id":"call_b","name":"Bash","input":{}}"#,
            "chatcmpl-1 tool_use in 10 write 0 read 20 out 5",
        ],
    );
}

#[test]
fn calls_are_matched_by_index_id_or_position() {
    let call = |piece: &str| delta(&format!(r#""tool_calls":[{piece}]"#));
    let two = [
        STARTED,
        "0 tool_use A",
        "0 < {\"x\":1}",
        "1 tool_use B",
        "1 < {}",
        r#"0 = {"type":"tool_use","id":"a","name":"A","input":{"x":1}}"#,
        r#"1 = {"type":"tool_use","id":"b","name":"B","input":{}}"#,
        CALLED,
    ];
    let first = r#""id":"a","function":{"name":"A","arguments":"{\"x\":1}"}"#;
    let second = r#""id":"b","function":{"name":"B","arguments":"{}"}"#;
    // One index and a new id, no index at all, all in one chunk, and `stop` where calls were made.
    for frames in [
        vec![
            call(&format!(r#"{{"index":0,{first}}}"#)),
            call(&format!(r#"{{"index":0,{second}}}"#)),
            finish("stop"),
        ],
        vec![call(&format!("{{{first}}}")), call(&format!("{{{second}}}")), finish("tool_calls")],
        vec![call(&format!(r#"{{"index":0,{first}}},{{"index":1,{second}}}"#)), finish("function_call")],
        // Arguments as an object.
        vec![
            call(r#"{"index":0,"id":"a","function":{"name":"A","arguments":{"x":1}}}"#),
            call(&format!(r#"{{"index":1,{second}}}"#)),
            finish("stop"),
        ],
    ] {
        check(Dialect::Chat, &texts(&frames), &two);
    }
    // Deltas without index, id and name belong to the last call; missing ids are generated.
    check(
        Dialect::Chat,
        &[
            &call(r#"{"function":{"name":"A","arguments":"{\"x\""}}"#),
            &call(r#"{"id":null,"function":{"arguments":":1}"}}"#),
            &call(r#"{"function":{"name":"B","arguments":"nonsense"}}"#),
            &finish("stop"),
        ],
        &[
            STARTED,
            "0 tool_use A",
            "0 < {\"x\"",
            "0 < :1}",
            "1 tool_use B",
            "1 < nonsense",
            r#"0 = {"type":"tool_use","id":"call_chatcmpl-1_0","name":"A","input":{"x":1}}"#,
            r#"1 = {"type":"tool_use","id":"call_chatcmpl-1_1","name":"B","input":{},"unparsed_input":"nonsense"}"#,
            CALLED,
        ],
    );
    // Id and name repeated in every delta.
    check(
        Dialect::Chat,
        &[
            &call(r#"{"index":0,"id":"a","function":{"name":"A","arguments":"{\"x\":"}}"#),
            &call(r#"{"index":0,"id":"a","function":{"name":"A","arguments":"1}"}}"#),
            &finish("tool_calls"),
        ],
        &[
            STARTED,
            "0 tool_use A",
            "0 < {\"x\":",
            "0 < 1}",
            r#"0 = {"type":"tool_use","id":"a","name":"A","input":{"x":1}}"#,
            CALLED,
        ],
    );
}

#[test]
fn every_form_of_stream_end_is_accepted() {
    let words = delta(r#""content":"a""#);
    let said = [STARTED, "0 text", "0 + a", r#"0 = {"type":"text","text":"a"}"#];
    let ended = |last: &'static str| [&said[..], &[last]].concat();
    check(Dialect::Chat, &[&words, &finish("stop"), "[DONE]"], &ended(STOPPED));
    check(Dialect::Chat, &[&words, &finish("stop")], &ended(STOPPED));
    check(Dialect::Chat, &[&words, "[DONE]"], &ended(STOPPED));
    check(
        Dialect::Chat,
        &[&words, &finish("length")],
        &ended("chatcmpl-1 max_tokens in 0 write 0 read 0 out 0"),
    );
    check(
        Dialect::Chat,
        &[&words, &finish("content_filter")],
        &ended("chatcmpl-1 refusal in 0 write 0 read 0 out 0"),
    );
    check(
        Dialect::Chat,
        &[&delta(r#""refusal":"a""#), &finish("stop")],
        &ended("chatcmpl-1 refusal in 0 write 0 read 0 out 0"),
    );
    check(
        Dialect::Chat,
        &[&words, &finish("stop"), USAGE, "{\"late\":"],
        &ended("chatcmpl-1 end_turn in 10 write 0 read 20 out 5"),
    );
    // A chunk about the prompt before the response starts.
    let filter = r#"{"choices":[],"id":"","model":"","prompt_filter_results":[]}"#;
    check(Dialect::Chat, &[filter, &words, &finish("stop")], &ended(STOPPED));
}

#[track_caller]
fn failure(frames: &[&str]) -> FailureKind {
    match decoded(Dialect::Chat, &stream(frames)).pop() {
        Some(ResponseEvent::Failed(failure)) => failure.kind,
        other => panic!("{frames:?}: {other:?}"),
    }
}

#[test]
fn failures_keep_their_kind() {
    let words = delta(r#""content":"a""#);
    assert_eq!(failure(&[]), FailureKind::Cut);
    assert_eq!(failure(&[&words]), FailureKind::Cut);
    assert_eq!(failure(&["[DONE]"]), FailureKind::Cut);
    assert_eq!(failure(&[&words, "{"]), FailureKind::Malformed);
    assert_eq!(failure(&[&delta(r#""content":7"#)]), FailureKind::Malformed);
    let context = r#"{"error":{"code":400,"message":"request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":8192}}"#;
    let too_long = FailureKind::TooLong(pal_model::ContextOverflow {
        prompt: Some(9000),
        window: Some(8192),
        ..pal_model::ContextOverflow::UNKNOWN
    });
    assert_eq!(failure(&[context]), too_long);
    assert_eq!(failure(&[&words, context]), too_long);
    assert_eq!(
        failure(&[r#"{"object":"error","message":"boom","type":"InternalServerError","code":500}"#]),
        FailureKind::Server
    );
    assert!(matches!(decode_response(Dialect::Chat, context.as_bytes()).as_slice(),
        [ResponseEvent::Failed(failure)] if failure.kind == too_long));
    assert!(matches!(decode_response(Dialect::Chat, br#"{"id":"x","choices":[]}"#).as_slice(),
        [ResponseEvent::Failed(failure)] if failure.kind == FailureKind::Malformed));
}

#[test]
fn complete_response_equals_its_stream() {
    let whole = r#"{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"I look \ud83d\ude42","reasoning_content":"hm","refusal":null,"tool_calls":[{"id":"call_a","type":"function","function":{"name":"Read","arguments":"{\"a\":1}"}},{"id":"call_b","type":"function","function":{"name":"Bash","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":30,"completion_tokens":5,"total_tokens":35,"prompt_tokens_details":{"cached_tokens":20}}}"#;
    let mut frames = turn();
    // Halves of a character are shown separately, so complete and streamed deltas would differ.
    frames.splice(3..5, [delta(r#""content":"look \ud83d\ude42""#)]);
    let streamed = joined(decoded(Dialect::Chat, &stream(&texts(&frames))));
    assert_eq!(joined(decode_response(Dialect::Chat, whole.as_bytes())), streamed);
    check_whole(
        Dialect::Chat,
        r#"{"id":"c","model":"m","choices":[{"message":{"content":null},"finish_reason":"stop"}]}"#,
        &["started c m", "c end_turn in 0 write 0 read 0 out 0"],
    );
}

#[test]
fn any_split_gives_the_same_events() {
    let bytes = stream(&texts(&turn()));
    let whole = decoded(Dialect::Chat, &bytes);
    for size in [1, 2, 3, 7, 64, 1000] {
        let mut decoder = ResponseDecoder::new(Dialect::Chat);
        let mut events = Vec::new();
        for piece in bytes.chunks(size) {
            decoder.push(piece, &mut events);
        }
        decoder.finish(&mut events);
        assert_eq!(events, whole, "{size}");
    }
}
