//! A key is sent in one header and appears nowhere else.

use pal_provider::{AnswerProgress, ApiKey, ProviderClient, ProviderEndpoint};
use pal_wire::{Dialect, FailureKind, ResponseEvent};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use crate::faults::{good_stream, scripts, table};
use crate::scripted_server::{ScriptedServer, ServerAction};
use crate::{call, client_with, short_policy, trace_answer};

/// It does not look like a key, so that no pattern masks it.
const CANARY: &str = "canary.7f3a9b2c5d8e1f60";

fn with_canary(base_url: &str) -> ProviderClient {
    client_with(base_url, Some(ApiKey::api(CANARY)), short_policy())
}

fn hides_it(text: &str) {
    assert!(!text.contains("canary") && !text.contains("7f3a9b2c"), "{text}");
}

#[tokio::test]
async fn the_key_arrives_and_the_debug_forms_do_not_show_it() {
    let server = ScriptedServer::start(vec![good_stream()]).await;
    let client = with_canary(&server.url());
    trace_answer(&client, call(true)).await;
    let request = String::from_utf8(server.requests().remove(0)).unwrap();
    assert!(request.contains(&format!("x-api-key: {CANARY}\r\n")), "{request}");
    hides_it(&format!("{client:?} {:?} {:?}", client.endpoint(), client.send(call(true))));
    hides_it(&format!("{:?} {:?}", ApiKey::api(CANARY), ApiKey::bearer(CANARY)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_failure_of_the_table_shows_the_key() {
    let runs: Vec<_> = table()
        .into_iter()
        .map(|row| {
            tokio::spawn(async move {
                let server = ScriptedServer::start(scripts(&row)).await;
                trace_answer(&with_canary(&server.url()), call(row.stream)).await
            })
        })
        .collect();
    for run in runs {
        hides_it(&format!("{:?}", run.await.unwrap()));
    }
}

#[tokio::test]
async fn echoed_keys_are_masked() {
    let long = "y".repeat(190);
    let bodies = [
        format!(
            r#"{{"type":"error","error":{{"type":"invalid_request_error","message":"bad key {CANARY}"}}}}"#
        ),
        format!(r#"{{"error":{{"code":"{CANARY}","message":"{CANARY}{CANARY}"}},"request_id":"{CANARY}"}}"#),
        format!("<html>{CANARY}</html>"),
        format!("x-api-key: {CANARY}"),
        // Messages may be cut anywhere; no part of the key may survive.
        format!("{}{CANARY}", "z ".repeat(90)),
        format!("{long}{CANARY}"),
        format!(r#"{{"error":{{"message":"{}{CANARY}"}}}}"#, "word ".repeat(97)),
        format!(
            "event: error\ndata: {{\"type\":\"error\",\"error\":{{\"type\":\"api_error\",\"message\":\"{CANARY}\"}}}}\n\n"
        ),
        format!("event: message_start\ndata: {{\"type\":\"message_start\",\"message\":\"{CANARY}\"\n\n"),
        format!("data: {CANARY}\n\n"),
    ];
    for body in bodies {
        for (status, kind) in
            [(200, "text/event-stream"), (200, "text/plain"), (400, "application/json"), (500, "text/html")]
        {
            let head = format!(
                "HTTP/1.1 {status} {CANARY}\r\ncontent-type: {kind}\r\nrequest-id: {CANARY}\r\nwww-authenticate: {CANARY}\r\n\
                 content-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            let server =
                ScriptedServer::start(vec![vec![ServerAction::Send(format!("{head}{body}").into_bytes())]])
                    .await;
            let client = with_canary(&server.url());
            let saw = trace_answer(&client, call(true)).await;
            let failure = saw.failure.as_ref().expect("a failure");
            hides_it(&format!("{saw:?} {failure}"));
            let failure = client.get("/v1/models", &[]).await;
            // Successful answers are returned as they are; only failures are masked.
            if let Err(failure) = failure {
                hides_it(&format!("{failure:?} {failure}"));
            }
        }
    }
}

#[tokio::test]
async fn message_cut_inside_the_key_is_masked() {
    let mut is_cut = false;
    for padding in 560..610 {
        let said = format!("{}{CANARY}", "z".repeat(padding));
        let body = format!(r#"{{"error":{{"type":"invalid_request_error","message":"{said}"}}}}"#);
        let length = body.len();
        let answer = format!("HTTP/1.1 400 X\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
        let server = ScriptedServer::start(vec![vec![ServerAction::Send(answer.into_bytes())]]).await;
        let message = trace_answer(&with_canary(&server.url()), call(true)).await.failure.unwrap().message;
        let rest = message.trim_start_matches('z').trim_end_matches(" …");
        assert!("***".starts_with(rest), "{message}");
        is_cut |= rest == "**";
    }
    assert!(is_cut, "no message was cut");
}

#[tokio::test]
async fn connections_that_fail_do_not_show_the_key() {
    // Nothing listens; then a server without TLS listens.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let secure = format!("https://{}", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(b"no TLS here").await.unwrap();
        }
    });
    for base in ["http://127.0.0.1:1", &secure] {
        let saw = trace_answer(&with_canary(base), call(true)).await;
        let failure = saw.failure.as_ref().unwrap();
        assert_eq!(failure.kind, FailureKind::Connection, "{failure:?}");
        assert!(failure.message.contains(base), "{failure}");
        hides_it(&format!("{saw:?} {failure}"));
    }
    server.abort();
}

#[tokio::test]
async fn redirects_do_not_leak_the_key() {
    let elsewhere = ScriptedServer::start(vec![good_stream()]).await;
    for status in [301, 302, 303, 307, 308] {
        let redirect = format!(
            "HTTP/1.1 {status} X\r\nlocation: {}/v1/messages\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
            elsewhere.url()
        );
        let server = ScriptedServer::start(vec![vec![ServerAction::Send(redirect.into_bytes())]]).await;
        let client = with_canary(&server.url());
        let sent = trace_answer(&client, call(true)).await.failure.unwrap();
        let got = client.get("/v1/models", &[]).await.unwrap_err();
        assert!(sent.message.contains("redirect") && got.message.contains("redirect"), "{sent}, {got}");
        assert_eq!((server.requests().len(), elsewhere.connections()), (2, 0));
    }
}

#[tokio::test]
async fn a_call_in_another_dialect_is_not_sent() {
    let server = ScriptedServer::start(vec![good_stream()]).await;
    let endpoint = ProviderEndpoint::new(Dialect::Chat, &server.url(), Some(ApiKey::api(CANARY))).unwrap();
    let mut answer = ProviderClient::new(endpoint, short_policy()).unwrap().send(call(true));
    let step = answer.next().await;
    assert!(matches!(step, Some(AnswerProgress::Event(ResponseEvent::Failed(_)))), "{step:?}");
    assert_eq!(server.connections(), 0);
}
