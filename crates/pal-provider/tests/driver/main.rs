//! The driver against real sockets: outcome table, cancellation, keys, bodies, hostile servers.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod cancellation;
mod cloud_platforms;
mod faults;
mod hostile;
mod keys;
mod limits;
mod outcome_table;
mod requests;
mod retry_waits;
mod scripted_server;
mod simulated_outcomes;

use std::time::Duration;

use pal_model::ChunkedText;
use pal_provider::{AnswerProgress, ApiKey, AttemptTimeouts, ClientPolicy, ProviderClient, ProviderEndpoint};
use pal_wire::{ApiCall, BlockDelta, Dialect, ProviderFailure, ResponseEvent, RetryPolicy};

/// Time limit for anything a test waits for.
const PATIENCE: Duration = Duration::from_secs(30);

/// Idle timeout of the tests; long enough for a busy machine.
const IDLE: Duration = Duration::from_millis(700);

/// A client with three attempts and short timeouts.
fn client(base_url: &str) -> ProviderClient {
    client_with(base_url, Some(ApiKey::api("sk-test-key")), ClientPolicy { seed: Some(1), ..short_policy() })
}

fn client_with(base_url: &str, key: Option<ApiKey>, policy: ClientPolicy) -> ProviderClient {
    ProviderClient::new(ProviderEndpoint::new(Dialect::Messages, base_url, key).unwrap(), policy).unwrap()
}

/// Three attempts in quick succession.
fn short_policy() -> ClientPolicy {
    ClientPolicy {
        timeouts: AttemptTimeouts {
            connect: Duration::from_secs(5),
            first_byte: IDLE,
            first_event: Duration::from_secs(3),
            idle: IDLE,
            ..AttemptTimeouts::patient()
        },
        retries: RetryPolicy { base_delay: Duration::from_millis(2), ..RetryPolicy::STANDARD },
        ..ClientPolicy::patient()
    }
}

/// A call with a body that the scripted server does not read.
fn call(stream: bool) -> ApiCall {
    call_with(ChunkedText::from("{}".to_owned()), stream)
}

fn call_with(body: ChunkedText, stream: bool) -> ApiCall {
    let headers = vec![("anthropic-version", "2026-10-21".to_owned())];
    ApiCall { dialect: Dialect::Messages, path: "/v1/messages", headers, body, stream }
}

/// Answer as the caller saw it.
#[derive(Debug, Default)]
struct AnswerTrace {
    /// Concatenated text deltas.
    text: String,
    /// Complete blocks, raw.
    blocks: Vec<String>,
    /// Failures of attempts that were retried.
    waits: Vec<ProviderFailure>,
    /// Final failure; `None` if the answer is complete.
    failure: Option<ProviderFailure>,
}

/// Reads an answer to its end, which must come exactly once.
async fn trace_answer(client: &ProviderClient, call: ApiCall) -> AnswerTrace {
    let mut answer = client.send(call);
    let mut saw = AnswerTrace::default();
    let mut ends = 0;
    let steps = async {
        while let Some(progress) = answer.next().await {
            assert_eq!(ends, 0, "something came after the end: {progress:?}");
            match progress {
                AnswerProgress::Event(ResponseEvent::BlockDelta {
                    delta: BlockDelta::Text(text), ..
                }) => saw.text.push_str(&text),
                AnswerProgress::Event(ResponseEvent::Block { block, .. }) => {
                    saw.blocks.push(block.raw().as_str().to_owned())
                }
                AnswerProgress::Event(ResponseEvent::Finished(_)) => ends += 1,
                AnswerProgress::Event(ResponseEvent::Failed(failure)) => {
                    saw.failure = Some(failure);
                    ends += 1;
                }
                AnswerProgress::Event(_) => {}
                AnswerProgress::Waiting(wait) => {
                    assert_eq!(saw.text, "", "an attempt follows though something was shown");
                    assert_eq!(wait.attempt as usize, saw.waits.len() + 2);
                    assert_eq!(wait.max_attempts, 3);
                    saw.waits.push(wait.failure);
                }
            }
        }
    };
    tokio::time::timeout(PATIENCE, steps).await.expect("the answer hangs");
    assert_eq!(ends, 1, "an answer has one end");
    saw
}
