//! Streams with repetitions, contradictions or a missing end.

use pal_wire::{Dialect, ResponseEvent};

use super::{decode, line, stream};

const START: &str =
    r#"{"type":"message_start","message":{"id":"msg_1","model":"m","content":[],"usage":{}}}"#;
const OPEN: &str = r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#;
const GROW: &str = r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"A"}}"#;
const CLOSE: &str = r#"{"type":"content_block_stop","index":0}"#;
const DELTA: &str =
    r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}"#;
const STOP: &str = r#"{"type":"message_stop"}"#;

fn last_of(lines: &[&str]) -> String {
    last(&decode(Dialect::Messages, [stream(&lines.join("\n")).as_bytes()]))
}

fn last(events: &[ResponseEvent]) -> String {
    let ends = events
        .iter()
        .filter(|event| matches!(event, ResponseEvent::Finished(_) | ResponseEvent::Failed(_)))
        .count();
    assert_eq!(ends, 1, "{events:?}");
    events.last().map(line).unwrap_or_default()
}

#[test]
fn harmless_repetitions_are_ignored() {
    let plain =
        decode(Dialect::Messages, [stream(&[START, OPEN, GROW, CLOSE, DELTA, STOP].join("\n")).as_bytes()]);
    let orders: [&[&str]; 5] = [
        &[START, START, OPEN, GROW, CLOSE, DELTA, STOP],
        &[START, OPEN, OPEN, GROW, CLOSE, DELTA, STOP],
        &[START, OPEN, GROW, CLOSE, CLOSE, DELTA, CLOSE, STOP],
        &[START, OPEN, GROW, CLOSE, DELTA, DELTA, STOP],
        &[START, OPEN, GROW, START, CLOSE, DELTA, STOP, STOP, DELTA, START, GROW],
    ];
    for lines in orders {
        assert_eq!(decode(Dialect::Messages, [stream(&lines.join("\n")).as_bytes()]), plain, "{lines:?}");
    }
}

#[test]
fn contradictions_are_malformed() {
    let other = START.replace("msg_1", "msg_2");
    let other_block = OPEN.replace("text", "thinking");
    let thought = GROW.replace("text", "thinking");
    let input =
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{}"}}"#;
    let table: [(&[&str], &str); 26] = [
        (&[OPEN], "an event came before message_start"),
        (&[GROW], "an event came before message_start"),
        (&[CLOSE], "an event came before message_start"),
        (&[DELTA], "an event came before message_start"),
        (&[STOP], "an event came before message_start"),
        (&[START, GROW], "block 0 grew while it was not open"),
        (&[START, CLOSE], "block 0 ended before it began"),
        (&[START, OPEN, CLOSE, GROW], "block 0 grew while it was not open"),
        (&[START, OPEN, CLOSE, OPEN], "block 0 began twice"),
        (&[START, OPEN, GROW, OPEN], "block 0 began twice"),
        (&[START, OPEN, &other_block], "block 0 began twice"),
        (&[START, &other], "a second message began inside the first"),
        (&[START, OPEN, STOP], "the message ended while block 0 was open"),
        (&[START, OPEN, &thought], "a block of type text cannot grow by a delta of this type"),
        (&[START, OPEN, input], "a block of type text cannot grow by a delta of this type"),
        (&[r#"{"type":"message_start"}"#], "message_start has no message"),
        (&[r#"{"type":"message_start","message":[]}"#], "the message is not an object"),
        (&[r#"{"type":"message_start","message":{"id":""}}"#], "the message has no id"),
        (&[START, r#"{"type":"content_block_start","index":0}"#], "content_block_start has no block"),
        (
            &[START, r#"{"type":"content_block_start","content_block":{}}"#],
            "the event of a block has no index",
        ),
        (
            &[START, r#"{"type":"content_block_start","index":0,"content_block":"x"}"#],
            "a block is not an object",
        ),
        (&[START, OPEN, r#"{"type":"content_block_delta","index":0}"#], "content_block_delta has no delta"),
        (
            &[
                START,
                OPEN,
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":7}}"#,
            ],
            "a delta is not a string",
        ),
        (&[START, r#"{"type":"message_delta","usage":[]}"#], "usage is not an object"),
        (&[START, r#"{"type":"message_delta","delta":{"stop_reason":1}}"#], "stop_reason is not a string"),
        (&[START, DELTA, OPEN, DELTA, STOP], "the message ended while block 0 was open"),
    ];
    for (lines, expected) in table {
        assert_eq!(last_of(lines), format!("failed Malformed: {expected}"), "{lines:?}");
    }
}

#[test]
fn unparsable_known_events_are_malformed() {
    for (event, data) in [
        ("event: content_block_delta\n", "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{"),
        ("event: message_stop\n", "nonsense"),
        ("", "{\"type\":\"message_delta\",\"delta\":7}"),
        ("event: later\n", "{\"type\":\"content_block_delta\",\"index\":\"0\"}"),
        ("event: ping\n", "{"),
        ("", "{\"type\":\"ping\""),
        ("event: message\n", "?"),
        ("event: content_block_delta\n", "{\"type\":\"content_block_delta\",\"index\":-1,\"delta\":{}}"),
        (
            "event: content_block_delta\n",
            "{\"type\":\"content_block_delta\",\"index\":0,\"index\":0,\"delta\":{}}",
        ),
        (
            "event: content_block_delta\n",
            "{\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"\\x\"}}",
        ),
    ] {
        let body = format!("{}{}{event}data: {data}\n\n", stream(START), stream(OPEN));
        let said = last(&decode(Dialect::Messages, [body.as_bytes()]));
        assert!(said.starts_with("failed Malformed: ") && said.contains("cannot be read"), "{data}: {said}");
    }
    let later = "event: later\ndata: ?\n\ndata: {\"type\":\"later\",\"delta\":\"x\",\"index\":\"y\"}\n\n";
    let body = format!("{}{later}{}", stream(START), stream(STOP));
    assert!(last(&decode(Dialect::Messages, [body.as_bytes()])).starts_with("finished"));
}

#[test]
fn truncated_stream_fails() {
    let cut = "failed Cut: the stream ended before the response was complete";
    assert_eq!(last_of(&[]), "failed Cut: the stream ended before the response started");
    assert_eq!(last_of(&[START]), cut);
    assert_eq!(last_of(&[START, OPEN, GROW, CLOSE]), cut);
    assert_eq!(last_of(&[START, OPEN, GROW, DELTA]), cut);
    // The stop reason is known and all blocks are complete: the missing event is irrelevant.
    assert!(last_of(&[START, OPEN, GROW, CLOSE, DELTA]).starts_with("finished msg_1 m end_turn 0+1"));
    let whole = stream(&[START, OPEN, GROW, CLOSE, DELTA, STOP].join("\n"));
    let enough = whole.find("event: message_stop").unwrap_or_default();
    for end in 0..whole.len() {
        let said = last(&decode(Dialect::Messages, [&whole.as_bytes()[..end]]));
        assert_eq!(said.starts_with("finished"), end >= enough, "{end}: {said}");
        assert!(end >= enough || said.starts_with("failed Cut: "), "{end}: {said}");
    }
    let inside = last(&decode(Dialect::Messages, [&whole.as_bytes()[..20]]));
    assert_eq!(inside, "failed Cut: the stream ended before the response started (inside an event)");
}

#[test]
fn large_indexes_do_not_allocate() {
    let far = |line: &str| line.replace("\"index\":0", "\"index\":18446744073709551615");
    let lines = [START, &far(OPEN), OPEN, &far(GROW), GROW, CLOSE, &far(CLOSE), DELTA, STOP];
    assert!(last_of(&lines).starts_with("finished"), "{}", last_of(&lines));
}
