//! Dropping an answer at any time leaves nothing running: the server sees the client disconnect, and no
//! attempt follows.

use std::time::Duration;

use pal_model::ChunkedText;
use pal_provider::{AnswerProgress, AnswerStream, AttemptTimeouts, ClientPolicy, ProviderClient};
use pal_wire::{ResponseEvent, RetryPolicy};
use tokio::time::timeout;

use crate::faults::{OutcomeRow, good_stream, scripts};
use crate::scripted_server::{ScriptedServer, ServerAction};
use crate::{PATIENCE, call, call_with, client_with};

/// A client without effective timeouts, so that only the drop can end a call.
fn patient(server: &ScriptedServer) -> ProviderClient {
    let long = Duration::from_secs(3600);
    let timeouts =
        AttemptTimeouts { connect: long, first_byte: long, idle: long, ..AttemptTimeouts::patient() };
    let retries = RetryPolicy { base_delay: long, max_delay: long, ..RetryPolicy::STANDARD };
    client_with(&server.url(), None, ClientPolicy { timeouts, retries, ..ClientPolicy::patient() })
}

/// Polls until a step matches, then once more without a result.
async fn stuck_after(answer: &mut AnswerStream, wished: fn(&AnswerProgress) -> bool) {
    let steps = async {
        while let Some(step) = answer.next().await {
            if wished(&step) {
                return;
            }
        }
        panic!("the answer ended");
    };
    timeout(PATIENCE, steps).await.expect("the step never came");
    stuck(answer).await;
}

async fn stuck(answer: &mut AnswerStream) {
    let step = timeout(Duration::from_millis(150), answer.next()).await;
    assert!(step.is_err(), "{step:?}");
}

async fn has_no_connection(server: &ScriptedServer, requests: usize) {
    timeout(PATIENCE, server.client_gone()).await.expect("the connection stays open");
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!((server.requests().len(), server.connections()), (requests, 1));
}

#[tokio::test]
async fn nothing_is_sent_before_the_first_step() {
    let server = ScriptedServer::start(vec![good_stream()]).await;
    let answer = patient(&server).send(call(true));
    tokio::time::sleep(Duration::from_millis(50)).await;
    drop(answer);
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn dropping_while_the_body_is_sent_closes_the_connection() {
    // Far more than sockets hold, and the server pauses after the head.
    let server = ScriptedServer::start(vec![vec![
        ServerAction::Early,
        ServerAction::Pause(Duration::from_millis(400)),
        ServerAction::Hang,
    ]])
    .await;
    let mut answer = patient(&server).send(call_with(ChunkedText::from("x".repeat(64_000_000)), true));
    stuck(&mut answer).await;
    drop(answer);
    has_no_connection(&server, 1).await;
}

#[tokio::test]
async fn dropping_before_the_head_closes_the_connection() {
    let server = ScriptedServer::start(vec![vec![ServerAction::Hang]]).await;
    let mut answer = patient(&server).send(call(true));
    stuck(&mut answer).await;
    drop(answer);
    has_no_connection(&server, 1).await;
}

#[tokio::test]
async fn dropping_within_a_stream_closes_the_connection() {
    let silence = table_row("silence", true);
    let server = ScriptedServer::start(scripts(&silence)).await;
    let mut answer = patient(&server).send(call(true));
    stuck_after(&mut answer, |step| matches!(step, AnswerProgress::Event(ResponseEvent::BlockDelta { .. })))
        .await;
    drop(answer);
    has_no_connection(&server, 1).await;
}

#[tokio::test]
async fn dropping_within_a_whole_answer_closes_the_connection() {
    let server = ScriptedServer::start(scripts(&table_row("silence", false))).await;
    let mut answer = patient(&server).send(call(false));
    stuck(&mut answer).await;
    drop(answer);
    has_no_connection(&server, 1).await;
}

#[tokio::test]
async fn dropping_within_a_refusal_closes_the_connection() {
    let server = ScriptedServer::start(scripts(&table_row("status 500 without an end", true))).await;
    let mut answer = patient(&server).send(call(true));
    stuck(&mut answer).await;
    drop(answer);
    has_no_connection(&server, 1).await;
}

#[tokio::test]
async fn dropping_within_a_wait_ends_the_attempts() {
    let server = ScriptedServer::start(scripts(&table_row("status 529", true))).await;
    let mut answer = patient(&server).send(call(true));
    stuck_after(&mut answer, |step| matches!(step, AnswerProgress::Waiting(_))).await;
    drop(answer);
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn cancelled_poll_loses_no_step() {
    let mut acts = good_stream();
    let pauses = acts.len();
    for at in 0..pauses {
        acts.insert(2 * at, ServerAction::Pause(Duration::from_millis(30)));
    }
    let server = ScriptedServer::start(vec![acts]).await;
    let mut answer = patient(&server).send(call(true));
    let mut steps = Vec::new();
    let mut given_up = 0;
    loop {
        match timeout(Duration::from_millis(5), answer.next()).await {
            Ok(Some(step)) => steps.push(step),
            Ok(None) => break,
            Err(_) => given_up += 1,
        }
        assert!(given_up < 4000, "the answer hangs");
    }
    assert!(given_up > 5, "no step was given up");
    assert_eq!(server.requests().len(), 1);
    let whole = ScriptedServer::start(vec![good_stream()]).await;
    let mut answer = patient(&whole).send(call(true));
    let mut expected = Vec::new();
    while let Some(step) = answer.next().await {
        expected.push(step);
    }
    assert_eq!(steps, expected);
}

/// Table row of a fault, after content was shown if possible.
fn table_row(fault: &str, stream: bool) -> OutcomeRow {
    let rows = crate::faults::table().into_iter().filter(|row| row.fault == fault && row.stream == stream);
    rows.max_by_key(|row| row.after).unwrap()
}
