//! Each kind of fault has its documented effect and no other.

use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::ReplyChunk;

const EVENTS: [&str; 7] = [
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\n\n",
    "event: ping\ndata: {\"type\":\"ping\"}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"漢字🙂\"}}\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
    "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":5,\"cache_creation\":{\"ephemeral_5m_input_tokens\":3}}}\n\n",
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
];
const WHOLE: &str = r#"{"id":"m","type":"message","content":[{"type":"text","text":"hi"}],"usage":{"input_tokens":9,"output_tokens":5}}"#;

fn stream() -> HttpReply {
    let chunk = |(index, event): (u64, &&'static str)| ReplyChunk {
        at: Duration::from_millis(100 * index),
        bytes: Bytes::from_static(event.as_bytes()),
    };
    HttpReply {
        status: 200,
        headers: vec![
            ("content-type", "text/event-stream; charset=utf-8".into()),
            ("request-id", "req_1".into()),
        ],
        chunks: (0..).zip(&EVENTS).map(chunk).collect(),
        ending: ReplyEnding::Whole,
        exchange: None,
    }
}

fn whole() -> HttpReply {
    let chunks = vec![ReplyChunk { at: Duration::from_secs(1), bytes: Bytes::from_static(WHOLE.as_bytes()) }];
    HttpReply {
        status: 200,
        headers: vec![("content-type", "application/json".into())],
        chunks,
        ending: ReplyEnding::Whole,
        exchange: None,
    }
}

fn faults(spec: &str) -> FaultPlan {
    FaultPlan::parse(spec).unwrap().with_seed(7)
}

fn spoiled(spec: &str) -> HttpReply {
    faults(spec).apply(1, true, stream())
}

fn spoiled_whole(spec: &str) -> HttpReply {
    faults(spec).apply(1, false, whole())
}

fn text(reply: &HttpReply) -> String {
    String::from_utf8(reply.body()).unwrap()
}

fn header<'a>(reply: &'a HttpReply, name: &str) -> Option<&'a str> {
    reply.headers.iter().find(|(key, _)| *key == name).map(|(_, value)| value.as_str())
}

#[test]
fn statuses_have_the_provider_format() {
    let cases = [
        ("400", "invalid_request_error"),
        ("401", "authentication_error"),
        ("402", "billing_error"),
        ("403", "permission_error"),
        ("404", "not_found_error"),
        ("409", "conflict_error"),
        ("413", "request_too_large"),
        ("429", "rate_limit_error"),
        ("500", "api_error"),
        ("504", "timeout_error"),
        ("529", "overloaded_error"),
    ];
    for (spec, kind) in cases {
        let reply = faults(spec).replacement_reply(1, Dialect::Messages).unwrap();
        let body: Value = serde_json::from_slice(&reply.body()).unwrap();
        assert_eq!(reply.status.to_string(), spec);
        assert_eq!((&body["type"], &body["error"]["type"]), (&"error".into(), &kind.into()));
        assert_eq!(body["request_id"].as_str(), header(&reply, "request-id"));
        let other = faults(spec).replacement_reply(1, Dialect::Chat).unwrap();
        let body: Value = serde_json::from_slice(&other.body()).unwrap();
        assert!(body["error"]["message"].is_string() && body["error"].get("code").is_some());
        assert_eq!(
            faults(spec).apply(1, true, stream()).body(),
            stream().body(),
            "it answers before, not after"
        );
    }
}

#[test]
fn retry_headers_follow_the_plan() {
    let cases = [
        ("429", Some("1"), None, None),
        ("529=2s", Some("2"), None, None),
        ("429=1500ms", Some("2"), Some("1500"), None),
        ("429=none", None, None, None),
        ("500", None, None, None),
        ("500=3s+no-retry", Some("3"), None, Some("false")),
        ("400=retry", None, None, Some("true")),
        ("spend-limit", None, None, None),
    ];
    for (spec, after, milliseconds, should) in cases {
        let reply = faults(spec).replacement_reply(1, Dialect::Messages).unwrap();
        let said = ["retry-after", "retry-after-ms", "x-should-retry"].map(|name| header(&reply, name));
        assert_eq!(said, [after, milliseconds, should], "{spec}");
    }
    let limit = faults("spend-limit").replacement_reply(1, Dialect::Messages).unwrap();
    assert!(text(&limit).contains("enforced_spend_limit_reached"));
}

#[test]
fn proxy_statuses_return_a_page() {
    for status in ["502", "503"] {
        let reply = faults(status).replacement_reply(1, Dialect::Messages).unwrap();
        assert_eq!(header(&reply, "content-type"), Some("text/html"));
        assert!(text(&reply).starts_with("<html>"));
    }
}

#[test]
fn a_prompt_that_is_too_long_names_both_numbers() {
    let reply = faults("too-long=210000/200000").replacement_reply(1, Dialect::Messages).unwrap();
    assert_eq!(reply.status, 400);
    assert!(text(&reply).contains("prompt is too long: 210000 tokens > 200000 maximum"));
    for dialect in [Dialect::Responses, Dialect::Chat] {
        let reply = faults("too-long").replacement_reply(1, dialect).unwrap();
        assert!(text(&reply).contains("context_length_exceeded"));
    }
}

#[test]
fn reset_sends_no_reply() {
    let reply = faults("reset").replacement_reply(1, Dialect::Messages).unwrap();
    assert_eq!((reply.status, reply.chunks.len(), reply.ending), (0, 0, ReplyEnding::Cut));
}

#[test]
fn cut_ends_at_its_fault_point() {
    let cases = [
        ("cut=0", 0),
        ("cut=headers", 0),
        ("cut=350", 350),
        ("cut=before", EVENTS[..3].concat().len()),
        ("cut=after", EVENTS[..4].concat().len()),
        ("cut=end", EVENTS[..6].concat().len()),
        ("cut=999999", EVENTS.concat().len()),
    ];
    for (spec, length) in cases {
        let reply = spoiled(spec);
        assert_eq!(reply.body(), EVENTS.concat().as_bytes()[..length], "{spec}");
        assert_eq!(reply.ending, ReplyEnding::Cut);
        let reply = spoiled(&spec.replace("cut", "truncate"));
        assert_eq!((reply.body().len(), reply.ending), (length, ReplyEnding::Whole));
    }
    for seed in 0..200 {
        let reply = faults("cut").with_seed(seed).apply(1, true, stream());
        assert!(reply.body().len() < EVENTS.concat().len(), "something is always missing");
    }
    let reply = spoiled_whole("truncate");
    assert!(reply.body().len() < WHOLE.len() && WHOLE.as_bytes().starts_with(&reply.body()));
}

#[test]
fn silence_is_a_gap_or_the_end() {
    let reply = spoiled("silence");
    assert_eq!((reply.body().len(), reply.ending), (0, ReplyEnding::Silent));
    let reply = spoiled("silence=after");
    assert_eq!((reply.body(), reply.ending), (EVENTS[..4].concat().into_bytes(), ReplyEnding::Silent));
    let reply = spoiled("silence=5s+after");
    assert_eq!((text(&reply), reply.ending), (EVENTS.concat(), ReplyEnding::Whole));
    let times: Vec<u128> = reply.chunks.iter().map(|chunk| chunk.at.as_millis()).collect();
    assert_eq!(times, [0, 100, 200, 300, 5400, 5500, 5600]);
    let reply = spoiled("silence=1s+10");
    assert_eq!((reply.chunks[0].bytes.len(), reply.chunks[1].at), (10, Duration::from_secs(1)));
}

#[test]
fn slow_spaces_chunks_by_the_gap() {
    let reply = spoiled("slow=150ms+16");
    assert_eq!(text(&reply), EVENTS.concat());
    assert!(reply.chunks.iter().all(|chunk| chunk.bytes.len() <= 16));
    let gaps = reply.chunks.windows(2).map(|pair| pair[1].at - pair[0].at);
    assert!(gaps.min().unwrap() >= Duration::from_millis(150));
}

#[test]
fn a_malformed_event_is_broken_json_between_whole_events() {
    for seed in 0..50 {
        let reply = faults("malformed").with_seed(seed).apply(1, true, stream());
        let body = text(&reply);
        let broken: Vec<&str> = body
            .split("\n\n")
            .filter_map(|event| event.split_once("data: "))
            .map(|(_, data)| data)
            .filter(|data| serde_json::from_str::<Value>(data).is_err())
            .collect();
        assert_eq!(broken.len(), 1, "{body}");
        assert_eq!(reply.ending, ReplyEnding::Whole);
    }
    assert!(text(&spoiled("malformed=after")).starts_with(&EVENTS[..4].concat()));
    assert!(text(&spoiled("malformed=headers")).ends_with(&EVENTS[1..].concat()));
    assert!(serde_json::from_slice::<Value>(&spoiled_whole("malformed").body()).is_err());
}

#[test]
fn an_error_event_ends_the_stream() {
    let overloaded = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    assert_eq!(text(&spoiled("error")), EVENTS[..4].concat() + overloaded);
    assert_eq!(text(&spoiled("error=before")), EVENTS[..3].concat() + overloaded);
    assert_eq!(text(&spoiled("error=headers")), overloaded);
    assert!(text(&spoiled("error=api+end")).contains("api_error"));
    let reply = spoiled_whole("error");
    assert_eq!(reply.status, 529);
}

#[test]
fn wrong_usage_is_wrong_everywhere_and_nothing_else_changes() {
    let cases = [("usage", "0"), ("usage=null", "null"), ("usage=huge", "9007199254740991")];
    for (spec, count) in cases {
        let body = text(&spoiled(spec));
        let wanted = EVENTS
            .concat()
            .replace("\"input_tokens\":9", &format!("\"input_tokens\":{count}"))
            .replace("\"output_tokens\":1", &format!("\"output_tokens\":{count}"))
            .replace("\"output_tokens\":5", &format!("\"output_tokens\":{count}"))
            .replace("_input_tokens\":3", &format!("_input_tokens\":{count}"));
        assert_eq!(body, wanted);
        assert!(text(&spoiled_whole(spec)).contains(&format!("\"output_tokens\":{count}")));
    }
    assert!(!text(&spoiled("usage=missing")).contains("usage"));
    assert!(!text(&spoiled_whole("usage=missing")).contains("usage"));
}

#[test]
fn duplicate_repeats_an_event() {
    let named = text(&spoiled("duplicate=message_stop"));
    assert_eq!(named, EVENTS.concat() + EVENTS[6]);
    for seed in 0..50 {
        let reply = faults("duplicate").with_seed(seed).apply(1, true, stream());
        let twice = reply.chunks.windows(2).filter(|pair| pair[0].bytes == pair[1].bytes).count();
        assert_eq!((reply.chunks.len(), twice), (EVENTS.len() + 1, 1));
        assert_eq!(text(&reply).matches("text_delta").count(), 1, "content is not said twice");
    }
}

#[test]
fn unknown_events_are_inserted_between_known_ones() {
    for seed in 0..50 {
        let reply = faults("unknown").with_seed(seed).apply(1, true, stream());
        let known: String = reply
            .chunks
            .iter()
            .map(|chunk| std::str::from_utf8(&chunk.bytes).unwrap())
            .filter(|event| EVENTS.contains(event))
            .collect();
        assert_eq!((known, reply.chunks.len()), (EVENTS.concat(), EVENTS.len() + 3));
        let body = text(&reply);
        let unknown = body.find("novelty_delta").unwrap();
        let (start, stop) = (body.find(EVENTS[2]).unwrap(), body.find(EVENTS[4]).unwrap());
        assert!(start < unknown && unknown < stop, "an unknown delta belongs to an open block");
        assert!(body.starts_with(EVENTS[0]) && body.ends_with(EVENTS[6]));
    }
    let body: Value = serde_json::from_slice(&spoiled_whole("unknown").body()).unwrap();
    assert_eq!((&body["id"], body["novelty"].is_object()), (&"m".into(), true));
}

#[test]
fn content_type_is_replaced() {
    assert_eq!(header(&spoiled("content-type"), "content-type"), Some("text/html; charset=utf-8"));
    let reply = spoiled("content-type=text/plain");
    assert_eq!(reply.headers.iter().filter(|(name, _)| *name == "content-type").count(), 1);
    assert_eq!(header(&reply, "content-type"), Some("text/plain"));
    assert_eq!(text(&reply), EVENTS.concat());
}

#[test]
fn crlf_ends_lines_with_two_characters() {
    assert_eq!(text(&spoiled("crlf")), EVENTS.concat().replace('\n', "\r\n"));
    let cut = EVENTS[..3].concat().replace('\n', "\r\n");
    assert_eq!(text(&spoiled("cut=before,crlf")), cut, "places are found behind such lines, too");
    assert_eq!(text(&spoiled_whole("crlf")), WHOLE);
}

#[test]
fn faults_apply_to_their_request_numbers() {
    let met = |spec: &str| -> Vec<u64> {
        let faults = faults(spec);
        (1..=10).filter(|number| faults.replacement_reply(*number, Dialect::Messages).is_some()).collect()
    };
    assert_eq!(met("429@2"), [2]);
    assert_eq!(met("529@1-3"), [1, 2, 3]);
    assert_eq!(met("529@8-"), [8, 9, 10]);
    assert_eq!(met(" 529@1-2+7 , 500@9 "), [1, 2, 7, 9]);
    assert_eq!(met("529:0"), [0u64; 0]);
    assert_eq!(met("529").len(), 10);
    assert_eq!(met(""), [0u64; 0]);
    let first = faults("500@1,529@1").replacement_reply(1, Dialect::Messages).unwrap();
    assert_eq!(first.status, 500, "the first of the plan wins");
    let half = faults("529:0.5");
    let times =
        (1..=1000).filter(|number| half.replacement_reply(*number, Dialect::Messages).is_some()).count();
    assert!((440..560).contains(&times), "{times}");
    assert_eq!(met("529:0.5@4-6").iter().filter(|number| !(4..=6).contains(*number)).count(), 0);
}

#[test]
fn error_replies_get_no_further_faults() {
    let refused = HttpReply { status: 400, ..whole() };
    assert_eq!(faults("cut=0").apply(1, false, refused).body(), WHOLE.as_bytes());
}

#[test]
fn the_same_seed_and_number_give_the_same_fault() {
    let specs =
        ["cut", "split", "merge", "malformed", "duplicate", "unknown", "silence=random", "cut:0.5,split:0.5"];
    let run = |spec: &str, seed, number| {
        let reply = faults(spec).with_seed(seed).apply(number, true, stream());
        format!("{:?}", (reply.status, reply.headers, reply.chunks, reply.ending))
    };
    for spec in specs {
        let mut seen = std::collections::HashSet::new();
        for number in 1..40 {
            assert_eq!(run(spec, 3, number), run(spec, 3, number));
            seen.insert(run(spec, 3, number));
        }
        assert!(seen.len() > 2, "{spec}: chance differs from request to request");
    }
}

#[test]
fn invalid_plans_explain_the_syntax() {
    let cases = [
        ("splt", &["`splt`", "did you mean `split`", "too-long"][..]),
        ("429@2,malfromed@3", &["`malfromed@3`", "did you mean `malformed`"]),
        ("banana", &["unknown fault `banana`", "cut", "400 to 599"]),
        ("200", &["200", "400 to 599"]),
        ("status=429", &["write the status itself"]),
        ("cut=soon", &["`soon`", "before", "headers"]),
        ("cut@0", &["`@0`", "counted from 1"]),
        ("cut@3-1", &["`@3-1`"]),
        ("cut:2", &["from 0 to 1"]),
        ("cut:often", &["from 0 to 1"]),
        ("cut=1=2", &["once each"]),
        ("slow=fast", &["`fast`", "slow=50ms+16"]),
        ("usage=odd", &["zero"]),
        ("error=nice", &["overloaded_error"]),
        ("too-long=5", &["too-long=210000/200000"]),
        ("529=2", &["`2`", "`2s`"]),
        ("reset=1", &["no argument"]),
        ("=3", &["unknown fault"]),
    ];
    for (spec, wanted) in cases {
        let error = FaultPlan::parse(spec).unwrap_err().to_string();
        for words in wanted {
            assert!(error.contains(words), "{spec}: {error}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(pal_testkit::cases(200)))]

    #[test]
    fn split_and_merged_pieces_have_the_same_bytes(seed: u64, size in 1usize..9, crlf: bool) {
        let lines = if crlf { "crlf," } else { "" };
        let wanted = spoiled(lines).body();
        for spec in ["split", "merge", "merge=all", "split,merge", &format!("split={size}"), "slow=1ms+3"] {
            let reply = faults(&format!("{lines}{spec}")).with_seed(seed).apply(1, true, stream());
            prop_assert_eq!(&reply.body(), &wanted);
            prop_assert!(reply.chunks.is_sorted_by_key(|chunk| chunk.at));
            prop_assert!(reply.chunks.iter().all(|chunk| !chunk.bytes.is_empty()));
        }
    }

    #[test]
    fn any_plan_parses_or_fails_cleanly(spec in "[a-z0-9=@:+,./-]{0,40}|.{0,40}", body in ".{0,200}", is_stream: bool) {
        if let Ok(faults) = FaultPlan::parse(&spec) {
            let chunk = ReplyChunk { at: Duration::ZERO, bytes: Bytes::from(body) };
            faults.apply(1, is_stream, HttpReply { chunks: vec![chunk], ..stream() });
            faults.replacement_reply(1, Dialect::Responses);
        }
    }

    #[test]
    fn every_fault_accepts_any_body(kind in 0usize..13, body in "(.|\\s|data: \\{|event: ){0,100}", is_stream: bool, seed: u64) {
        let specs = [
            "cut", "truncate", "silence=random", "split", "merge", "slow=1ms+2", "malformed", "error=random",
            "usage", "duplicate", "unknown", "crlf", "silence=1s+after",
        ];
        let chunk = ReplyChunk { at: Duration::ZERO, bytes: Bytes::from(body) };
        faults(specs[kind]).with_seed(seed).apply(1, is_stream, HttpReply { chunks: vec![chunk], ..stream() });
    }
}
