//! The simulator over its socket, with raw bytes.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use pal_sim::{ExtractiveModel, FaultPlan, SimSettings, SimulatedProvider};
use pal_sim_server::{ClockSpeed, SimServerOptions, serve};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

struct RunningServer {
    address: std::net::SocketAddr,
    stop: oneshot::Sender<()>,
    task: tokio::task::JoinHandle<std::io::Result<pal_sim::LedgerTotals>>,
}

async fn start(speed: ClockSpeed, record: Option<PathBuf>, faults: &str) -> RunningServer {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let settings = SimSettings { faults: FaultPlan::parse(faults).unwrap(), ..SimSettings::plain() };
    let simulator = SimulatedProvider::new(settings, Box::new(ExtractiveModel));
    let options = SimServerOptions { speed, record, announces: true, notice: Box::new(|_| {}) };
    let (stop, stopped) = oneshot::channel();
    let task = tokio::spawn(serve(listener, simulator, options, async {
        let _ = stopped.await;
    }));
    RunningServer { address, stop, task }
}

impl RunningServer {
    /// Reads everything on a new connection until it is closed.
    async fn raw(&self, method: &str, path: &str, body: &str) -> Vec<u8> {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: sim\r\nconnection: close\r\nanthropic-version: 2026-10-21\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let _ = stream.write_all(body.as_bytes()).await;
        let mut answer = Vec::new();
        let reading = stream.read_to_end(&mut answer);
        let _ =
            tokio::time::timeout(Duration::from_secs(20), reading).await.expect("the server answers in time");
        answer
    }

    async fn json(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let answer = String::from_utf8(self.raw(method, path, &body).await).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body.trim()).unwrap())
    }
}

fn question(stream: bool) -> Value {
    json!({"model": "claude-opus-5-5", "max_tokens": 100, "stream": stream,
        "messages": [{"role": "user", "content": "Is anybody there?"}]})
}

#[tokio::test]
async fn answers_come_whole_and_as_events() {
    let server = start(ClockSpeed::Virtual, None, "").await;
    assert_eq!(server.json("GET", "/health", &Value::Null).await, (200, json!({"status": "ok"})));
    let (status, whole) = server.json("POST", "/v1/messages", &question(false)).await;
    assert_eq!((status, whole["type"].as_str()), (200, Some("message")));
    let events =
        String::from_utf8(server.raw("POST", "/v1/messages", &question(true).to_string()).await).unwrap();
    assert!(
        events.contains("content-type: text/event-stream") && events.contains("transfer-encoding: chunked")
    );
    assert!(events.contains("event: message_start") && events.contains("event: message_stop"), "{events}");
    assert!(events.ends_with("0\r\n\r\n"), "the end of the stream is told");
    let (_, ledger) = server.json("GET", "/sim/ledger", &Value::Null).await;
    assert_eq!(ledger["totals"]["exchanges"], 2);
    server.stop.send(()).unwrap();
    assert_eq!(server.task.await.unwrap().unwrap().exchanges, 2);
}

#[tokio::test]
async fn virtual_clock_advances_by_answers_and_by_request() {
    let server = start(ClockSpeed::Virtual, None, "").await;
    let now = async || {
        let (_, clock) = server.json("GET", "/sim/clock", &Value::Null).await;
        clock["now"].as_str().unwrap().parse::<pal_model::Timestamp>().unwrap().milliseconds()
    };
    let before = now().await;
    let (status, _) = server.json("POST", "/sim/clock", &json!({"advance_seconds": 3600})).await;
    assert_eq!((status, now().await - before), (200, 3_600_000));
    assert_eq!(server.json("POST", "/sim/clock", &json!({"advance_seconds": -1})).await.0, 400);
    let real = start(ClockSpeed::Real, None, "").await;
    assert_eq!(real.json("POST", "/sim/clock", &json!({"advance_seconds": 1})).await.0, 409);
}

#[tokio::test]
async fn exchanges_are_recorded_privately_and_numbering_continues() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("exchanges");
    for run in 1..=2 {
        let server = start(ClockSpeed::Virtual, Some(record.clone()), "").await;
        server.json("POST", "/v1/messages", &question(false)).await;
        let request = record.join(format!("{run:04}.request.json"));
        let kept: Value = serde_json::from_slice(&std::fs::read(&request).unwrap()).unwrap();
        assert_eq!(kept, question(false));
        assert_eq!(std::fs::metadata(&request).unwrap().permissions().mode() & 0o777, 0o600);
        let response = std::fs::read_to_string(record.join(format!("{run:04}.response.txt"))).unwrap();
        assert!(
            response.starts_with("POST /v1/messages\nHTTP 200\n")
                && response.contains("\"type\":\"message\""),
            "{response}"
        );
    }
    assert_eq!(std::fs::metadata(&record).unwrap().permissions().mode() & 0o777, 0o700);
}

#[tokio::test]
async fn oversized_body_gets_the_providers_error() {
    let server = start(ClockSpeed::Virtual, None, "").await;
    for bytes in [33 << 20, 40 << 20] {
        let (status, error) = server.json("POST", "/v1/messages", &json!("x".repeat(bytes))).await;
        assert_eq!((status, error["error"]["type"].as_str()), (413, Some("request_too_large")), "{bytes}");
    }
}

#[tokio::test]
async fn broken_answers_end_at_the_fault_point() {
    let server = start(ClockSpeed::Virtual, None, "reset@1,cut=60@2,silence=60@3").await;
    let stream = question(true).to_string();
    assert!(server.raw("POST", "/v1/messages", &stream).await.is_empty(), "not a byte comes");
    let cut = String::from_utf8(server.raw("POST", "/v1/messages", &stream).await).unwrap();
    let (head, body) = cut.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200") && body.contains("message_start"), "{cut}");
    assert!(!body.contains("message_stop") && !body.ends_with("0\r\n\r\n"), "{cut}");
    // Silence lasts until one side ends it; here the server stops.
    let silent =
        tokio::time::timeout(Duration::from_millis(300), server.raw("POST", "/v1/messages", &stream));
    assert!(silent.await.is_err());
}

#[tokio::test]
async fn stopping_closes_every_connection() {
    let server = start(ClockSpeed::Virtual, None, "silence=60").await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let body = question(true).to_string();
    let head = format!(
        "POST /v1/messages HTTP/1.1\r\nhost: sim\r\nanthropic-version: 2026-10-21\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut first = [0; 16];
    stream.read_exact(&mut first).await.unwrap();
    server.stop.send(()).unwrap();
    server.task.await.unwrap().unwrap();
    let mut rest = Vec::new();
    let ended = tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut rest)).await;
    assert!(ended.is_ok(), "the connection is closed");
}
