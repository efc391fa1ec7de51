//! The driver against real sockets: the table of outcomes, cancelling, keys, bodies, hostile servers.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod cancel;
mod faults;
mod hostile;
mod keys;
mod limits;
mod matrix;
mod requests;
mod server;
mod simulated;
mod waits;

use std::time::Duration;

use pal_model::Parts;
use pal_provider::{Client, Endpoint, Key, Policy, Progress, Timeouts};
use pal_wire::{Call, Delta, Dialect, Event, Failure, RetryPolicy};

/// Nothing that a test waits for takes longer, or it hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// Silence that the tests take for silence; long enough for a busy machine.
const IDLE: Duration = Duration::from_millis(700);

/// A client that tries three times and has little patience.
fn client(base_url: &str) -> Client {
    client_with(base_url, Some(Key::api("sk-test-key")), Policy { seed: Some(1), ..hasty() })
}

fn client_with(base_url: &str, key: Option<Key>, policy: Policy) -> Client {
    Client::new(Endpoint::new(Dialect::Messages, base_url, key).unwrap(), policy).unwrap()
}

/// Three attempts in quick succession.
fn hasty() -> Policy {
    Policy {
        timeouts: Timeouts {
            connect: Duration::from_secs(5),
            first_byte: IDLE,
            first_event: Duration::from_secs(3),
            idle: IDLE,
            ..Timeouts::patient()
        },
        retries: RetryPolicy { base: Duration::from_millis(2), ..RetryPolicy::STANDARD },
        ..Policy::patient()
    }
}

/// A call with a body that the scripted server does not read.
fn call(stream: bool) -> Call {
    call_with(Parts::from("{}".to_owned()), stream)
}

fn call_with(body: Parts, stream: bool) -> Call {
    let headers = vec![("anthropic-version", "2026-10-21".to_owned())];
    Call { dialect: Dialect::Messages, path: "/v1/messages", headers, body, stream }
}

/// What a caller saw of an answer.
#[derive(Debug, Default)]
struct Saw {
    /// All deltas of text, one after the other.
    text: String,
    /// All whole blocks, raw.
    blocks: Vec<String>,
    /// Why attempts failed that were followed by another.
    waits: Vec<Failure>,
    /// The end; nothing if it is whole.
    failure: Option<Failure>,
}

/// Follows an answer to its end, which must come, and come once.
async fn follow(client: &Client, call: Call) -> Saw {
    let mut answer = client.send(call);
    let mut saw = Saw::default();
    let mut ends = 0;
    let steps = async {
        while let Some(progress) = answer.next().await {
            assert_eq!(ends, 0, "something came after the end: {progress:?}");
            match progress {
                Progress::Event(Event::Grew { delta: Delta::Text(text), .. }) => saw.text.push_str(&text),
                Progress::Event(Event::Block { block, .. }) => {
                    saw.blocks.push(block.raw().as_str().to_owned())
                }
                Progress::Event(Event::Finished(_)) => ends += 1,
                Progress::Event(Event::Failed(failure)) => {
                    saw.failure = Some(failure);
                    ends += 1;
                }
                Progress::Event(_) => {}
                Progress::Waiting(wait) => {
                    assert_eq!(saw.text, "", "an attempt follows though something was shown");
                    assert_eq!(wait.attempt as usize, saw.waits.len() + 2);
                    assert_eq!(wait.of, 3);
                    saw.waits.push(wait.failure);
                }
            }
        }
    };
    tokio::time::timeout(PATIENCE, steps).await.expect("the answer hangs");
    assert_eq!(ends, 1, "an answer has one end");
    saw
}
