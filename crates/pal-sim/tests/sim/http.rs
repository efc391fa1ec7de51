//! Routes, keys, versions and HTTP errors.

use pal_model::Timestamp;
use pal_sim::{FaultPlan, HttpRequest, OutputBlock, SimSettings, StopOverride};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::client::{TestClient, long, request, text, tool, user};

fn body_of(reply: &pal_sim::HttpReply) -> Value {
    serde_json::from_slice(&reply.body()).unwrap()
}

#[test]
fn routes_answer_or_explain_the_error() {
    let hello = br#"{"model":"claude-opus-5-5","max_tokens":10,"messages":[{"role":"user","content":"Hi"}]}"#;
    let counted = br#"{"model":"claude-opus-5-5","messages":[{"role":"user","content":"Hi"}]}"#;
    let unknown = br#"{"model":"claude-nobody","max_tokens":10,"messages":[{"role":"user","content":"Hi"}]}"#;
    let rows: &[(&str, &str, &[u8], u16, &str)] = &[
        ("GET", "/health", b"", 200, ""),
        ("POST", "/v1/messages", hello, 200, ""),
        ("POST", "/v1/messages?beta=true", hello, 200, ""),
        ("POST", "/v1/messages/count_tokens", counted, 200, ""),
        ("GET", "/v1/models", b"", 200, ""),
        ("GET", "/v1/models/claude-opus-5-5", b"", 200, ""),
        ("GET", "/v1/models/gpt-5", b"", 404, "not_found_error"),
        ("GET", "/v1/messages", b"", 405, "invalid_request_error"),
        ("POST", "/v1/models", b"{}", 405, "invalid_request_error"),
        ("POST", "/v1/nothing", b"{}", 404, "not_found_error"),
        ("POST", "/v1/messages", unknown, 404, "not_found_error"),
        ("POST", "/v1/messages", b"{", 400, "invalid_request_error"),
        ("POST", "/v1/messages", b"{}", 400, "invalid_request_error"),
    ];
    let mut client = TestClient::new();
    for (method, path, body, status, kind) in rows {
        let reply = client.request(method, path, body);
        let json = body_of(&reply);
        assert_eq!(reply.status, *status, "{method} {path}: {json}");
        if !kind.is_empty() {
            assert_eq!((&json["type"], &json["error"]["type"]), (&json!("error"), &json!(kind)), "{json}");
        }
        if *path != "/health" {
            let id = reply.headers.iter().find(|(name, _)| *name == "request-id").unwrap();
            assert!(id.1.starts_with("req_"), "{id:?}");
            assert!(*status == 200 || json["request_id"] == id.1.as_str(), "{json}");
        }
    }
}

#[test]
fn a_body_over_the_limit_is_too_large() {
    let mut client = TestClient::new();
    let reply = client.request("POST", "/v1/messages", &vec![b' '; 32 * 1024 * 1024 + 1]);
    assert_eq!((reply.status, body_of(&reply)["error"]["type"].as_str()), (413, Some("request_too_large")));
}

#[test]
fn keys_are_checked_if_configured() {
    let mut client =
        TestClient::with(SimSettings { keys: Some(vec!["right".into()]), ..SimSettings::plain() });
    let body = request(json!([user(json!("Hi"))]));
    client.key = "wrong".into();
    let (status, error) = client.post("/v1/messages", &body);
    assert_eq!((status, error["error"]["type"].as_str()), (401, Some("authentication_error")));
    client.key = "right".into();
    client.ask(&body);
    let headers = [
        ("authorization".to_owned(), "Bearer right".to_owned()),
        ("anthropic-version".to_owned(), "2023-06-01".to_owned()),
    ];
    let body = body.to_string();
    let bearer = pal_sim::HttpRequest {
        method: "POST",
        path: "/v1/messages",
        headers: &headers,
        body: body.as_bytes(),
    };
    let now = pal_model::Timestamp::from_milliseconds(0);
    assert_eq!(client.simulator.handle(now, &bearer).status, 200);
    let no_version = pal_sim::HttpRequest { headers: &headers[..1], ..bearer };
    assert_eq!(client.simulator.handle(now, &no_version).status, 400);
}

#[test]
fn a_prompt_longer_than_the_window_is_refused_with_both_numbers() {
    let mut client = TestClient::new();
    client.version = "2023-06-01";
    let mut body = request(json!([user(json!(long("much", 2_500)))]));
    body["model"] = json!("claude-haiku-4-5");
    let counted = client.count(&body);
    assert!(counted > 200_000, "{counted}");
    let error = client.refused(&body);
    assert_eq!(error["message"], format!("prompt is too long: {counted} tokens > 200000 maximum"));
}

#[test]
fn models_without_context_management_want_room_for_the_answer() {
    let cards = SimSettings::plain().cards.with_overrides(
        "[models.old]\nlike = \"claude-haiku-4-5\"\nwindow = 2000\nmax_output = 1900\ncontext_management = []\n",
    );
    let mut client = TestClient::with(SimSettings { cards: cards.unwrap(), ..SimSettings::plain() });
    client.version = "2023-06-01";
    let mut body = json!({"model": "old", "max_tokens": 1900, "messages": [user(json!(long("words", 2)))]});
    let counted = client.count(&body);
    let error = client.refused(&body);
    let start = format!("input length and `max_tokens` exceed context limit: {counted} + 1900 > 2000, ");
    assert!(error["message"].as_str().unwrap().starts_with(&start), "{error}");
    body["max_tokens"] = json!(100);
    client.ask(&body);
    body["max_tokens"] = json!(1900);
    client.betas = "model-context-window-exceeded-2025-08-26".into();
    client.say(vec![OutputBlock::Text(long("answer", 100))]);
    let answer = client.ask(&body);
    assert_eq!(answer["stop_reason"], "model_context_window_exceeded");
    assert!(answer["usage"]["output_tokens"].as_u64().unwrap() + counted <= 2000);
}

#[test]
fn answers_end_at_the_limit_and_at_stop_sequences() {
    let mut client = TestClient::new();
    let mut body = request(json!([user(json!("Count"))]));
    body["max_tokens"] = json!(20);
    client.say(vec![OutputBlock::Text(long("count", 10))]);
    let answer = client.ask(&body);
    assert_eq!(answer["stop_reason"], "max_tokens");
    assert!((15..=20).contains(&answer["usage"]["output_tokens"].as_u64().unwrap()), "{answer}");
    body["stop_sequences"] = json!(["four"]);
    client.say(vec![OutputBlock::Text("three four five".into())]);
    let answer = client.ask(&body);
    assert_eq!((&answer["stop_reason"], &answer["stop_sequence"]), (&json!("stop_sequence"), &json!("four")));
    assert_eq!(answer["content"], json!([text("three ")]));
    client.stop(vec![], StopOverride::Refusal);
    assert_eq!(client.ask(&body)["stop_reason"], "refusal");
}

#[test]
fn thinking_comes_only_where_it_is_allowed_and_is_not_shown_by_newer_models() {
    let think = || vec![OutputBlock::Thinking("Let me see".into()), OutputBlock::Text("Yes".into())];
    let ask = |model: &str, thinking: Value| {
        let mut client = TestClient::new();
        client.say(think());
        let mut body = json!({"model": model, "max_tokens": 4000, "messages": [user(json!("Well?"))]});
        if !thinking.is_null() {
            body["thinking"] = thinking;
        }
        let answer = client.ask(&body);
        let block = answer["content"][0].clone();
        (block["type"].as_str().unwrap().to_owned(), block["thinking"].as_str().map(str::to_owned))
    };
    let shown = ("thinking".to_owned(), Some("Let me see".to_owned()));
    let hidden = ("thinking".to_owned(), Some(String::new()));
    let none = ("text".to_owned(), None);
    assert_eq!(ask("claude-opus-5-5", Value::Null), hidden);
    assert_eq!(ask("claude-opus-5-5", json!({"type": "adaptive", "display": "summarized"})), shown);
    assert_eq!(ask("claude-opus-5", Value::Null), none);
    assert_eq!(ask("claude-opus-5", json!({"type": "adaptive"})), hidden);
    assert_eq!(ask("claude-opus-4-6", json!({"type": "enabled", "budget_tokens": 2000})), shown);
    assert_eq!(ask("claude-opus-5", json!({"type": "disabled"})), none);
    assert_eq!(ask("claude-sonnet-5-5", json!({"type": "between_tools"})), none);
}

#[test]
fn usage_is_whole_and_passes_are_on_the_beta_surface() {
    let mut client = TestClient::new();
    client.say(vec![OutputBlock::Thinking("Hm, let me think".into()), OutputBlock::Text("Yes".into())]);
    let body = request(json!([user(json!("Well?"))]));
    let (_, answer) = client.post("/v1/messages?beta=true", &body);
    let usage = &answer["usage"];
    assert_eq!(usage["service_tier"], "standard");
    assert!(usage["output_tokens_details"]["thinking_tokens"].as_u64().unwrap() > 3, "{usage}");
    assert_eq!(usage["iterations"][0]["output_tokens"], usage["output_tokens"]);
    assert!(client.ask(&body)["usage"].get("iterations").is_none());
    let cost = client.simulator.ledger().exchanges().next().unwrap().cost.unwrap();
    let expected =
        usage["input_tokens"].as_f64().unwrap() * 4e-6 + usage["output_tokens"].as_f64().unwrap() * 20e-6;
    assert!((cost - expected).abs() < 1e-12, "{cost} {expected}");
    assert_eq!(client.simulator.ledger().totals().exchanges, 2);
}

#[test]
fn streamed_and_whole_answers_agree() {
    let body = request(json!([user(json!("Well?"))]));
    let mut client = TestClient::new();
    let whole = client.ask(&body);
    let mut client = TestClient::new();
    let mut streamed = body.clone();
    streamed["stream"] = json!(true);
    let reply = client.request("POST", "/v1/messages", streamed.to_string().as_bytes());
    let text = String::from_utf8(reply.body()).unwrap();
    assert!(text.starts_with("event: message_start\n"), "{text}");
    assert!(text.contains(&format!("\"output_tokens\":{}", whole["usage"]["output_tokens"])), "{text}");
    assert_eq!(reply.exchange.unwrap().response, whole["id"].as_str().unwrap());
}

#[test]
fn replacing_faults_leave_no_state() {
    let faults = FaultPlan::parse("529@1").unwrap();
    let mut client = TestClient::with(SimSettings { faults, ..SimSettings::plain() });
    let mut body = request(json!([user(json!("Hi"))]));
    body["system"][0] = crate::client::marked(body["system"][0].clone());
    let (status, error) = client.post("/v1/messages", &body);
    assert_eq!((status, error["error"]["type"].as_str()), (529, Some("overloaded_error")));
    let counts = client.usage(&body);
    assert!(counts.read == 0 && counts.written() > 0, "{counts:?}");
}

#[test]
fn deferred_tools_are_counted_where_referenced() {
    let mut client = TestClient::new();
    let plain = request(json!([user(json!("Hi"))]));
    let mut deferred = plain.clone();
    let mut late = tool("Late");
    late["defer_loading"] = json!(true);
    deferred["tools"].as_array_mut().unwrap().push(late);
    assert_eq!(client.count(&plain), client.count(&deferred));
    let found = |reference: Value| {
        let mut body = deferred.clone();
        body["messages"] = json!([
            user(json!("Find")),
            {"role": "assistant", "content": [crate::client::call("toolu_1", "Read")]},
            user(json!([{"type": "tool_result", "tool_use_id": "toolu_1", "content": [reference]}])),
        ]);
        body
    };
    let referring = client.count(&found(json!({"type": "tool_reference", "tool_name": "Late"})));
    let not = client.count(&found(text("Late")));
    assert!(referring > not + 30, "{referring} {not}");
}

/// All paths in a value, as JSON pointers.
fn places(value: &Value, at: &str, out: &mut Vec<String>) {
    out.push(at.to_owned());
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| places(value, &format!("{at}/{name}"), out));
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, value)| places(value, &format!("{at}/{index}"), out));
        }
        _ => {}
    }
}

/// A request with every feature.
fn rich() -> Value {
    let mut body = request(json!([
        user(json!([text("Start"), {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}])),
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "Hm", "signature": "EqQBabcd"},
            crate::client::call("toolu_1", "Read"),
        ]},
        user(json!([crate::client::result("toolu_1", "found")])),
        {"role": "system", "content": "Quick", "clear_at": "next_user_message"},
        {"role": "assistant", "content": [{"type": "compaction", "content": "All", "encrypted_content": "abc"}, text("So")]},
        user(json!("Next")),
    ]));
    body["thinking"] =
        json!({"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}});
    body["context_management"] = json!({"edits": [
        {"type": "clear_thinking_20251015", "keep": {"type": "thinking_turns", "value": 1}},
        {"type": "clear_tool_uses_20250919", "trigger": {"type": "input_tokens", "value": 1}, "keep": {"type": "tool_uses", "value": 0}},
        {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 50_000}},
    ]});
    body["cache_control"] = json!({"type": "ephemeral"});
    body["diagnostics"] = json!({"previous_message_id": "msg_x"});
    body["stop_sequences"] = json!(["END"]);
    body
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(pal_testkit::cases(256)))]

    #[test]
    fn any_body_is_answered_or_refused(
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0..12usize), 0..3),
        broken in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
        streams in any::<bool>(),
    ) {
        let signatures = pal_sim::SignaturePolicy::Learn;
        let mut client = TestClient::with(SimSettings { signatures, ..SimSettings::plain() });
        client.betas = "context-management-2025-06-27,compact-2026-01-12,thinking-binding-controls-2026-08-01,\
            mid-conversation-system-clear-at-2026-08-21".replace(char::is_whitespace, "");
        let mut body = rich();
        body["stream"] = json!(streams);
        for (place, value) in &changes {
            let values = [
                Value::Null, json!(true), json!(0), json!(-1), json!(u64::MAX), json!(1.5e300), json!(""), json!("x"),
                json!([]), json!({}), json!({"type": "text", "text": "y"}), json!([{"type": "text", "text": "z"}]),
            ];
            let mut all = Vec::new();
            places(&body, "", &mut all);
            *body.pointer_mut(&all[place.index(all.len())]).unwrap() = values[*value].clone();
        }
        let mut bytes = body.to_string().into_bytes();
        if let Some((at, byte)) = broken {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let reply = client.request("POST", "/v1/messages", &bytes);
        prop_assert!([200, 400, 404].contains(&reply.status), "{}", reply.status);
        prop_assert!(changes.len() + usize::from(broken.is_some()) > 0 || reply.status == 200, "{:?}", reply.body());
    }
}

#[test]
fn refusal_has_stop_details() {
    let mut client = TestClient::new();
    let mut body = request(json!([user(json!("Hello"))]));
    assert!(client.ask(&body).get("stop_details").is_none_or(Value::is_null));
    client.stop(vec![OutputBlock::Text("I will".into())], StopOverride::Refusal);
    let answer = client.ask(&body);
    assert_eq!(answer["stop_reason"], "refusal");
    let details = &answer["stop_details"];
    assert_eq!((&details["type"], &details["category"]), (&json!("refusal"), &json!("general_harms")));
    assert!(details["explanation"].is_string());
    body["stream"] = json!(true);
    client.stop(vec![], StopOverride::Refusal);
    let reply = client.request("POST", "/v1/messages", body.to_string().as_bytes()).body();
    let events = String::from_utf8(reply.to_vec()).unwrap();
    let delta = events.lines().find(|line| line.starts_with(r#"data: {"type":"message_delta""#)).unwrap();
    let delta: Value = serde_json::from_str(delta.trim_start_matches("data: ")).unwrap();
    assert_eq!(delta["delta"]["stop_details"]["category"], "general_harms", "{delta}");
}

#[test]
fn compressed_body_is_refused_with_its_own_error() {
    let mut client = TestClient::new();
    let body = request(json!([user(json!("Hello"))])).to_string();
    let mut send = |encoding: &str| {
        let headers = [("anthropic-version", "2026-10-21"), ("content-encoding", encoding)]
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let request =
            HttpRequest { method: "POST", path: "/v1/messages", headers: &headers, body: body.as_bytes() };
        let reply = client.simulator.handle(Timestamp::from_milliseconds(client.now), &request);
        (reply.status, body_of(&reply)["error"]["details"]["error_code"].clone())
    };
    assert_eq!(send("identity"), (200, Value::Null));
    for encoding in ["gzip", "zstd", "identity, br"] {
        assert_eq!(send(encoding), (400, json!("request_body_encoding_unsupported")), "{encoding}");
    }
}
