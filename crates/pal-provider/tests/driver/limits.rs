//! Time and size limits of every phase, against servers that never end.

use std::time::{Duration, Instant};

use pal_model::ChunkedText;
use pal_provider::{AttemptTimeouts, ClientPolicy, ProviderEndpoint};
use pal_wire::{Dialect, FailureKind, RetryPolicy};
use tokio::net::TcpListener;

use crate::scripted_server::{ScriptedServer, ServerAction};
use crate::{AnswerTrace, call, call_with, client_with, trace_answer};

/// Duration of the limits under test.
const SHORT: Duration = Duration::from_millis(400);

/// Sending interval of a server that never ends.
const OFTEN: Duration = Duration::from_millis(20);

/// One attempt, with limits that no test reaches by accident.
fn once() -> ClientPolicy {
    ClientPolicy { retries: RetryPolicy::NEVER, ..ClientPolicy::patient() }
}

/// One attempt with changed limits.
fn limited(change: impl FnOnce(&mut AttemptTimeouts)) -> ClientPolicy {
    let mut policy = once();
    change(&mut policy.timeouts);
    policy
}

async fn served(acts: Vec<ServerAction>, policy: ClientPolicy) -> AnswerTrace {
    let server = ScriptedServer::start(vec![acts]).await;
    let begin = Instant::now();
    let saw = trace_answer(&client_with(&server.url(), None, policy), call(true)).await;
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    saw
}

fn head() -> ServerAction {
    ServerAction::Send(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n".to_vec(),
    )
}

const START: &str = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"type\":\"message\",\
    \"role\":\"assistant\",\"model\":\"m\",\"content\":[],\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}}\n\n\
    event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\
    \"text\":\"\"}}\n\n";
const PING: &str = "event: ping\ndata: {\"type\":\"ping\"}\n\n";

fn delta(text: &str) -> Vec<u8> {
    let data = format!(
        "{{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"{text}\"}}}}"
    );
    format!("event: content_block_delta\ndata: {data}\n\n").into_bytes()
}

#[track_caller]
fn check(saw: &AnswerTrace, kind: FailureKind, words: &str) {
    let failure = saw.failure.as_ref().unwrap();
    assert_eq!(failure.kind, kind, "{failure}");
    assert!(failure.message.contains(words), "{words}: {failure}");
}

/// Address of a server that accepts connections and ignores them.
async fn deaf_server() -> (String, tokio::task::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let task = tokio::spawn(async move {
        let mut kept = Vec::new();
        loop {
            kept.push(listener.accept().await.unwrap());
        }
    });
    (address, task)
}

#[tokio::test]
async fn unanswered_handshake_ends_at_the_connect_timeout() {
    let (address, _task) = deaf_server().await;
    let client = client_with(&format!("https://{address}"), None, limited(|limits| limits.connect = SHORT));
    let begin = Instant::now();
    let saw = trace_answer(&client, call(true)).await;
    check(&saw, FailureKind::Connection, "no answer from https://127.0.0.1");
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
}

#[tokio::test]
async fn unread_request_ends_at_the_send_timeout() {
    let (address, _task) = deaf_server().await;
    let policy = limited(|limits| (limits.send, limits.connect) = (SHORT, SHORT));
    let client = client_with(&format!("http://{address}"), None, policy);
    let begin = Instant::now();
    let saw = trace_answer(&client, call_with(ChunkedText::from("x".repeat(64 << 20)), true)).await;
    check(&saw, FailureKind::Silent, "accepted no data for 0.4 s");
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
}

#[tokio::test]
async fn missing_or_endless_headers_time_out() {
    let policy = || limited(|limits| limits.first_byte = SHORT);
    check(&served(vec![ServerAction::Hang], policy()).await, FailureKind::Silent, "within 0.4 s");
    let endless = [
        ServerAction::Send(b"HTTP/1.1 200 OK\r\n".to_vec()),
        ServerAction::Repeat(b"x-a: b\r\n".to_vec(), OFTEN),
    ];
    check(&served(endless.to_vec(), policy()).await, FailureKind::Silent, "within 0.4 s");
    let slow = [ServerAction::Repeat(b"H".to_vec(), Duration::from_secs(1))];
    let saw = served(slow.to_vec(), policy()).await;
    assert!(matches!(saw.failure.unwrap().kind, FailureKind::Silent | FailureKind::Connection));
}

#[tokio::test]
async fn endless_pings_time_out() {
    let pings = ServerAction::Repeat(PING.into(), OFTEN);
    let saw = served(vec![head(), pings.clone()], limited(|limits| limits.first_event = SHORT)).await;
    check(&saw, FailureKind::Silent, "the provider sent only keep-alives for 0.4 s");
    let begun = vec![head(), ServerAction::Send(START.into()), ServerAction::Send(delta("Hello")), pings];
    let saw = served(begun, limited(|limits| limits.content_gap = SHORT)).await;
    check(&saw, FailureKind::Silent, "only keep-alives");
    assert_eq!(saw.text, "Hello", "what came is kept");
}

#[tokio::test]
async fn trickled_bytes_time_out() {
    let begun = vec![head(), ServerAction::Send(START.into()), ServerAction::Repeat(b"d".to_vec(), OFTEN)];
    check(
        &served(begun, limited(|limits| limits.content_gap = SHORT)).await,
        FailureKind::Silent,
        "only keep-alives",
    );
}

#[tokio::test]
async fn endless_answer_ends_at_the_deadline_without_retry() {
    let endless = vec![head(), ServerAction::Send(START.into()), ServerAction::Repeat(delta("x"), OFTEN)];
    let server = ScriptedServer::start(vec![endless]).await;
    let policy = ClientPolicy { retries: RetryPolicy::STANDARD, ..limited(|limits| limits.answer = SHORT) };
    let saw = trace_answer(&client_with(&server.url(), None, policy), call(true)).await;
    check(&saw, FailureKind::Deadline, "incomplete after 0.4 s");
    assert_eq!((server.requests().len(), saw.text.is_empty()), (1, false));
    // Nothing is shown here, and still it is not retried.
    let server = ScriptedServer::start(vec![vec![head(), ServerAction::Flood(PING.into())]]).await;
    let policy = ClientPolicy { retries: RetryPolicy::STANDARD, ..limited(|limits| limits.answer = SHORT) };
    let saw = trace_answer(&client_with(&server.url(), None, policy), call(true)).await;
    check(&saw, FailureKind::Deadline, "incomplete");
    assert_eq!(server.requests().len(), 1, "a server that never pauses is stopped as well");
}

#[tokio::test]
async fn answers_are_limited_in_text_events_blocks_and_wire_bytes() {
    let small = || ClientPolicy { answer_bytes_max: 1 << 20, ..once() };
    let flood =
        vec![head(), ServerAction::Send(START.into()), ServerAction::Flood(delta(&"x".repeat(10_000)))];
    let saw = served(flood, small()).await;
    check(&saw, FailureKind::AnswerTooLarge, "the answer has more than 1 MB");
    assert!(saw.text.len() < 2 << 20, "{}", saw.text.len());
    let pings = vec![head(), ServerAction::Send(START.into()), ServerAction::Flood(PING.into())];
    check(&served(pings, small()).await, FailureKind::AnswerTooLarge, "more than 3 MB on the wire");
    let event =
        vec![head(), ServerAction::Send(b"data: ".to_vec()), ServerAction::Flood(vec![b'x'; 1 << 16])];
    check(&served(event, once()).await, FailureKind::Malformed, "larger than 16 MB");
    let mut blocks = String::from(START);
    blocks.push_str("event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n");
    for index in 1..10_010 {
        blocks.push_str(&format!(
            "data: {{\"type\":\"content_block_start\",\"index\":{index},\"content_block\":{{\"type\":\"text\",\"text\":\"\"}}}}\n\n\
             data: {{\"type\":\"content_block_stop\",\"index\":{index}}}\n\n"
        ));
    }
    let saw = served(vec![head(), ServerAction::Send(blocks.into_bytes()), ServerAction::Hang], once()).await;
    check(&saw, FailureKind::AnswerTooLarge, "more than 10000 blocks");
    let whole =
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n{\"a\":\"".to_vec();
    let whole = vec![ServerAction::Send(whole), ServerAction::Flood(vec![b'x'; 1 << 16])];
    check(&served(whole, small()).await, FailureKind::AnswerTooLarge, "more than 1 MB");
}

#[tokio::test]
async fn silent_attempts_are_retried_at_most_twice() {
    let server = ScriptedServer::start(vec![vec![ServerAction::Hang]]).await;
    let retries =
        RetryPolicy { max_retries: 8, base_delay: Duration::from_millis(2), ..RetryPolicy::STANDARD };
    let policy = ClientPolicy { retries, ..limited(|limits| limits.first_byte = Duration::from_millis(100)) };
    let saw = {
        let client = client_with(&server.url(), None, policy);
        let mut answer = client.send(call(true));
        let mut failure = None;
        while let Some(step) = answer.next().await {
            if let pal_provider::AnswerProgress::Event(pal_wire::ResponseEvent::Failed(failed)) = step {
                failure = Some(failed);
            }
        }
        failure.unwrap()
    };
    assert_eq!((saw.kind, server.requests().len()), (FailureKind::Silent, 3));
}

#[test]
fn local_models_get_a_longer_first_byte_timeout() {
    let first_byte = |address: &str| {
        let endpoint = ProviderEndpoint::over_plain_http(Dialect::Chat, address, None).unwrap();
        ClientPolicy::for_endpoint(&endpoint).timeouts.first_byte.as_secs()
    };
    for near in [
        "http://localhost:11434",
        "http://192.168.1.7:8080",
        "http://box.local",
        "http://gpu:8000",
        "http://[fd00::1]",
    ] {
        assert_eq!(first_byte(near), 1_200, "{near}");
    }
    for far in ["https://api.anthropic.com", "https://8.8.8.8"] {
        assert_eq!(first_byte(far), 180, "{far}");
    }
}
