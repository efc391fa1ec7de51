//! Dropping an answer, at any moment, leaves nothing running: the server sees the client go, and no attempt follows.

use std::time::Duration;

use pal_model::Parts;
use pal_provider::{Answer, Client, Policy, Progress, Timeouts};
use pal_wire::{Event, RetryPolicy};
use tokio::time::timeout;

use crate::faults::{Row, good_stream, scripts};
use crate::server::{Act, Server};
use crate::{PATIENCE, call, call_with, client_with};

/// A client that would wait for ever, so that nothing but the drop can end a call.
fn patient(server: &Server) -> Client {
    let long = Duration::from_secs(3600);
    let timeouts = Timeouts { connect: long, first_byte: long, idle: long, ..Timeouts::patient() };
    let retries = RetryPolicy { base: long, cap: long, ..RetryPolicy::STANDARD };
    client_with(&server.url(), None, Policy { timeouts, retries, ..Policy::patient() })
}

/// Asks for steps until one is as wished, then for one more, which does not come.
async fn stuck_after(answer: &mut Answer, wished: fn(&Progress) -> bool) {
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

async fn stuck(answer: &mut Answer) {
    let step = timeout(Duration::from_millis(150), answer.next()).await;
    assert!(step.is_err(), "{step:?}");
}

async fn sees_nobody(server: &Server, requests: usize) {
    timeout(PATIENCE, server.client_gone()).await.expect("the connection stays open");
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!((server.requests().len(), server.connections()), (requests, 1));
}

#[tokio::test]
async fn nothing_is_sent_before_the_first_step() {
    let server = Server::start(vec![good_stream()]).await;
    let answer = patient(&server).send(call(true));
    tokio::time::sleep(Duration::from_millis(50)).await;
    drop(answer);
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn dropping_while_the_body_is_sent_closes_the_connection() {
    // Far more than sockets hold, and the server pauses after the head.
    let server =
        Server::start(vec![vec![Act::Early, Act::Pause(Duration::from_millis(400)), Act::Hang]]).await;
    let mut answer = patient(&server).send(call_with(Parts::from("x".repeat(64_000_000)), true));
    stuck(&mut answer).await;
    drop(answer);
    sees_nobody(&server, 1).await;
}

#[tokio::test]
async fn dropping_before_the_head_closes_the_connection() {
    let server = Server::start(vec![vec![Act::Hang]]).await;
    let mut answer = patient(&server).send(call(true));
    stuck(&mut answer).await;
    drop(answer);
    sees_nobody(&server, 1).await;
}

#[tokio::test]
async fn dropping_within_a_stream_closes_the_connection() {
    let silence = table_row("silence", true);
    let server = Server::start(scripts(&silence)).await;
    let mut answer = patient(&server).send(call(true));
    stuck_after(&mut answer, |step| matches!(step, Progress::Event(Event::Grew { .. }))).await;
    drop(answer);
    sees_nobody(&server, 1).await;
}

#[tokio::test]
async fn dropping_within_a_whole_answer_closes_the_connection() {
    let server = Server::start(scripts(&table_row("silence", false))).await;
    let mut answer = patient(&server).send(call(false));
    stuck(&mut answer).await;
    drop(answer);
    sees_nobody(&server, 1).await;
}

#[tokio::test]
async fn dropping_within_a_refusal_closes_the_connection() {
    let server = Server::start(scripts(&table_row("status 500 without an end", true))).await;
    let mut answer = patient(&server).send(call(true));
    stuck(&mut answer).await;
    drop(answer);
    sees_nobody(&server, 1).await;
}

#[tokio::test]
async fn dropping_within_a_wait_ends_the_attempts() {
    let server = Server::start(scripts(&table_row("status 529", true))).await;
    let mut answer = patient(&server).send(call(true));
    stuck_after(&mut answer, |step| matches!(step, Progress::Waiting(_))).await;
    drop(answer);
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn giving_up_a_step_loses_nothing() {
    let mut acts = good_stream();
    let pauses = acts.len();
    for at in 0..pauses {
        acts.insert(2 * at, Act::Pause(Duration::from_millis(30)));
    }
    let server = Server::start(vec![acts]).await;
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
    let whole = Server::start(vec![good_stream()]).await;
    let mut answer = patient(&whole).send(call(true));
    let mut expected = Vec::new();
    while let Some(step) = answer.next().await {
        expected.push(step);
    }
    assert_eq!(steps, expected);
}

/// The fault of a name, after something was shown where that is possible.
fn table_row(fault: &str, stream: bool) -> Row {
    let rows = crate::faults::table().into_iter().filter(|row| row.fault == fault && row.stream == stream);
    rows.max_by_key(|row| row.after).unwrap()
}
