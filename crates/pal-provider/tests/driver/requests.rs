//! Sent requests: body byte for byte, length and headers; and calls that return plain JSON.

use std::time::Duration;

use pal_model::{ChunkedText, SharedText, TextChunk};
use pal_provider::{ApiKey, ProviderClient, ProviderEndpoint};
use pal_wire::{ApiCall, Dialect, FailureKind};

use crate::faults::{ALL, good_stream, scripts, table};
use crate::scripted_server::{ScriptedServer, ServerAction};
use crate::{call, call_with, client, short_policy, trace_answer};

/// A body with parts of all sizes.
fn mixed() -> ChunkedText {
    let sizes = [1, 30_000, 3, 200, 1_000_000, 8_191, 8_192, 65_536, 65_537, 2];
    let parts = (0..200).flat_map(|at| {
        let size = sizes[at % sizes.len()];
        [TextChunk::Fixed(","), TextChunk::Shared(SharedText::from("aä€😀z".repeat(size / 11 + 1)))]
    });
    parts.collect()
}

fn json(body: &str) -> ServerAction {
    let length = body.len();
    let head =
        format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n");
    ServerAction::Send(format!("{head}{body}").into_bytes())
}

#[tokio::test]
async fn body_arrives_byte_for_byte_on_every_attempt() {
    let once = table().into_iter().find(|row| row.fault == "status 529 once" && row.stream).unwrap();
    let server = ScriptedServer::start(scripts(&once)).await;
    let parts = mixed();
    let saw = trace_answer(&client(&server.url()), call_with(parts.clone(), true)).await;
    assert_eq!(saw.text, ALL);
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    for request in requests {
        let head = request.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
        assert!(request[head..] == *parts.to_joined_string().as_bytes(), "the body differs");
        let head = String::from_utf8_lossy(&request[..head]).to_lowercase();
        assert!(head.starts_with("post /v1/messages http/1.1\r\n"), "{head}");
        for line in [
            format!("content-length: {}", parts.byte_len()).as_str(),
            "content-type: application/json",
            "accept: text/event-stream",
            "anthropic-version: 2026-10-21",
            "x-api-key: sk-test-key",
        ] {
            assert_eq!(head.lines().filter(|it| *it == line).count(), 1, "{line} in {head}");
        }
        assert!(head.contains("user-agent: palimpsest/"), "{head}");
        assert!(!head.contains("transfer-encoding"), "{head}");
    }
}

#[tokio::test]
async fn connection_is_reused_after_an_answer() {
    let keep = |acts: Vec<ServerAction>| {
        acts.into_iter().map(|act| match act {
            ServerAction::Send(bytes) => {
                let text = String::from_utf8(bytes).unwrap();
                ServerAction::Send(text.replace("connection: close\r\n", "").into_bytes())
            }
            other => other,
        })
    };
    let acts = keep(good_stream())
        .chain([ServerAction::Next])
        .chain(keep(good_stream()))
        .chain([ServerAction::Hang])
        .collect();
    let server = ScriptedServer::start(vec![acts]).await;
    let client = client(&server.url());
    for _ in 0..2 {
        assert_eq!(trace_answer(&client, call(true)).await.text, ALL);
        // The connection returns to the pool shortly after the answer.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!((server.connections(), server.requests().len()), (1, 2));
}

#[tokio::test]
async fn counting_and_models_are_plain_json() {
    let models = r#"{"data":[],"has_more":false}"#;
    let acts = vec![json(r#"{"input_tokens":7}"#), ServerAction::Next, json(models)];
    let server = ScriptedServer::start(vec![acts]).await;
    let client = client(&server.url());
    let mut count = call(false);
    count.path = "/v1/messages/count_tokens";
    assert_eq!(client.post(&count).await.unwrap().as_str(), r#"{"input_tokens":7}"#);
    let headers = [("anthropic-version", "2026-10-21".to_owned())];
    assert_eq!(client.get("/v1/models?limit=5", &headers).await.unwrap().as_str(), models);
    let requests: Vec<String> =
        server.requests().into_iter().map(|request| String::from_utf8(request).unwrap()).collect();
    assert!(requests[0].starts_with("POST /v1/messages/count_tokens HTTP/1.1\r\n"), "{}", requests[0]);
    assert!(requests[0].ends_with("\r\n\r\n{}"), "{}", requests[0]);
    assert!(requests[1].starts_with("GET /v1/models?limit=5 HTTP/1.1\r\n"), "{}", requests[1]);
    assert!(requests[1].contains("anthropic-version: 2026-10-21\r\n"), "{}", requests[1]);
}

#[tokio::test]
async fn plain_json_calls_retry_and_fail_like_answers() {
    let mut tried = 0;
    for row in table() {
        let is_refusal = row.fault.starts_with("status") && row.fault != "status 413 while the body is sent";
        let (true, false) = (is_refusal, row.stream) else { continue };
        let server = ScriptedServer::start(scripts(&row)).await;
        let got = client(&server.url()).post(&call(false)).await;
        let outcome = got.err().map_or("Finished".to_owned(), |failure| format!("{:?}", failure.kind));
        assert_eq!((outcome, server.requests().len()), (row.outcome, row.attempts), "{}", row.fault);
        tried += 1;
    }
    assert!(tried > 5, "{tried}");
}

#[tokio::test]
async fn non_json_replies_are_malformed() {
    for fault in ["web page", "plain text"] {
        let row = table().into_iter().find(|row| row.fault == fault).unwrap();
        let server = ScriptedServer::start(scripts(&row)).await;
        let failure = client(&server.url()).get("/v1/models", &[]).await.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Malformed, "{fault}");
    }
}

#[tokio::test]
async fn invalid_header_fails() {
    let server = ScriptedServer::start(vec![good_stream()]).await;
    let failure = client(&server.url()).get("/v1/models", &[("x-a", "a\nb".to_owned())]).await.unwrap_err();
    assert_eq!((failure.kind, server.connections()), (FailureKind::Invalid, 0));
}

#[tokio::test]
async fn complete_answer_has_blocks_and_finish() {
    let server = ScriptedServer::start(vec![good_stream()]).await;
    let whole = client(&server.url()).collect_answer(call(true)).await.unwrap();
    assert_eq!(whole.blocks.len(), 1);
    assert_eq!(whole.blocks[0].string("text").as_deref(), Some(ALL));
    assert_eq!(whole.finished.stop_reason.as_deref(), Some("end_turn"));
}

#[tokio::test]
async fn other_dialects_send_the_same_way() {
    let chat = "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{\"index\":0,\
        \"delta\":{\"role\":\"assistant\",\"content\":\"Hello, world\"},\"finish_reason\":null}]}\n\n\
        data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{\"index\":0,\
        \"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let chat_whole = r#"{"id":"chatcmpl-1","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hello, world"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}"#;
    let responses = r#"{"id":"resp_1","object":"response","status":"completed","model":"m","output":[{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Hello, world","annotations":[]}]}],"usage":{"input_tokens":3,"output_tokens":2}}"#;
    let cases = [
        (Dialect::Chat, "/v1/chat/completions", chat, true),
        (Dialect::Chat, "/v1/chat/completions", chat_whole, false),
        (Dialect::Responses, "/v1/responses", responses, false),
    ];
    for (dialect, path, body, stream) in cases {
        let server = ScriptedServer::start(vec![vec![json(body)]]).await;
        let endpoint =
            ProviderEndpoint::new(dialect, &format!("{}/v1", server.url()), Some(ApiKey::api("sk-test-key")))
                .unwrap();
        let client = ProviderClient::new(endpoint, short_policy()).unwrap();
        let call =
            ApiCall { dialect, path, headers: Vec::new(), body: ChunkedText::from("{}".to_owned()), stream };
        let saw = trace_answer(&client, call).await;
        assert_eq!((saw.text.as_str(), saw.failure), (ALL, None), "{dialect:?}");
        let request = String::from_utf8(server.requests().remove(0)).unwrap();
        assert!(request.starts_with(&format!("POST {path} HTTP/1.1\r\n")), "{request}");
        assert!(request.contains("authorization: Bearer sk-test-key\r\n"), "{request}");
        assert!(!request.contains("x-api-key"), "{request}");
    }
}

#[test]
fn loopback_traffic_bypasses_the_proxy() {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    for name in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
        // Nothing listens there, so that everything sent through the proxy fails.
        command.env(name, "http://127.0.0.1:1");
    }
    let output =
        command.args(["--exact", "requests::complete_answer_has_blocks_and_finish"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}
