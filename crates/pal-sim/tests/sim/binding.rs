//! Bound thinking: permitted and forbidden changes to the history before a thinking block.

use pal_sim::{OutputBlock, SignaturePolicy, SimSettings};
use serde_json::{Value, json};

use crate::client::{TestClient, assistant, call_said, marked, request, result, text, tool, user};

/// Three rounds of a tool loop, each with thinking, then a last question. Messages: user, then (assistant, user) × 3.
fn conversation(client: &mut TestClient) -> Value {
    let mut body = request(json!([user(json!([text("Start")]))]));
    body["thinking"] = json!({"type": "adaptive"});
    for round in 0..3 {
        let id = format!("toolu_{round}");
        client.say(vec![OutputBlock::Thinking(format!("Thought {round}")), call_said(&id, "Read")]);
        let answer = client.ask(&body)["content"].clone();
        let messages = body["messages"].as_array_mut().unwrap();
        messages.push(assistant(answer));
        messages.push(user(json!([result(&id, "A long result of a tool")])));
    }
    body
}

fn thinking_of(body: &Value) -> Vec<Value> {
    let blocks = body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|message| message["content"].as_array().cloned().unwrap_or_default());
    blocks.filter(|block| block["type"] == "thinking").collect()
}

fn drop_thinking(body: &mut Value, message: usize) {
    let blocks = body["messages"][message]["content"].as_array_mut().unwrap();
    blocks.retain(|block| block["type"] != "thinking");
}

/// Sends a changed conversation; `broken` names the first thinking block that is no longer valid.
fn check(name: &str, change: impl Fn(&mut Value), broken: Option<&str>) {
    let mut client = TestClient::new();
    client.betas = "thinking-binding-controls-2026-08-01,mid-conversation-system-clear-at-2026-08-21".into();
    let mut body = conversation(&mut client);
    assert_eq!(thinking_of(&body).len(), 3);
    change(&mut body);
    let mut counted = body.clone();
    counted.as_object_mut().unwrap().shift_remove("max_tokens");
    match broken {
        None => {
            client.ask(&body);
            assert_eq!(client.post("/v1/messages/count_tokens", &counted).0, 200, "{name}");
        }
        Some(path) => {
            let error = client.refused(&body);
            let message = error["message"].as_str().unwrap();
            assert!(
                message.starts_with(&format!("{path}: Invalid `signature` in `thinking` block")),
                "{name}: {message}"
            );
            assert!(
                message.contains("different conversation") && message.contains("drop_block"),
                "{name}: {message}"
            );
            assert_eq!(client.post("/v1/messages/count_tokens", &counted).0, 400, "{name}");
            body["thinking"] =
                json!({"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}});
            let answer = client.ask(&body);
            let dropped = &answer["input_transformations"];
            let first =
                json!({"type": "thinking_dropped", "path": path, "reason": "prefix_binding_mismatch"});
            assert_eq!(dropped[0], first, "{name}");
        }
    }
}

#[test]
fn a_history_that_only_grows_stays_valid() {
    check("nothing", |_| {}, None);
    check(
        "appending",
        |body| {
            body["messages"][6]["content"].as_array_mut().unwrap().push(text("And this"));
        },
        None,
    );
    check(
        "moving marks",
        |body| body["messages"][2]["content"][0] = marked(result("toolu_0", "A long result of a tool")),
        None,
    );
    check(
        "other parameters",
        |body| {
            body["max_tokens"] = json!(5);
            body["output_config"] = json!({"effort": "low"});
            body["tool_choice"] = json!({"type": "none"});
        },
        None,
    );
    check(
        "another order of keys",
        |body| {
            body["messages"][1]["content"][1]["input"] = json!({"deep": {"x": 1}, "path": "a"});
            body["tools"][0]["input_schema"] =
                json!({"properties": {"path": {"type": "string"}}, "type": "object"});
        },
        None,
    );
    check(
        "a deferred tool",
        |body| {
            let mut late = tool("Late");
            late["defer_loading"] = json!(true);
            body["tools"].as_array_mut().unwrap().push(late);
        },
        None,
    );
    check("a string for a text block", |body| body["messages"][0]["content"] = json!("Start"), None);
}

#[test]
fn thinking_may_be_dropped_at_either_end_only() {
    check("all", |body| [1, 3, 5].iter().for_each(|at| drop_thinking(body, *at)), None);
    check("the oldest", |body| drop_thinking(body, 1), None);
    check("the two oldest", |body| [1, 3].iter().for_each(|at| drop_thinking(body, *at)), None);
    check("the newest", |body| drop_thinking(body, 5), None);
    check("the middle", |body| drop_thinking(body, 3), Some("messages.5.content.0"));
}

#[test]
fn changed_prefix_invalidates_later_thinking() {
    check(
        "a cleared result",
        |body| body["messages"][2]["content"][0]["content"] = json!("[cleared]"),
        Some("messages.3.content.0"),
    );
    check(
        "an edited message",
        |body| body["messages"][0]["content"][0] = text("Begin"),
        Some("messages.1.content.0"),
    );
    check(
        "an edited call",
        |body| body["messages"][3]["content"][1]["input"]["deep"]["x"] = json!(2),
        Some("messages.5.content.0"),
    );
    check(
        "an inserted block",
        |body| body["messages"][4]["content"].as_array_mut().unwrap().push(text("By the way")),
        Some("messages.5.content.0"),
    );
    check(
        "deleted messages",
        |body| {
            body["messages"].as_array_mut().unwrap().drain(1..3);
        },
        Some("messages.1.content.0"),
    );
    check("the system prompt", |body| body["system"] = json!("Other"), Some("messages.1.content.0"));
    check("a tool", |body| body["tools"][0]["description"] = json!("Other"), Some("messages.1.content.0"));
    check(
        "a tool more",
        |body| body["tools"].as_array_mut().unwrap().push(tool("More")),
        Some("messages.1.content.0"),
    );
}

#[test]
fn a_turn_scoped_message_stays_part_of_the_prefix() {
    let mut client = TestClient::new();
    client.betas = "mid-conversation-system-clear-at-2026-08-21".into();
    let mut body = request(json!([
        user(json!([text("Start")])),
        {"role": "system", "content": "Be quick", "clear_at": "next_user_message"},
    ]));
    client.say(vec![OutputBlock::Thinking("Quickly".into()), OutputBlock::Text("Done".into())]);
    let answer = client.ask(&body)["content"].clone();
    assert!(client.heard().messages.iter().any(|(role, _)| role == "system"));
    let messages = body["messages"].as_array_mut().unwrap();
    messages.push(assistant(answer));
    messages.push(user(json!([text("Next")])));
    client.ask(&body);
    assert!(!client.heard().messages.iter().any(|(role, _)| role == "system"), "its turn is over");
    body["messages"][1]["content"] = json!("Be slow");
    assert!(client.refused(&body)["message"].as_str().unwrap().starts_with("messages.2.content.0"));
}

#[test]
fn thinking_text_is_signed() {
    let mut client = TestClient::new();
    let mut body = conversation(&mut client);
    body["messages"][1]["content"][0]["thinking"] = json!("I thought something else");
    let error = client.refused(&body);
    assert_eq!(error["message"], "messages.1.content.0: Invalid `signature` in `thinking` block");
}

#[test]
fn thinking_belongs_to_a_model_and_a_key() {
    let mut client = TestClient::new();
    client.betas = "thinking-binding-controls-2026-08-01".into();
    let mut body = conversation(&mut client);
    body["thinking"] =
        json!({"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}});
    client.key = "key-two".into();
    let answer = client.ask(&body);
    assert_eq!(answer["input_transformations"][0]["reason"], "organization_binding_mismatch");
    client.key = "key-one".into();
    body["model"] = json!("claude-fable-5-1");
    let answer = client.ask(&body);
    assert_eq!(answer["input_transformations"][0]["reason"], "model_binding_mismatch");
    assert_eq!(answer["input_transformations"].as_array().unwrap().len(), 3);
    // A model that does not bind thinking accepts it after any prefix.
    body["model"] = json!("claude-opus-5");
    body["thinking"] = json!({"type": "adaptive"});
    body["system"] = json!("Other");
    assert!(client.ask(&body).get("input_transformations").is_none());
}

#[test]
fn conversation_continues_after_dropped_thinking() {
    let mut client = TestClient::new();
    client.betas = "thinking-binding-controls-2026-08-01".into();
    let mut body = conversation(&mut client);
    body["thinking"] =
        json!({"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}});
    body["messages"][2]["content"][0]["content"] = json!("[cleared]");
    client.say(vec![OutputBlock::Thinking("Anew".into()), OutputBlock::Text("Yes".into())]);
    let answer = client.ask(&body);
    assert_eq!(answer["input_transformations"].as_array().unwrap().len(), 2);
    let messages = body["messages"].as_array_mut().unwrap();
    messages.push(assistant(answer["content"].clone()));
    messages.push(user(json!([text("More")])));
    let again = client.ask(&body);
    assert_eq!(again["input_transformations"].as_array().unwrap().len(), 2, "the new thinking is valid");
    // The result is the same if the client keeps sending the dropped blocks.
    [3, 5].iter().for_each(|at| drop_thinking(&mut body, *at));
    body["thinking"] = json!({"type": "adaptive"});
    client.ask(&body);
}

#[test]
fn foreign_thinking_is_refused_or_learnt() {
    let foreign = |prefix: &str| {
        let thinking = json!({"type": "thinking", "thinking": "Recorded", "signature": "EqQBCkYIARgCIkDabc"});
        let mut body = request(json!([
            user(json!([text(prefix)])),
            assistant(json!([thinking, text("So")])),
            user(json!([text("Next")])),
        ]));
        body["thinking"] = json!({"type": "adaptive"});
        body
    };
    let mut strict = TestClient::new();
    let error = strict.refused(&foreign("Start"));
    assert_eq!(error["message"], "messages.1.content.0: Invalid `signature` in `thinking` block");
    let mut learning =
        TestClient::with(SimSettings { signatures: SignaturePolicy::Learn, ..SimSettings::plain() });
    learning.ask(&foreign("Start"));
    learning.ask(&foreign("Start"));
    let error = learning.refused(&foreign("Begin"));
    assert!(error["message"].as_str().unwrap().contains("different conversation"), "{error}");
    let mut unbound = foreign("Start");
    unbound["model"] = json!("claude-opus-5");
    strict.ask(&unbound);
    unbound["messages"][1]["content"][0]["signature"] = json!("not base64!");
    strict.refused(&unbound);
}

#[test]
fn an_answer_with_blank_text_can_be_sent_back_as_it_came() {
    let mut client = TestClient::new();
    let mut body = request(json!([user(json!([text("Start")]))]));
    body["thinking"] = json!({"type": "adaptive"});
    for (round, blank) in ["", "\n\n", " \t"].into_iter().enumerate() {
        let id = format!("toolu_{round}");
        let said =
            vec![OutputBlock::Text(blank.into()), OutputBlock::Thinking("Hm".into()), call_said(&id, "Read")];
        client.say(said);
        let answer = client.ask(&body)["content"].clone();
        let kinds: Vec<&Value> = answer.as_array().unwrap().iter().map(|block| &block["type"]).collect();
        assert_eq!(kinds, ["thinking", "tool_use"]);
        let messages = body["messages"].as_array_mut().unwrap();
        messages.push(assistant(answer));
        messages.push(user(json!([result(&id, "r")])));
        client.ask(&body);
    }
}
