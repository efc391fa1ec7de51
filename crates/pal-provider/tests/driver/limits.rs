//! Time and size limits of every phase, against servers that never come to an end by themselves.

use std::time::{Duration, Instant};

use pal_model::Parts;
use pal_provider::{Endpoint, Policy, Timeouts};
use pal_wire::{Dialect, FailureKind, RetryPolicy};
use tokio::net::TcpListener;

use crate::server::{Act, Server};
use crate::{Saw, call, call_with, client_with, follow};

/// How long a limit under test is.
const SHORT: Duration = Duration::from_millis(400);

/// How often a server that never ends says something.
const OFTEN: Duration = Duration::from_millis(20);

/// One attempt, with limits that no test reaches by chance.
fn once() -> Policy {
    Policy { retries: RetryPolicy::NEVER, ..Policy::patient() }
}

/// The same with these limits.
fn limited(change: impl FnOnce(&mut Timeouts)) -> Policy {
    let mut policy = once();
    change(&mut policy.timeouts);
    policy
}

async fn served(acts: Vec<Act>, policy: Policy) -> Saw {
    let server = Server::start(vec![acts]).await;
    let begin = Instant::now();
    let saw = follow(&client_with(&server.url(), None, policy), call(true)).await;
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    saw
}

fn head() -> Act {
    Act::Send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n".to_vec())
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
fn check(saw: &Saw, kind: FailureKind, words: &str) {
    let failure = saw.failure.as_ref().unwrap();
    assert_eq!(failure.kind, kind, "{failure}");
    assert!(failure.message.contains(words), "{words}: {failure}");
}

/// The address of a server that takes connections and does nothing with them.
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
async fn a_handshake_that_is_never_answered_ends_at_the_limit_on_connecting() {
    let (address, _task) = deaf_server().await;
    let client = client_with(&format!("https://{address}"), None, limited(|limits| limits.connect = SHORT));
    let begin = Instant::now();
    let saw = follow(&client, call(true)).await;
    check(&saw, FailureKind::Connection, "no answer from https://127.0.0.1");
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
}

#[tokio::test]
async fn a_request_that_nobody_reads_ends_at_the_limit_on_sending() {
    let (address, _task) = deaf_server().await;
    let policy = limited(|limits| (limits.send, limits.connect) = (SHORT, SHORT));
    let client = client_with(&format!("http://{address}"), None, policy);
    let begin = Instant::now();
    let saw = follow(&client, call_with(Parts::from("x".repeat(64 << 20)), true)).await;
    check(&saw, FailureKind::Silent, "took nothing of the request for 0.4 s");
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
}

#[tokio::test]
async fn headers_that_never_come_or_never_end_are_given_up() {
    let policy = || limited(|limits| limits.first_byte = SHORT);
    check(&served(vec![Act::Hang], policy()).await, FailureKind::Silent, "within 0.4 s");
    let endless = [Act::Send(b"HTTP/1.1 200 OK\r\n".to_vec()), Act::Repeat(b"x-a: b\r\n".to_vec(), OFTEN)];
    check(&served(endless.to_vec(), policy()).await, FailureKind::Silent, "within 0.4 s");
    let slow = [Act::Repeat(b"H".to_vec(), Duration::from_secs(1))];
    let saw = served(slow.to_vec(), policy()).await;
    assert!(matches!(saw.failure.unwrap().kind, FailureKind::Silent | FailureKind::Connection));
}

#[tokio::test]
async fn pings_for_ever_are_no_answer() {
    let pings = Act::Repeat(PING.into(), OFTEN);
    let saw = served(vec![head(), pings.clone()], limited(|limits| limits.first_event = SHORT)).await;
    check(&saw, FailureKind::Silent, "nothing but signs of life came from the provider for 0.4 s");
    let begun = vec![head(), Act::Send(START.into()), Act::Send(delta("Hello")), pings];
    let saw = served(begun, limited(|limits| limits.content_gap = SHORT)).await;
    check(&saw, FailureKind::Silent, "nothing but signs of life");
    assert_eq!(saw.text, "Hello", "what came is kept");
}

#[tokio::test]
async fn a_byte_now_and_then_is_no_answer() {
    let begun = vec![head(), Act::Send(START.into()), Act::Repeat(b"d".to_vec(), OFTEN)];
    check(
        &served(begun, limited(|limits| limits.content_gap = SHORT)).await,
        FailureKind::Silent,
        "signs of life",
    );
}

#[tokio::test]
async fn an_answer_without_an_end_ends_at_the_limit_on_answers_and_is_not_tried_again() {
    let endless = vec![head(), Act::Send(START.into()), Act::Repeat(delta("x"), OFTEN)];
    let server = Server::start(vec![endless]).await;
    let policy = Policy { retries: RetryPolicy::STANDARD, ..limited(|limits| limits.answer = SHORT) };
    let saw = follow(&client_with(&server.url(), None, policy), call(true)).await;
    check(&saw, FailureKind::Deadline, "not whole after 0.4 s");
    assert_eq!((server.requests().len(), saw.text.is_empty()), (1, false));
    // Nothing is shown of this one, and still it is not tried again.
    let server = Server::start(vec![vec![head(), Act::Flood(PING.into())]]).await;
    let policy = Policy { retries: RetryPolicy::STANDARD, ..limited(|limits| limits.answer = SHORT) };
    let saw = follow(&client_with(&server.url(), None, policy), call(true)).await;
    check(&saw, FailureKind::Deadline, "not whole");
    assert_eq!(server.requests().len(), 1, "a server that never pauses is stopped as well");
}

#[tokio::test]
async fn answers_have_a_largest_size_in_text_events_blocks_and_on_the_wire() {
    let small = || Policy { answer_bytes_max: 1 << 20, ..once() };
    let flood = vec![head(), Act::Send(START.into()), Act::Flood(delta(&"x".repeat(10_000)))];
    let saw = served(flood, small()).await;
    check(&saw, FailureKind::AnswerTooLarge, "the answer has more than 1 MB");
    assert!(saw.text.len() < 2 << 20, "{}", saw.text.len());
    let pings = vec![head(), Act::Send(START.into()), Act::Flood(PING.into())];
    check(&served(pings, small()).await, FailureKind::AnswerTooLarge, "more than 3 MB on the wire");
    let event = vec![head(), Act::Send(b"data: ".to_vec()), Act::Flood(vec![b'x'; 1 << 16])];
    check(&served(event, once()).await, FailureKind::Malformed, "larger than 16 MB");
    let mut blocks = String::from(START);
    blocks.push_str("event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n");
    for index in 1..10_010 {
        blocks.push_str(&format!(
            "data: {{\"type\":\"content_block_start\",\"index\":{index},\"content_block\":{{\"type\":\"text\",\"text\":\"\"}}}}\n\n\
             data: {{\"type\":\"content_block_stop\",\"index\":{index}}}\n\n"
        ));
    }
    let saw = served(vec![head(), Act::Send(blocks.into_bytes()), Act::Hang], once()).await;
    check(&saw, FailureKind::AnswerTooLarge, "more than 10000 blocks");
    let whole =
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n{\"a\":\"".to_vec();
    let whole = vec![Act::Send(whole), Act::Flood(vec![b'x'; 1 << 16])];
    check(&served(whole, small()).await, FailureKind::AnswerTooLarge, "more than 1 MB");
}

#[tokio::test]
async fn attempts_that_ended_in_silence_are_tried_again_twice_at_most() {
    let server = Server::start(vec![vec![Act::Hang]]).await;
    let retries = RetryPolicy { retries: 8, base: Duration::from_millis(2), ..RetryPolicy::STANDARD };
    let policy = Policy { retries, ..limited(|limits| limits.first_byte = Duration::from_millis(100)) };
    let saw = {
        let client = client_with(&server.url(), None, policy);
        let mut answer = client.send(call(true));
        let mut failure = None;
        while let Some(step) = answer.next().await {
            if let pal_provider::Progress::Event(pal_wire::Event::Failed(failed)) = step {
                failure = Some(failed);
            }
        }
        failure.unwrap()
    };
    assert_eq!((saw.kind, server.requests().len()), (FailureKind::Silent, 3));
}

#[test]
fn a_model_nearby_may_read_its_prompt_for_longer() {
    let first_byte = |address: &str| {
        let endpoint = Endpoint::over_plain_http(Dialect::Chat, address, None).unwrap();
        Policy::suited_to(&endpoint).timeouts.first_byte.as_secs()
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
