//! Faults of the outcome table, as bytes on a connection.

use crate::scripted_server::ServerAction;

/// The whole answer.
pub(crate) const ALL: &str = "Hello, world";

/// Share of the answer shown to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShownShare {
    Nothing,
    Half,
    All,
}

/// A row of the outcome table.
#[derive(Clone, Debug)]
pub(crate) struct OutcomeRow {
    pub(crate) fault: String,
    pub(crate) stream: bool,
    /// True if the fault comes after content was shown.
    pub(crate) after: bool,
    /// Failure kind, or `Finished`.
    pub(crate) outcome: String,
    pub(crate) attempts: usize,
    pub(crate) shown: ShownShare,
}

/// Parses the outcome table in the crate documentation.
pub(crate) fn table() -> Vec<OutcomeRow> {
    let source = include_str!("../../src/lib.rs");
    let lines = source.lines().skip_while(|line| !line.contains("| fault | asked |")).skip(2);
    lines.map_while(|line| line.strip_prefix("//! |")).map(row).collect()
}

fn row(line: &str) -> OutcomeRow {
    let cells: Vec<&str> = line.split('|').map(str::trim).collect();
    let [fault, asked, when, outcome, attempts, shown, ""] = cells.as_slice() else { panic!("{line}") };
    assert!(matches!(*asked, "stream" | "whole") && matches!(*when, "" | "before" | "after"), "{line}");
    let shown = match *shown {
        "nothing" => ShownShare::Nothing,
        "half" => ShownShare::Half,
        "all" => ShownShare::All,
        other => panic!("{other}"),
    };
    OutcomeRow {
        fault: (*fault).to_owned(),
        stream: *asked == "stream",
        after: *when == "after",
        outcome: outcome.trim_matches('`').to_owned(),
        attempts: attempts.parse().unwrap(),
        shown,
    }
}

/// Events of the answer: before anything is shown, up to its half, and the rest.
const BEGINNING: &str = "event: message_start\n\
    data: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\
    \"model\":\"claude-opus-5-5\",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,\
    \"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\n\n\
    event: ping\ndata: {\"type\":\"ping\"}\n\n\
    event: content_block_start\n\
    data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n";
const MIDDLE: &str = "event: content_block_delta\n\
    data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hello\"}}\n\n";
const REST: &str = "event: content_block_delta\n\
    data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\", world\"}}\n\n\
    event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n\
    event: message_delta\n\
    data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\",\"stop_sequence\":null},\
    \"usage\":{\"output_tokens\":4}}\n\n\
    event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
const STRANGE: &str = "event: weather\ndata: {\"type\":\"weather\",\"sky\":\"blue\"}\n\n\
    : a comment\n\n\
    event: ping\ndata: {\"type\":\"ping\"}\n\n";
const WHOLE: &str = r#"{"id":"msg_1","type":"message","role":"assistant","model":"claude-opus-5-5","content":[{"type":"text","text":"Hello, world"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":4}}"#;
const PAGE: &str =
    "<!DOCTYPE html><html><head><title>Welcome</title></head><body><h1>Sign in</h1></body></html>";

/// A reply head, with headers that end in `\r\n`, and its body, if of known length.
fn answer(status: u16, headers: &str, body: &str) -> ServerAction {
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status} X\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n");
    ServerAction::Send([head.as_bytes(), body.as_bytes()].concat())
}

fn json(status: u16, body: &str) -> ServerAction {
    answer(status, "content-type: application/json\r\n", body)
}

fn error_body(kind: &str, message: &str, details: &str) -> String {
    format!(
        r#"{{"type":"error","error":{{"type":"{kind}","message":"{message}"{details}}},"request_id":"req_1"}}"#
    )
}

fn refusal(status: u16, kind: &str, message: &str) -> Vec<ServerAction> {
    vec![json(status, &error_body(kind, message, ""))]
}

/// Head of a chunked reply.
fn chunked(kind: &str) -> ServerAction {
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\nrequest-id: req_9\r\nconnection: close\r\n\r\n"
    );
    ServerAction::Send(head.into_bytes())
}

fn chunk(body: &str) -> ServerAction {
    ServerAction::Send(format!("{:x}\r\n{body}\r\n", body.len()).into_bytes())
}

fn last_chunk() -> ServerAction {
    ServerAction::Send(b"0\r\n\r\n".to_vec())
}

/// A complete stream, as the provider sends it.
pub(crate) fn good_stream() -> Vec<ServerAction> {
    vec![
        chunked("text/event-stream; charset=utf-8"),
        chunk(BEGINNING),
        chunk(MIDDLE),
        chunk(REST),
        last_chunk(),
    ]
}

/// Data of the events of a complete stream, in order.
pub(crate) fn stream_events() -> Vec<&'static str> {
    let lines = [BEGINNING, MIDDLE, REST].into_iter().flat_map(str::lines);
    lines.filter_map(|line| line.strip_prefix("data: ")).collect()
}

fn good(stream: bool) -> Vec<ServerAction> {
    if stream { good_stream() } else { vec![json(200, WHOLE)] }
}

/// Beginning of an answer, up to the fault.
fn beginning(row: &OutcomeRow) -> Vec<ServerAction> {
    match (row.stream, row.after) {
        (true, false) => vec![chunked("text/event-stream"), chunk(BEGINNING)],
        (true, true) => vec![chunked("text/event-stream"), chunk(BEGINNING), chunk(MIDDLE)],
        (false, _) => {
            let (half, _) = WHOLE.split_at(WHOLE.len() / 2);
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                WHOLE.len()
            );
            vec![ServerAction::Send(head.into_bytes()), ServerAction::Send(half.as_bytes().to_vec())]
        }
    }
}

fn then(mut acts: Vec<ServerAction>, more: impl IntoIterator<Item = ServerAction>) -> Vec<ServerAction> {
    acts.extend(more);
    acts
}

/// Server scripts by connection; the last one repeats.
pub(crate) fn scripts(row: &OutcomeRow) -> Vec<Vec<ServerAction>> {
    let acts = match row.fault.strip_suffix(" once") {
        Some(fault) => {
            return vec![acts(&OutcomeRow { fault: fault.to_owned(), ..row.clone() }), good(row.stream)];
        }
        None => acts(row),
    };
    vec![acts]
}

fn acts(row: &OutcomeRow) -> Vec<ServerAction> {
    nothing_comes(row)
        .or_else(|| refused(row))
        .or_else(|| strange_bodies(row))
        .or_else(|| breaks(row))
        .unwrap_or_else(|| panic!("the table has a fault that no script plays: {}", row.fault))
}

/// Faults before the reply head.
fn nothing_comes(row: &OutcomeRow) -> Option<Vec<ServerAction>> {
    Some(match row.fault.as_str() {
        "none" => good(row.stream),
        // Nothing listens: the test arranges that.
        "connection refused" | "closed without a word" => vec![],
        "reset without a word" => vec![ServerAction::Reset],
        "not HTTP" => vec![ServerAction::Send(b"SSH-2.0-OpenSSH_9.9\r\n".to_vec())],
        "flood of headers" => {
            vec![
                ServerAction::Send(b"HTTP/1.1 200 OK\r\n".to_vec()),
                ServerAction::Flood(b"x-filler: and more of it\r\n".repeat(100)),
            ]
        }
        "silence before the head" => vec![ServerAction::Hang],
        _ => return None,
    })
}

/// Error statuses.
fn refused(row: &OutcomeRow) -> Option<Vec<ServerAction>> {
    let endless = "HTTP/1.1 500 X\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\nfailed";
    let wait = "content-type: application/json\r\nretry-after-ms: 5\r\n";
    Some(match row.fault.as_str() {
        "status 400" => refusal(400, "invalid_request_error", "messages: at least one message is required"),
        "prompt too long" => {
            refusal(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum")
        }
        "status 401" => refusal(401, "authentication_error", "invalid x-api-key"),
        "status 402" => refusal(402, "billing_error", "no credit"),
        "status 403" => refusal(403, "permission_error", "not allowed"),
        "status 404" => refusal(404, "not_found_error", "model: claude-0"),
        "status 409" => refusal(409, "conflict_error", "busy"),
        "status 413" | "status 413 while the body is sent" => {
            refusal(413, "request_too_large", "too many bytes")
        }
        "status 429" => vec![answer(429, wait, &error_body("rate_limit_error", "slow down", ""))],
        "spend limit reached" => {
            let details = r#","details":{"error_code":"enforced_spend_limit_reached"}"#;
            vec![json(429, &error_body("rate_limit_error", "spend limit", details))]
        }
        "status 500" => refusal(500, "api_error", "internal"),
        "status 504" => refusal(504, "timeout_error", "took too long"),
        "status 529" => refusal(529, "overloaded_error", "Overloaded"),
        "status 502 with a web page" => vec![answer(502, "content-type: text/html\r\n", PAGE)],
        "status 500 without an end" => vec![ServerAction::Send(endless.into()), ServerAction::Hang],
        "status 500 that floods" => {
            vec![ServerAction::Send(endless.into()), ServerAction::Flood(b"and failed again\n".repeat(64))]
        }
        "status 500 that breaks off" => vec![ServerAction::Send(endless.into()), ServerAction::Reset],
        "redirect" => vec![answer(307, "location: http://127.0.0.1:1/elsewhere\r\n", "")],
        _ => return None,
    })
}

/// Valid answers in an unexpected format, and invalid bodies.
fn strange_bodies(row: &OutcomeRow) -> Option<Vec<ServerAction>> {
    let gzip = "content-encoding: gzip\r\n";
    let body = if row.stream { [BEGINNING, MIDDLE, REST].concat() } else { WHOLE.to_owned() };
    Some(match row.fault.as_str() {
        "status 204" => {
            vec![ServerAction::Send(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n".to_vec())]
        }
        "empty body" if row.stream => vec![answer(200, "content-type: text/event-stream\r\n", "")],
        "empty body" => vec![json(200, "")],
        "web page" => vec![answer(200, "content-type: text/html\r\n", PAGE)],
        "plain text" => vec![answer(200, "content-type: text/plain\r\n", "upstream connect error")],
        "error with status 200" => vec![json(200, &error_body("overloaded_error", "Overloaded", ""))],
        "whole answer instead of a stream" => good(false),
        "stream instead of a whole answer" => good(true),
        "wrong content type" => vec![answer(200, "content-type: application/octet-stream\r\n", &body)],
        "compressed" => compressed(gzip, &stored_gzip(body.as_bytes())),
        "broken compression" => {
            let mut bytes = stored_gzip(body.as_bytes());
            // Makes the lengths of the stored block disagree.
            bytes[13] ^= 0xff;
            compressed(gzip, &bytes)
        }
        "unknown events and pings" => {
            let [head, beginning, middle, rest, last] = <[ServerAction; 5]>::try_from(good_stream()).unwrap();
            vec![
                head,
                chunk(STRANGE),
                beginning,
                chunk(STRANGE),
                middle,
                chunk(STRANGE),
                rest,
                chunk(STRANGE),
                last,
            ]
        }
        "an event twice" => {
            let [head, beginning, middle, rest, last] = <[ServerAction; 5]>::try_from(good_stream()).unwrap();
            let (start, _) = BEGINNING.split_once("event: ping").unwrap();
            vec![head, chunk(start), beginning, middle, rest, last]
        }
        "wrong usage" => {
            let body = body.replace("\"output_tokens\":4", "\"output_tokens\":null");
            let kind = if row.stream { "text/event-stream" } else { "application/json" };
            vec![answer(200, &format!("content-type: {kind}\r\n"), &body)]
        }
        "slow bytes" if row.stream => {
            let bytes = good_stream().into_iter().flat_map(|act| match act {
                ServerAction::Send(bytes) => bytes,
                _ => Vec::new(),
            });
            vec![ServerAction::Trickle(bytes.collect())]
        }
        "slow bytes" => match json(200, WHOLE) {
            ServerAction::Send(bytes) => vec![ServerAction::Trickle(bytes)],
            _ => vec![],
        },
        _ => return None,
    })
}

/// Answers that begin well and then fail.
fn breaks(row: &OutcomeRow) -> Option<Vec<ServerAction>> {
    let overloaded = format!("event: error\ndata: {}\n\n", error_body("overloaded_error", "Overloaded", ""));
    Some(match row.fault.as_str() {
        "closed" => beginning(row),
        "closed, of unknown length" => {
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
            let said = if row.after { [BEGINNING, MIDDLE].concat() } else { BEGINNING.to_owned() };
            vec![ServerAction::Send(format!("{head}{said}").into_bytes())]
        }
        // A reset discards unread bytes, so it waits until they have arrived.
        "reset" => then(beginning(row), [ServerAction::Pause(crate::IDLE / 4), ServerAction::Reset]),
        "silence" => then(beginning(row), [ServerAction::Hang]),
        "pings, then silence" => {
            let pings = (0..4).flat_map(|_| [ServerAction::Pause(crate::IDLE / 2), chunk(STRANGE)]);
            then(then(beginning(row), pings), [ServerAction::Hang])
        }
        "error event" => then(beginning(row), [chunk(&overloaded), last_chunk()]),
        "malformed" if row.stream => {
            let event =
                "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\n\n";
            then(beginning(row), [chunk(event), chunk(REST), last_chunk()])
        }
        "malformed" => vec![json(200, r#"{"id":"msg_1","type":"message","content":[{"type":"te"#)],
        "closed after the last event" => {
            let mut acts = good_stream();
            acts.pop();
            acts
        }
        "silence after the last event" => {
            let mut acts = good_stream();
            acts.pop();
            then(acts, [ServerAction::Hang])
        }
        _ => return None,
    })
}

/// A compressed reply.
fn compressed(headers: &str, bytes: &[u8]) -> Vec<ServerAction> {
    let length = bytes.len();
    let head = format!("HTTP/1.1 200 OK\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n");
    vec![ServerAction::Send([head.as_bytes(), bytes].concat())]
}

/// Gzip without compression: a head, one stored block, a checksum.
fn stored_gzip(bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).unwrap();
    let mut gzip = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
    gzip.extend(length.to_le_bytes());
    gzip.extend((!length).to_le_bytes());
    gzip.extend(bytes);
    let mut checksum = u32::MAX;
    for byte in bytes {
        checksum ^= u32::from(*byte);
        for _ in 0..8 {
            checksum = (checksum >> 1) ^ (0xedb8_8320 & (checksum & 1).wrapping_neg());
        }
    }
    gzip.extend((!checksum).to_le_bytes());
    gzip.extend(u32::from(length).to_le_bytes());
    gzip
}
