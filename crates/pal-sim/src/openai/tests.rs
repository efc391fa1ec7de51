//! OpenAI endpoints, called by this project's client and with raw requests.

use pal_model::{Role, SharedText, Timestamp};
use pal_wire::{
    BreakpointMode, ChatServer, ConversationBlock, Dialect, DialectEncoder, ResponseDecoder, ResponseEvent,
    WireConversation, classify_failure, decode_response,
};
use serde_json::{Value, json};

use crate::{
    HttpReply, HttpRequest, ModelOutput, ModelPrompt, OutputBlock, SimSettings, SimulatedModel,
    SimulatedProvider,
};

/// Model that thinks, answers, and calls a tool until it has a result.
struct ToolCallingModel;

impl SimulatedModel for ToolCallingModel {
    fn answer(&mut self, ask: &ModelPrompt<'_>) -> ModelOutput {
        let last =
            ask.messages.last().and_then(|message| message.blocks.last()).map(|block| block.to_string());
        let call = OutputBlock::ToolUse {
            id: None,
            name: "Read".into(),
            input: SharedText::from(r#"{"path":"a \"b\""}"#),
        };
        let mut blocks = vec![OutputBlock::Thinking("Let me see.".into())];
        match last {
            Some(last) if last.contains("tool_result") => {
                blocks.push(OutputBlock::Text(format!("Done: {}", last.len())))
            }
            Some(last) if last.contains("call") => {
                blocks.push(OutputBlock::Text("I look.".into()));
                blocks.push(call.clone());
                blocks.push(call);
            }
            _ => blocks.push(OutputBlock::Text(
                "Héllo 🙂, and a few more words so that it takes some deltas.".into(),
            )),
        }
        ModelOutput { blocks, stop: None }
    }
}

fn simulator() -> SimulatedProvider {
    SimulatedProvider::new(SimSettings::plain(), Box::new(ToolCallingModel))
}

fn ask(simulator: &mut SimulatedProvider, at: i64, path: &str, body: &str) -> HttpReply {
    let headers = [("authorization".to_owned(), "Bearer sk-1".to_owned())];
    let request = HttpRequest { method: "POST", path, headers: &headers, body: body.as_bytes() };
    simulator.handle(Timestamp::from_milliseconds(at), &request)
}

fn json_of(reply: &HttpReply) -> Value {
    serde_json::from_slice(&reply.body()).unwrap_or(Value::Null)
}

fn text(words: &str) -> SharedText {
    SharedText::from(json!({"type": "text", "text": words}).to_string())
}

/// This project's client in one session.
struct OpenAiClient {
    encoder: DialectEncoder,
    model: &'static str,
    pieces: Vec<ConversationBlock>,
    system: Vec<SharedText>,
    stream: bool,
}

impl OpenAiClient {
    fn new(encoder: DialectEncoder, model: &'static str) -> OpenAiClient {
        let system = vec![text(&"Be good and mind the rules of the house. ".repeat(200))];
        OpenAiClient { encoder, model, pieces: Vec::new(), system, stream: true }
    }

    fn say(&mut self, role: Role, blocks: Vec<SharedText>) {
        for (at, block) in blocks.into_iter().enumerate() {
            self.pieces.push(ConversationBlock {
                starts_message: (at == 0).then_some(role),
                block,
                has_breakpoint: false,
            });
        }
    }

    /// Sends a request, stores the answer and returns all events.
    fn turn(&mut self, simulator: &mut SimulatedProvider, at: i64) -> Vec<ResponseEvent> {
        for piece in &mut self.pieces {
            piece.has_breakpoint = false;
        }
        if let Some(last) = self.pieces.last_mut() {
            last.has_breakpoint = true;
        }
        let tool =
            SharedText::from(r#"{"name":"Read","description":"Reads.","input_schema":{"type":"object"}}"#);
        let call = self.encoder.encode(&WireConversation {
            model: self.model,
            max_tokens: 1_000,
            stream: self.stream,
            effort: None,
            cache_key: Some("k"),
            system: &self.system,
            tools: &[tool],
            blocks: &self.pieces,
        });
        let reply = ask(simulator, at, call.path, &call.body.to_joined_string());
        assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.body()));
        let events = if self.stream {
            let mut decoder = ResponseDecoder::new(call.dialect);
            let mut events = Vec::new();
            decoder.push(&reply.body(), &mut events);
            decoder.finish(&mut events);
            events
        } else {
            decode_response(call.dialect, &reply.body())
        };
        let blocks = events.iter().filter_map(|event| match event {
            ResponseEvent::Block { block, .. } => Some(block.raw().clone()),
            _ => None,
        });
        let blocks: Vec<SharedText> = blocks.collect();
        self.say(Role::Assistant, blocks);
        events
    }

    /// Answers every call of the last message.
    fn answer_calls(&mut self) {
        let start = self.pieces.iter().rposition(|piece| piece.starts_message.is_some()).unwrap_or(0);
        let results: Vec<SharedText> = self.pieces[start..]
            .iter()
            .filter_map(|piece| {
                let block: Value = serde_json::from_str(&piece.block).unwrap();
                (block["type"] == "tool_use").then(|| {
                    SharedText::from(
                        json!({"type": "tool_result", "tool_use_id": block["id"], "content": "found it"})
                            .to_string(),
                    )
                })
            })
            .collect();
        self.say(Role::User, results);
    }
}

fn finished(events: &[ResponseEvent]) -> (String, [u64; 3]) {
    match events.last() {
        Some(ResponseEvent::Finished(finished)) => {
            let usage = &finished.usage;
            let counts =
                [usage.cache_read_input_tokens, usage.cache_creation_input_tokens, usage.input_tokens];
            (finished.stop_reason.as_deref().unwrap_or_default().to_owned(), counts)
        }
        other => panic!("{other:?}"),
    }
}

fn encoders() -> [(DialectEncoder, &'static str); 4] {
    [
        (DialectEncoder::responses(BreakpointMode::TurnEnds), "gpt-6-sol"),
        (DialectEncoder::responses(BreakpointMode::Never), "gpt-5.4"),
        (DialectEncoder::chat(ChatServer::OpenAi, BreakpointMode::TurnEnds), "gpt-6-sol"),
        (DialectEncoder::chat(ChatServer::Compatible, BreakpointMode::Never), "gpt-5"),
    ]
}

#[test]
fn tool_loop_reads_its_own_cache_writes() {
    for stream in [true, false] {
        for (encoder, model) in encoders() {
            let mut simulator = simulator();
            let mut client = OpenAiClient { stream, ..OpenAiClient::new(encoder, model) };
            let (mut known, mut prompt) = (0, 0);
            for round in 0..20 {
                client.say(Role::User, vec![text(&format!("please call number {round}"))]);
                let (reason, [read, written, uncached]) = finished(&client.turn(&mut simulator, round));
                assert_eq!(reason, "tool_use", "{model}");
                check_counts(model, (known, prompt), [read, written, uncached]);
                (known, prompt) = (read + written, read + written + uncached);
                client.answer_calls();
                let (reason, counts) = finished(&client.turn(&mut simulator, round));
                assert_eq!(reason, "end_turn", "{model}");
                check_counts(model, (known, prompt), counts);
                (known, prompt) = (counts[0] + counts[1], counts.iter().sum());
            }
            assert_eq!(simulator.ledger().totals().exchanges, 40);
        }
    }
}

/// The next request reads what one request wrote: exactly at breakpoints, in steps with automatic caching.
fn check_counts(model: &str, (known, prompt): (u64, u64), [read, _, _]: [u64; 3]) {
    if model == "gpt-6-sol" {
        assert_eq!(read, known, "{model}");
    } else if prompt > 0 {
        assert!(read % 128 == 0 && read + 256 > prompt && read <= prompt, "{model}: {read} of {prompt}");
    } else {
        assert_eq!(read, 0);
    }
}

#[test]
fn stream_and_whole_answer_agree() {
    for (path, body) in [
        (
            "/v1/responses",
            json!({"model": "gpt-6-sol", "input": "call it", "reasoning": {"summary": "auto"}, "include": ["reasoning.encrypted_content"]}),
        ),
        ("/v1/responses", json!({"model": "gpt-6-sol", "input": "hello", "max_output_tokens": 16})),
        (
            "/v1/chat/completions",
            json!({"model": "gpt-6-sol", "messages": [{"role": "user", "content": "call it"}]}),
        ),
        (
            "/v1/chat/completions",
            json!({"model": "gpt-6-sol", "messages": [{"role": "user", "content": "hi"}], "max_completion_tokens": 9}),
        ),
    ] {
        let dialect = if path == "/v1/responses" { Dialect::Responses } else { Dialect::Chat };
        let whole = ask(&mut simulator(), 0, path, &body.to_string());
        let mut body = body;
        body["stream"] = json!(true);
        body["stream_options"] = json!({"include_usage": true});
        let stream = ask(&mut simulator(), 0, path, &body.to_string());
        let mut decoder = ResponseDecoder::new(dialect);
        let mut events = Vec::new();
        decoder.push(&stream.body(), &mut events);
        decoder.finish(&mut events);
        let last = |events: &[ResponseEvent]| -> Vec<ResponseEvent> {
            events
                .iter()
                .filter(|event| matches!(event, ResponseEvent::Block { .. } | ResponseEvent::Finished(_)))
                .cloned()
                .collect()
        };
        let said = last(&decode_response(dialect, &whole.body()));
        assert!(said.len() > 1, "{said:?}");
        assert_eq!(last(&events), said, "{path}");
    }
}

#[test]
fn events_are_ordered_and_numbered() {
    let body =
        json!({"model": "gpt-6-sol", "input": "call it", "stream": true, "reasoning": {"summary": "auto"}});
    let reply = ask(&mut simulator(), 0, "/v1/responses", &body.to_string());
    let text = String::from_utf8(reply.body()).unwrap();
    let mut kinds: Vec<String> = Vec::new();
    for (number, frame) in text.trim_end().split("\n\n").enumerate() {
        let (event, data) = frame.split_once('\n').unwrap();
        let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(event.strip_prefix("event: "), data["type"].as_str());
        assert_eq!(data["sequence_number"], number);
        let kind = data["type"].as_str().unwrap().trim_start_matches("response.").to_owned();
        if kinds.last() != Some(&kind) {
            kinds.push(kind);
        }
    }
    let call = [
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
    ];
    let expected: Vec<&str> = [
        &["created", "in_progress", "output_item.added", "reasoning_summary_part.added"][..],
        &["reasoning_summary_text.delta", "reasoning_summary_text.done", "reasoning_summary_part.done"],
        &["output_item.done", "output_item.added", "content_part.added", "output_text.delta"],
        &["output_text.done", "content_part.done", "output_item.done"],
        &call,
        &call,
        &["completed"],
    ]
    .concat();
    assert_eq!(kinds, expected);
}

#[track_caller]
fn refused(path: &str, body: &Value, expected: (u16, Option<&str>, Option<&str>)) -> HttpReply {
    let reply = ask(&mut simulator(), 0, path, &body.to_string());
    let error = &json_of(&reply)["error"];
    assert_eq!((reply.status, error["code"].as_str(), error["param"].as_str()), expected, "{body}: {error}");
    assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()));
    reply
}

#[test]
fn invalid_responses_requests_are_refused() {
    let check = |input: Value, expected| {
        refused("/v1/responses", &json!({"model": "gpt-6-sol", "input": input}), expected);
    };
    let invalid = |code, param| (400, Some(code), Some(param));
    check(Value::Null, invalid("missing_required_parameter", "input"));
    check(json!(7), invalid("invalid_type", "input"));
    check(json!([{"role": "robot", "content": "x"}]), invalid("invalid_value", "input[0].role"));
    check(json!([{"role": "user"}]), invalid("missing_required_parameter", "input[0].content"));
    check(
        json!([{"role": "user", "content": [{"type": "output_text", "text": "x"}]}]),
        invalid("invalid_value", "input[0].content[0].type"),
    );
    check(json!([{"type": "nonsense"}]), invalid("invalid_value", "input[0].type"));
    let call = json!({"type": "function_call", "call_id": "c", "name": "n", "arguments": "{}"});
    let output = json!({"type": "function_call_output", "call_id": "c", "output": "x"});
    check(json!([call]), (400, None, Some("input")));
    check(json!([output]), (400, None, Some("input")));
    let user = json!({"role": "user", "content": "x"});
    check(
        json!([{"type": "reasoning", "id": "rs_1", "summary": []}, call, output]),
        (404, None, Some("input")),
    );
    check(
        json!([{"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "made up"}, call, output]),
        invalid("invalid_encrypted_content", "input[0]"),
    );
    let with = |name: &str, value: Value| {
        let mut body = json!({"model": "gpt-5.4", "input": [user]});
        body[name] = value;
        body
    };
    refused(
        "/v1/responses",
        &with("max_output_tokens", json!(3)),
        invalid("integer_below_min_value", "max_output_tokens"),
    );
    refused(
        "/v1/responses",
        &with("prompt_cache_options", json!({})),
        invalid("unsupported_parameter", "prompt_cache_options"),
    );
    refused(
        "/v1/responses",
        &with("reasoning", json!({"effort": "huge"})),
        invalid("invalid_value", "reasoning.effort"),
    );
    refused(
        "/v1/responses",
        &with("previous_response_id", json!("resp_0")),
        invalid("previous_response_not_found", "previous_response_id"),
    );
    refused(
        "/v1/responses",
        &with("tools", json!([{"type": "function"}])),
        invalid("missing_required_parameter", "tools[0].name"),
    );
    refused("/v1/responses", &with("model", json!("claude-opus-5-5")), (404, Some("model_not_found"), None));
    refused("/v1/responses", &with("model", Value::Null), invalid("missing_required_parameter", "model"));
    assert_eq!(ask(&mut simulator(), 0, "/v1/responses", "{").status, 400);
    // Unknown members are accepted.
    assert_eq!(
        ask(&mut simulator(), 0, "/v1/responses", &with("surprise", json!(1)).to_string()).status,
        200
    );
}

#[test]
fn invalid_chat_requests_are_refused() {
    let check = |messages: Value, expected| {
        refused("/v1/chat/completions", &json!({"model": "gpt-5", "messages": messages}), expected);
    };
    let call = json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": "c", "type": "function", "function": {"name": "n", "arguments": "{}"}}]});
    let result = json!({"role": "tool", "tool_call_id": "c", "content": "x"});
    check(json!([]), (400, Some("empty_array"), Some("messages")));
    check(json!([{"role": "robot", "content": "x"}]), (400, Some("invalid_value"), Some("messages[0].role")));
    check(
        json!([{"role": "user", "content": null}]),
        (400, Some("invalid_type"), Some("messages[0].content")),
    );
    check(json!([result]), (400, None, Some("messages[0].role")));
    check(json!([call, {"role": "user", "content": "x"}]), (400, None, Some("messages[1].role")));
    check(json!([call]), (400, None, Some("messages[0].role")));
    let fine = json!({"model": "gpt-5", "messages": [{"role": "user", "content": "x"}, call, result]});
    assert_eq!(ask(&mut simulator(), 0, "/v1/chat/completions", &fine.to_string()).status, 200);
}

#[test]
fn oversized_prompt_is_reported_as_too_long() {
    let words = "word ".repeat(300_000);
    for (path, body) in [
        ("/v1/responses", json!({"model": "gpt-5.4", "input": words})),
        ("/v1/chat/completions", json!({"model": "gpt-5", "messages": [{"role": "user", "content": words}]})),
    ] {
        let reply = refused(
            path,
            &body,
            (
                400,
                Some("context_length_exceeded"),
                Some(if path.contains("chat") { "messages" } else { "input" }),
            ),
        );
        let failure = classify_failure(reply.status, |_| None, &reply.body());
        assert!(matches!(failure.kind, pal_wire::FailureKind::TooLong { .. }), "{failure:?}");
    }
}

fn cached(simulator: &mut SimulatedProvider, at: i64, body: &Value) -> [u64; 3] {
    let reply = ask(simulator, at, "/v1/responses", &body.to_string());
    let usage = json_of(&reply)["usage"].clone();
    let of =
        |pointer: &str| usage.pointer(pointer).and_then(Value::as_u64).unwrap_or_else(|| panic!("{usage}"));
    [
        of("/input_tokens_details/cached_tokens"),
        of("/input_tokens_details/cache_write_tokens"),
        of("/input_tokens"),
    ]
}

const MINUTE: i64 = 60_000;

#[test]
fn automatic_cache_reads_in_steps_and_writes_for_free() {
    let mut simulator = simulator();
    let long = "many words of a prompt ".repeat(400);
    let body = |end: &str| json!({"model": "gpt-5.4", "input": format!("{long}{end}")});
    let [read, written, total] = cached(&mut simulator, 0, &body("a"));
    assert_eq!((read, written), (0, 0));
    let [read, written, _] = cached(&mut simulator, MINUTE, &body("a"));
    assert!(written == 0 && read % 128 == 0 && read + 128 > total - 10 && read < total, "{read} {total}");
    // A different end misses what follows it, a different beginning everything; so do ten idle minutes.
    let [read, _, _] = cached(&mut simulator, 2 * MINUTE, &body("b"));
    assert!(read > 0 && read % 128 == 0 && read + 600 > total, "{read} {total}");
    assert_eq!(
        cached(&mut simulator, 2 * MINUTE, &json!({"model": "gpt-5.4", "input": format!("x{long}")}))[0],
        0
    );
    assert_eq!(cached(&mut simulator, 12 * MINUTE, &body("a"))[0], 0);
    let short = json!({"model": "gpt-5.4", "input": "few words"});
    cached(&mut simulator, 0, &short);
    assert_eq!(cached(&mut simulator, 0, &short)[0], 0);
    let kept = |at| {
        (at, json!({"model": "gpt-5.4", "input": format!("kept {long}"), "prompt_cache_retention": "24h"}))
    };
    let (at, body) = kept(0);
    cached(&mut simulator, at, &body);
    assert!(cached(&mut simulator, 600 * MINUTE, &body)[0] > 0);
}

#[test]
fn breakpoints_are_exact_and_explicit_mode_needs_them() {
    let mut simulator = simulator();
    let long = "many words of a prompt ".repeat(400);
    let body = |mark: Value, end: &str, mode: &str| {
        let mut part = json!({"type": "input_text", "text": long});
        if !mark.is_null() {
            part["prompt_cache_breakpoint"] = mark;
        }
        json!({"model": "gpt-6-sol", "prompt_cache_options": {"mode": mode},
            "input": [{"role": "user", "content": [part, {"type": "input_text", "text": end}]}]})
    };
    let mark = json!({"mode": "explicit"});
    let first = cached(&mut simulator, 0, &body(mark.clone(), "a", "explicit"));
    assert!(first[0] == 0 && first[1] > 1024 && first[1] < first[2], "{first:?}");
    let second = cached(&mut simulator, MINUTE, &body(mark.clone(), "another end", "explicit"));
    assert_eq!(second[..2], [first[1], 0]);
    // Without a breakpoint nothing is cached; an entry that was read lives on until half an hour passes.
    assert_eq!(cached(&mut simulator, MINUTE, &body(Value::Null, "a", "explicit"))[..2], [0, 0]);
    assert_eq!(cached(&mut simulator, 30 * MINUTE, &body(mark.clone(), "a", "explicit"))[0], first[1]);
    assert_eq!(cached(&mut simulator, 61 * MINUTE, &body(mark, "a", "explicit"))[0], 0);
    let long_lived = json!({"mode": "explicit", "ttl": "12h"});
    let third = cached(&mut simulator, 200 * MINUTE, &body(long_lived.clone(), "a", "implicit"));
    assert_eq!(third[0], 0);
    // In implicit mode the end of the prompt is cached too, for half an hour.
    let again = cached(&mut simulator, 210 * MINUTE, &body(long_lived.clone(), "a", "implicit"));
    assert!(again[0] > first[1] && again[1] == 0, "{again:?}");
    assert_eq!(cached(&mut simulator, 300 * MINUTE, &body(long_lived, "a", "explicit"))[0], first[1]);
}

#[test]
fn a_comparison_names_what_changed() {
    let mut simulator = simulator();
    let long = "many words of a prompt ".repeat(400);
    let body = json!({"model": "gpt-6-sol", "input": long, "prompt_cache_key": "a"});
    let first = json_of(&ask(&mut simulator, 0, "/v1/responses", &body.to_string()));
    let mut check = |change: Value, expected: &str| {
        let mut body = body.clone();
        body["prompt_cache_options"] = json!({"comparison_response_id": first["id"]});
        for (name, value) in change.as_object().unwrap() {
            body[name] = value.clone();
        }
        let reply = json_of(&ask(&mut simulator, 1, "/v1/responses", &body.to_string()));
        let found = &reply["prompt_cache_diagnostics"];
        assert_eq!(found["reason"].as_str().or(found["type"].as_str()), Some(expected), "{reply}");
    };
    check(json!({}), "cache_hit");
    check(json!({"input": format!("{long}!")}), "input_changed");
    check(json!({"prompt_cache_key": "b"}), "prompt_cache_key_changed");
    check(json!({"model": "gpt-6-luna"}), "model_changed");
    check(json!({"reasoning": {"effort": "low"}}), "reasoning_effort_changed");
    check(json!({"tools": [{"type": "function", "name": "n", "parameters": {}}]}), "tools_changed");
    check(
        json!({"prompt_cache_options": {"comparison_response_id": "resp_x"}}),
        "comparison_response_not_found",
    );
}

#[test]
fn key_and_model_errors_have_the_openai_format() {
    let settings = SimSettings { keys: Some(vec!["sk-1".into()]), ..SimSettings::plain() };
    let mut simulator = SimulatedProvider::new(settings, Box::new(ToolCallingModel));
    let mut get = |path: &str, headers: &[(&str, &str)]| {
        let headers: Vec<(String, String)> =
            headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let request = HttpRequest { method: "GET", path, headers: &headers, body: b"" };
        let reply = simulator.handle(Timestamp::from_milliseconds(0), &request);
        (reply.status, json_of(&reply))
    };
    let key = ("authorization", "Bearer sk-1");
    let (status, list) = get("/v1/models", &[key]);
    assert_eq!((status, &list["object"]), (200, &json!("list")));
    let names: Vec<&str> =
        list["data"].as_array().unwrap().iter().filter_map(|model| model["id"].as_str()).collect();
    assert!(
        names.contains(&"gpt-6-sol") && !names.iter().any(|name| name.starts_with("claude")),
        "{names:?}"
    );
    assert_eq!(get("/v1/models/gpt-6-sol", &[key]).1["object"], "model");
    assert_eq!(get("/v1/models/none", &[key]).0, 404);
    assert_eq!(get("/v1/models", &[("authorization", "Bearer no")]).1["error"]["code"], "invalid_api_key");
    assert_eq!(get("/v1/models", &[]).0, 401);
    assert_eq!(get("/v1/responses", &[key]).0, 405);
    // Anthropic's clients get their own list.
    assert_eq!(
        get("/v1/models", &[("x-api-key", "sk-1"), ("anthropic-version", "2023-06-01")]).1["has_more"],
        false
    );
}
