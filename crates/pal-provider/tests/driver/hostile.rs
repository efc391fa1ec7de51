//! Servers that send too much, too slowly, or the wrong data: bounded in time and memory.

use std::time::{Duration, Instant};

use pal_wire::FailureKind;

use crate::scripted_server::{ScriptedServer, ServerAction};
use crate::{AnswerTrace, call, client, trace_answer};

async fn said_by(acts: Vec<ServerAction>) -> AnswerTrace {
    let server = ScriptedServer::start(vec![acts]).await;
    trace_answer(&client(&server.url()), call(true)).await
}

fn head(status: u16, kind: &str) -> ServerAction {
    let head = format!("HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n");
    ServerAction::Send(head.into_bytes())
}

/// A stream with one text block of these deltas.
fn stream(deltas: &[String]) -> Vec<u8> {
    let mut stream = String::from(
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\
         \"role\":\"assistant\",\"model\":\"m\",\"content\":[],\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}}\n\n\
         event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\
         \"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
    );
    for delta in deltas {
        stream.push_str("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"");
        stream.push_str(delta);
        stream.push_str("\"}}\n\n");
    }
    stream.push_str(
        "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n\
         event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":4}}\n\n\
         event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
    );
    stream.into_bytes()
}

#[tokio::test]
async fn huge_frames_arrive_whole() {
    let deltas = ["a".repeat(10_000_000), "b".repeat(10_000_000)];
    let saw = said_by(vec![head(200, "text/event-stream"), ServerAction::Send(stream(&deltas))]).await;
    assert!(saw.failure.is_none(), "{:?}", saw.failure);
    assert!(saw.text == deltas.concat(), "{} bytes", saw.text.len());
}

#[tokio::test]
async fn a_long_stream_of_single_bytes_arrives_whole() {
    let deltas: Vec<String> = (0..100).map(|at| format!("word {at} ")).collect();
    let saw = said_by(vec![head(200, "text/event-stream"), ServerAction::Trickle(stream(&deltas))]).await;
    assert!(saw.failure.is_none(), "{:?}", saw.failure);
    assert_eq!(saw.text, deltas.concat());
}

#[tokio::test]
async fn huge_error_reply_is_read_up_to_the_limit() {
    let begin = Instant::now();
    let body = format!("{{\"error\":{{\"message\":\"{}\"}}}}", "long ".repeat(10_000_000));
    let saw = said_by(vec![head(400, "application/json"), ServerAction::Send(body.into_bytes())]).await;
    let failure = saw.failure.unwrap();
    assert_eq!((failure.kind, failure.status), (FailureKind::Invalid, Some(400)));
    assert!(failure.message.len() < 4096, "{} bytes", failure.message.len());
    assert!(begin.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn endless_page_is_read_up_to_the_limit() {
    for kind in ["text/html", "text/event-stream"] {
        let page = b"<html><p>welcome to the guest network</p>".to_vec();
        let saw = said_by(vec![head(200, kind), ServerAction::Flood(page)]).await;
        let failure = saw.failure.unwrap();
        assert_eq!(failure.kind, FailureKind::Malformed);
        assert!(failure.message.contains("guest network") && failure.message.len() < 1000, "{failure}");
    }
}

#[tokio::test]
async fn endless_body_fails_at_the_limit() {
    // A JSON string that never ends is read up to a limit, then fails.
    let saw = said_by(vec![
        head(200, "application/json"),
        ServerAction::Send(b"{\"a\":\"".to_vec()),
        ServerAction::Flood(vec![b'x'; 1 << 20]),
    ])
    .await;
    assert_eq!(saw.failure.unwrap().kind, FailureKind::AnswerTooLarge);
}

#[tokio::test]
async fn blank_lines_before_an_answer_are_ignored() {
    let body = [vec![b'\n'; 1_000_000], stream(&["Hello".to_owned()])].concat();
    let saw = said_by(vec![head(200, "text/event-stream"), ServerAction::Send(body)]).await;
    assert_eq!((saw.text.as_str(), saw.failure), ("Hello", None));
}

#[tokio::test]
async fn invalid_utf8_fails() {
    for kind in ["text/event-stream", "application/json", ""] {
        let noise: Vec<u8> = (0..5000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let saw = said_by(vec![head(200, kind), ServerAction::Send(noise)]).await;
        let kind = saw.failure.unwrap().kind;
        assert!(matches!(kind, FailureKind::Malformed | FailureKind::Cut), "{kind:?}");
    }
}
