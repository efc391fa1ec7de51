//! Waits between attempts: seen, counted down, as long as the provider asks, and no longer than allowed.

use std::time::{Duration, Instant};

use pal_provider::{Policy, Progress, Waiting};
use pal_wire::{Event, FailureKind, RetryPolicy};

use crate::faults::good_stream;
use crate::server::{Act, Server};
use crate::{call, client_with, follow, hasty};

/// An answer that asks for a wait.
fn busy(header: &str) -> Vec<Act> {
    let body = r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}"#;
    let length = body.len();
    vec![Act::Send(
        format!("HTTP/1.1 429 X\r\n{header}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
            .into_bytes(),
    )]
}

#[tokio::test]
async fn a_wait_is_counted_down_once_a_second() {
    let server = Server::start(vec![busy("retry-after-ms: 2300"), good_stream()]).await;
    let client = client_with(&server.url(), None, hasty());
    let begin = Instant::now();
    let mut answer = client.send(call(true));
    let mut waits: Vec<Waiting> = Vec::new();
    let mut is_whole = false;
    while let Some(step) = answer.next().await {
        match step {
            Progress::Waiting(wait) => {
                assert!(!is_whole);
                waits.push(wait);
            }
            Progress::Event(event) => is_whole = matches!(event, Event::Finished(_)),
        }
    }
    assert!(is_whole);
    assert!(begin.elapsed() >= Duration::from_millis(2300), "{:?}", begin.elapsed());
    assert_eq!(waits.len(), 3, "{waits:?}");
    assert_eq!(waits[0].left, Duration::from_millis(2300));
    for (wait, at_most_ms) in waits.iter().zip([2300, 1300, 300]) {
        assert!(wait.left <= Duration::from_millis(at_most_ms), "{waits:?}");
        assert_eq!((wait.attempt, wait.of, wait.failure.kind), (2, 3, FailureKind::RateLimited));
    }
}

#[tokio::test]
async fn a_wait_that_is_too_long_is_a_failure_that_says_how_long() {
    let server = Server::start(vec![busy("retry-after: 301")]).await;
    let saw = follow(&client_with(&server.url(), None, hasty()), call(true)).await;
    let failure = saw.failure.unwrap();
    assert_eq!((failure.kind, server.requests().len()), (FailureKind::RateLimited, 1));
    assert_eq!(failure.retry_after, Some(Duration::from_secs(301)));
}

#[tokio::test]
async fn the_provider_has_the_last_word_on_another_attempt() {
    let server = Server::start(vec![busy("x-should-retry: false")]).await;
    let saw = follow(&client_with(&server.url(), None, hasty()), call(true)).await;
    assert_eq!((saw.waits.len(), server.requests().len()), (0, 1));
}

#[tokio::test]
async fn without_retries_there_is_one_attempt() {
    let server = Server::start(vec![busy("x-filler: 1")]).await;
    let policy = Policy { retries: RetryPolicy::NEVER, ..hasty() };
    let failure = client_with(&server.url(), None, policy).whole(call(true)).await.unwrap_err();
    assert_eq!((failure.kind, server.requests().len()), (FailureKind::RateLimited, 1));
}

#[tokio::test]
async fn waits_of_our_own_choice_are_spread() {
    let policy = |seed| Policy {
        retries: RetryPolicy { base: Duration::from_millis(40), ..RetryPolicy::STANDARD },
        seed: Some(seed),
        ..hasty()
    };
    let mut firsts = Vec::new();
    for seed in [1, 2, 1] {
        let server = Server::start(vec![busy("x-filler: 1")]).await;
        let mut answer = client_with(&server.url(), None, policy(seed)).send(call(true));
        let Some(Progress::Waiting(wait)) = answer.next().await else { panic!("no wait") };
        assert!((30..=40).contains(&wait.left.as_millis()), "{wait:?}");
        firsts.push(wait.left);
    }
    assert_eq!(firsts[0], firsts[2]);
    assert_ne!(firsts[0], firsts[1]);
}

#[tokio::test]
async fn what_is_left_of_the_limits_is_remembered_until_an_answer_says_otherwise() {
    let limits = "anthropic-ratelimit-tokens-limit: 1000\r\nanthropic-ratelimit-tokens-remaining: 240";
    let server = Server::start(vec![busy(&format!("{limits}\r\nretry-after-ms: 1")), good_stream()]).await;
    let client = client_with(&server.url(), None, hasty());
    assert_eq!(client.rate_limit(), None);
    let saw = follow(&client, call(true)).await;
    assert!(saw.failure.is_none());
    let limit = client.rate_limit().unwrap();
    assert_eq!((limit.of, limit.left), ("tokens", 0.24), "refusals and good answers tell of them alike");
}
