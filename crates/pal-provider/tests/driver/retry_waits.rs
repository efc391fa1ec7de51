//! Waits between attempts are reported, counted down, as long as the provider asks and no longer than
//! allowed.

use std::time::{Duration, Instant};

use pal_provider::{AnswerProgress, ClientPolicy, RetryWait};
use pal_wire::{FailureKind, ResponseEvent, RetryPolicy};

use crate::faults::good_stream;
use crate::scripted_server::{ScriptedServer, ServerAction};
use crate::{call, client_with, short_policy, trace_answer};

/// An error reply that asks for a delay.
fn busy(header: &str) -> Vec<ServerAction> {
    let body = r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}"#;
    let length = body.len();
    vec![ServerAction::Send(
        format!("HTTP/1.1 429 X\r\n{header}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
            .into_bytes(),
    )]
}

#[tokio::test]
async fn a_wait_is_counted_down_once_a_second() {
    let server = ScriptedServer::start(vec![busy("retry-after-ms: 2300"), good_stream()]).await;
    let client = client_with(&server.url(), None, short_policy());
    let begin = Instant::now();
    let mut answer = client.send(call(true));
    let mut waits: Vec<RetryWait> = Vec::new();
    let mut is_whole = false;
    while let Some(step) = answer.next().await {
        match step {
            AnswerProgress::Waiting(wait) => {
                assert!(!is_whole);
                waits.push(wait);
            }
            AnswerProgress::Event(event) => is_whole = matches!(event, ResponseEvent::Finished(_)),
        }
    }
    assert!(is_whole);
    assert!(begin.elapsed() >= Duration::from_millis(2300), "{:?}", begin.elapsed());
    assert_eq!(waits.len(), 3, "{waits:?}");
    assert_eq!(waits[0].remaining, Duration::from_millis(2300));
    for (wait, at_most_ms) in waits.iter().zip([2300, 1300, 300]) {
        assert!(wait.remaining <= Duration::from_millis(at_most_ms), "{waits:?}");
        assert_eq!((wait.attempt, wait.max_attempts, wait.failure.kind), (2, 3, FailureKind::RateLimited));
    }
}

#[tokio::test]
async fn a_wait_that_is_too_long_is_a_failure_that_says_how_long() {
    let server = ScriptedServer::start(vec![busy("retry-after: 301")]).await;
    let saw = trace_answer(&client_with(&server.url(), None, short_policy()), call(true)).await;
    let failure = saw.failure.unwrap();
    assert_eq!((failure.kind, server.requests().len()), (FailureKind::RateLimited, 1));
    assert_eq!(failure.retry_after, Some(Duration::from_secs(301)));
}

#[tokio::test]
async fn provider_decides_about_retries() {
    let server = ScriptedServer::start(vec![busy("x-should-retry: false")]).await;
    let saw = trace_answer(&client_with(&server.url(), None, short_policy()), call(true)).await;
    assert_eq!((saw.waits.len(), server.requests().len()), (0, 1));
}

#[tokio::test]
async fn without_retries_there_is_one_attempt() {
    let server = ScriptedServer::start(vec![busy("x-filler: 1")]).await;
    let policy = ClientPolicy { retries: RetryPolicy::NEVER, ..short_policy() };
    let failure = client_with(&server.url(), None, policy).collect_answer(call(true)).await.unwrap_err();
    assert_eq!((failure.kind, server.requests().len()), (FailureKind::RateLimited, 1));
}

#[tokio::test]
async fn own_waits_have_jitter() {
    let policy = |seed| ClientPolicy {
        retries: RetryPolicy { base_delay: Duration::from_millis(40), ..RetryPolicy::STANDARD },
        seed: Some(seed),
        ..short_policy()
    };
    let mut firsts = Vec::new();
    for seed in [1, 2, 1] {
        let server = ScriptedServer::start(vec![busy("x-filler: 1")]).await;
        let mut answer = client_with(&server.url(), None, policy(seed)).send(call(true));
        let Some(AnswerProgress::Waiting(wait)) = answer.next().await else { panic!("no wait") };
        assert!((30..=40).contains(&wait.remaining.as_millis()), "{wait:?}");
        firsts.push(wait.remaining);
    }
    assert_eq!(firsts[0], firsts[2]);
    assert_ne!(firsts[0], firsts[1]);
}

#[tokio::test]
async fn last_reported_rate_limit_is_remembered() {
    let limits = "anthropic-ratelimit-tokens-limit: 1000\r\nanthropic-ratelimit-tokens-remaining: 240";
    let server =
        ScriptedServer::start(vec![busy(&format!("{limits}\r\nretry-after-ms: 1")), good_stream()]).await;
    let client = client_with(&server.url(), None, short_policy());
    assert_eq!(client.rate_limit(), None);
    let saw = trace_answer(&client, call(true)).await;
    assert!(saw.failure.is_none());
    let limit = client.rate_limit().unwrap();
    assert_eq!(
        (limit.resource, limit.remaining_share),
        ("tokens", 0.24),
        "refusals and good answers tell of them alike"
    );
}
