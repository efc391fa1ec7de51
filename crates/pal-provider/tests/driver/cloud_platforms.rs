//! Bedrock and Vertex through the whole client, against a server on loopback: path, signature or token, body, stream.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pal_model::ChunkedText;
use pal_provider::{AwsCredentials, CloudPlatform, GoogleCredentials, ProviderClient, ProviderEndpoint};
use pal_wire::{ApiCall, FailureKind};

use crate::faults::{ALL, good_stream, stream_events};
use crate::scripted_server::{ScriptedServer, ServerAction};
use crate::{call_with, short_policy, trace_answer};

const BODY: &str =
    r#"{"model":"claude-opus-5-5","max_tokens":8,"stream":true,"messages":[{"role":"user","content":"hi"}]}"#;

fn client(platform: CloudPlatform, server: &ScriptedServer) -> ProviderClient {
    let endpoint = ProviderEndpoint::on_platform(platform, Some(&server.url())).unwrap();
    ProviderClient::new(endpoint, short_policy()).unwrap()
}

fn bedrock() -> CloudPlatform {
    CloudPlatform::Bedrock {
        region: String::from("us-west-2"),
        credentials: AwsCredentials::new(
            "AKIDEXAMPLE".into(),
            "canary-secret".into(),
            Some("canary-session".into()),
        ),
        models: [("claude-opus-5-5".into(), "us.anthropic.claude-opus-5-5-v1:0".into())].into(),
    }
}

fn vertex(credentials: GoogleCredentials) -> CloudPlatform {
    CloudPlatform::Vertex {
        project: String::from("my-project"),
        region: String::from("europe-west1"),
        credentials,
        models: Default::default(),
    }
}

fn messages_call() -> ApiCall {
    let mut call = call_with(ChunkedText::from(BODY.to_owned()), true);
    call.headers.push(("anthropic-beta", String::from("one-beta, another-beta")));
    call
}

/// Head in lower case and body of a request.
fn parts(request: &[u8]) -> (String, String) {
    let text = String::from_utf8(request.to_vec()).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.to_lowercase(), body.to_owned())
}

/// CRC-32 as in zip.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |value: u32| if value & 1 == 1 { value >> 1 ^ 0xedb8_8320 } else { value >> 1 };
    !bytes.iter().fold(!0, |sum: u32, byte| (0..8).fold(sum ^ u32::from(*byte), |value, _| step(value)))
}

/// A frame of `application/vnd.amazon.eventstream` with text headers.
fn frame(headers: &[(&str, &str)], payload: &str) -> Vec<u8> {
    let mut head = Vec::new();
    for (name, value) in headers {
        head.push(name.len() as u8);
        head.extend_from_slice(name.as_bytes());
        head.push(7);
        head.extend_from_slice(&(value.len() as u16).to_be_bytes());
        head.extend_from_slice(value.as_bytes());
    }
    let mut bytes = ((16 + head.len() + payload.len()) as u32).to_be_bytes().to_vec();
    bytes.extend_from_slice(&(head.len() as u32).to_be_bytes());
    bytes.extend_from_slice(&crc32(&bytes).to_be_bytes());
    bytes.extend_from_slice(&head);
    bytes.extend_from_slice(payload.as_bytes());
    bytes.extend_from_slice(&crc32(&bytes).to_be_bytes());
    bytes
}

/// An answer of Bedrock with these frames, cut at odd places.
fn framed(frames: &[Vec<u8>]) -> Vec<ServerAction> {
    let bytes = frames.concat();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/vnd.amazon.eventstream\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n",
        bytes.len()
    );
    let mut actions = vec![ServerAction::Send(head.into_bytes())];
    actions.extend(bytes.chunks(37).map(|piece| ServerAction::Send(piece.to_vec())));
    actions
}

fn chunk_frame(event: &str) -> Vec<u8> {
    let headers =
        [(":event-type", "chunk"), (":content-type", "application/json"), (":message-type", "event")];
    frame(&headers, &format!(r#"{{"bytes":"{}"}}"#, STANDARD.encode(event)))
}

#[tokio::test]
async fn bedrock_gets_a_signed_request_and_its_frames_are_an_answer() {
    let frames: Vec<Vec<u8>> = stream_events().iter().map(|event| chunk_frame(event)).collect();
    let server = ScriptedServer::start(vec![framed(&frames)]).await;
    let saw = trace_answer(&client(bedrock(), &server), messages_call()).await;
    assert_eq!((saw.text.as_str(), saw.failure.is_none()), (ALL, true), "{saw:?}");
    let (head, body) = parts(&server.requests()[0]);
    assert!(
        head.starts_with(
            "post /model/us.anthropic.claude-opus-5-5-v1%3a0/invoke-with-response-stream http/1.1\r\n"
        ),
        "{head}"
    );
    for part in [
        "accept: application/vnd.amazon.eventstream",
        "authorization: aws4-hmac-sha256 credential=akidexample/",
        "/us-west-2/bedrock/aws4_request, signedheaders=content-type;host;x-amz-date;x-amz-security-token, signature=",
        "x-amz-security-token: canary-session",
        "x-amz-date: 2",
    ] {
        assert!(head.contains(part), "{part} in {head}");
    }
    assert!(!head.contains("canary-secret") && !head.contains("x-api-key"), "{head}");
    assert_eq!(
        body,
        r#"{"anthropic_version":"bedrock-2023-05-31","anthropic_beta":["one-beta","another-beta"],"max_tokens":8,"messages":[{"role":"user","content":"hi"}]}"#
    );
}

#[tokio::test]
async fn errors_of_bedrock_are_errors_of_the_dialect() {
    let busy = frame(
        &[(":exception-type", "throttlingException"), (":message-type", "exception")],
        r#"{"message":"Too many requests"}"#,
    );
    let frames: Vec<Vec<u8>> = stream_events().iter().map(|event| chunk_frame(event)).collect();
    // A retry follows an exception before the answer, and signs anew.
    let server = ScriptedServer::start(vec![framed(&[busy]), framed(&frames)]).await;
    let saw = trace_answer(&client(bedrock(), &server), messages_call()).await;
    assert_eq!((saw.text.as_str(), saw.waits.len()), (ALL, 1), "{saw:?}");
    assert_eq!(saw.waits[0].kind, FailureKind::RateLimited);
    let body = r#"{"message":"The security token included in the request is invalid."}"#;
    let refusal = format!(
        "HTTP/1.1 403 Forbidden\r\nx-amzn-errortype: UnrecognizedClientException\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    let server = ScriptedServer::start(vec![vec![ServerAction::Send(refusal.into_bytes())]]).await;
    let failure = trace_answer(&client(bedrock(), &server), messages_call()).await.failure.unwrap();
    assert_eq!((failure.kind, failure.status), (FailureKind::Permission, Some(403)), "{failure:?}");
    assert!(failure.message.contains("security token"), "{failure:?}");
}

#[tokio::test]
async fn vertex_gets_a_token_and_its_events_are_an_answer() {
    let server = ScriptedServer::start(vec![good_stream()]).await;
    let platform = vertex(GoogleCredentials::token("canary-token".into()));
    let saw = trace_answer(&client(platform, &server), messages_call()).await;
    assert_eq!((saw.text.as_str(), saw.failure.is_none()), (ALL, true), "{saw:?}");
    let (head, body) = parts(&server.requests()[0]);
    assert!(
        head.starts_with(
            "post /v1/projects/my-project/locations/europe-west1/publishers/anthropic/models/claude-opus-5-5:streamrawpredict http/1.1\r\n"
        ),
        "{head}"
    );
    assert!(head.contains("authorization: bearer canary-token") && !head.contains("x-api-key"), "{head}");
    assert_eq!(
        body,
        r#"{"anthropic_version":"vertex-2023-10-16","anthropic_beta":["one-beta","another-beta"],"max_tokens":8,"stream":true,"messages":[{"role":"user","content":"hi"}]}"#
    );
}
