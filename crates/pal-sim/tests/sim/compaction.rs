//! Provider-side compaction, on demand and at a threshold.

use pal_sim::{OutputBlock, SimSettings, StopOverride};
use serde_json::{Value, json};

use crate::client::{TestClient, assistant, call_said, long, marked, request, result, text, user};

const ON_DEMAND: &str = "compact-2026-09-04";
const THRESHOLD: &str = "compact-2026-01-12,context-management-2025-06-27";

/// A conversation of `rounds` rounds with thinking, made with this client.
fn conversation(client: &mut TestClient, rounds: usize, size: usize) -> Value {
    let mut body = request(json!([user(json!([text("Start")]))]));
    body["system"][0] = marked(body["system"][0].clone());
    body["thinking"] = json!({"type": "adaptive"});
    for round in 0..rounds {
        let id = format!("toolu_{round}");
        client.say(vec![OutputBlock::Thinking(format!("Thought {round}")), call_said(&id, "Read")]);
        let answer = client.ask(&body)["content"].clone();
        let messages = body["messages"].as_array_mut().unwrap();
        messages.push(assistant(answer));
        messages.push(user(json!([result(&id, &long("output", size))])));
    }
    body
}

fn summarized(client: &mut TestClient, body: &Value) -> Value {
    let mut asking = body.clone();
    asking["compaction"] = json!({"type": "summarize", "instructions": "Keep the paths"});
    client.say(vec![OutputBlock::Text("The summary".into())]);
    client.ask(&asking)
}

#[test]
fn on_demand_summary_reads_the_cache_and_is_billed_separately() {
    let mut client = TestClient::new();
    client.betas = ON_DEMAND.into();
    let mut body = conversation(&mut client, 3, 3);
    let last = body["messages"][6]["content"][0].clone();
    body["messages"][6]["content"][0] = marked(last);
    let live = client.usage(&body);
    let answer = summarized(&mut client, &body);
    assert_eq!(client.heard().compaction.as_deref(), Some("Keep the paths"));
    assert_eq!(answer["stop_reason"], "compaction");
    assert_eq!(answer["content"][0]["content"], "The summary");
    assert_eq!(answer["content"][0]["tool_changes"], json!([]));
    let usage = &answer["usage"];
    assert_eq!((&usage["input_tokens"], &usage["output_tokens"]), (&json!(0), &json!(0)));
    let pass = &usage["iterations"][0];
    assert_eq!(
        (&pass["type"], &pass["cache_read_input_tokens"]),
        (&json!("compaction"), &json!(live.read + live.written_5m))
    );
    assert!(pass["output_tokens"].as_u64().unwrap() > 0);
    let cost = client.simulator.ledger().last().unwrap().cost.unwrap();
    assert!(cost > 0.0, "{cost}");
}

#[test]
fn thinking_in_turns_kept_after_a_summary_stays_valid() {
    let mut client = TestClient::new();
    client.betas = ON_DEMAND.into();
    let body = conversation(&mut client, 3, 1);
    let messages = body["messages"].as_array().unwrap().clone();
    // Everything up to the second result is summarized; the third call and its result are kept.
    let mut early = body.clone();
    early["messages"] = json!(messages[..5]);
    let block = summarized(&mut client, &early)["content"][0].clone();
    let kept = |block: &Value, tail: &[Value]| {
        let mut body = body.clone();
        let mut all = vec![assistant(json!([block]))];
        all.extend_from_slice(tail);
        body["messages"] = json!(all);
        body
    };
    client.ask(&kept(&block, &messages[5..]));
    assert_eq!(client.heard().messages[0].1.len(), 1);
    // Content after thinking may change; content before it may neither be missing nor differ.
    let mut changed = messages[5..].to_vec();
    changed[0]["content"][1]["input"] = json!({});
    client.ask(&kept(&block, &changed));
    let shifted = conversation(&mut client, 4, 1)["messages"].as_array().unwrap()[7..].to_vec();
    let error = client.refused(&kept(&block, &shifted));
    assert!(error["message"].as_str().unwrap().starts_with("messages.1.content.0"), "{error}");
    let mut other = kept(&block, &messages[5..]);
    other["system"] = json!("Other");
    client.refused(&other);
    // A new turn of the same role as the last summarized one is merged with it: no retained thinking follows,
    // and the conversation continues.
    let mut next = kept(&block, &[user(json!([text("Go on")]))]);
    client.say(vec![OutputBlock::Thinking("After".into()), OutputBlock::Text("On".into())]);
    let answer = client.ask(&next)["content"].clone();
    next["messages"].as_array_mut().unwrap().extend([assistant(answer), user(json!([text("More")]))]);
    client.ask(&next);
    next["messages"][1]["content"][0] = text("Go off");
    client.refused(&next);
}

#[test]
fn kept_message_of_the_last_summarized_role_is_merged_and_invalidates_thinking() {
    let mut client = TestClient::new();
    client.betas = ON_DEMAND.into();
    let early = request(json!([user(json!([text("Start")]))]));
    let block = summarized(&mut client, &early)["content"][0].clone();
    let mut live = request(json!([user(json!([text("Start"), text("More")]))]));
    client.say(vec![OutputBlock::Thinking("Hm".into()), OutputBlock::Text("So".into())]);
    let answer = client.ask(&live)["content"].clone();
    let (more, next) = (user(json!([text("More")])), user(json!([text("Next")])));
    live["messages"] = json!([assistant(json!([block])), more, assistant(answer), next]);
    let error = client.refused(&live);
    assert!(error["message"].as_str().unwrap().starts_with("messages.2.content.0"), "{error}");
}

#[test]
fn summary_must_be_returned_unchanged() {
    let mut client = TestClient::new();
    client.betas = ON_DEMAND.into();
    let body = conversation(&mut client, 2, 1);
    let block = summarized(&mut client, &body)["content"][0].clone();
    let mut code = |change: fn(&mut Value)| {
        let mut block = block.clone();
        change(&mut block);
        let mut body = body.clone();
        body["messages"] = json!([assistant(json!([block])), user(json!([text("Next")]))]);
        client.refused(&body)["details"]["error_code"].clone()
    };
    assert_eq!(code(|block| block["content"] = json!("Another")), "compaction_content_mismatch");
    assert_eq!(code(|block| block["signature"] = json!("EqQBforeign")), "compaction_signature_invalid");
    assert_eq!(
        code(|block| block["tool_changes"] = json!([{"type": "tool_removal"}])),
        "compaction_tool_changes_mismatch"
    );
    client.key = "key-two".into();
    let mut body = body.clone();
    body["messages"] = json!([assistant(json!([block])), user(json!([text("Next")]))]);
    assert_eq!(client.refused(&body)["details"]["error_code"], "compaction_signature_invalid");
}

#[test]
fn a_missing_summary_shows_in_the_stop_reason() {
    let mut client = TestClient::new();
    client.betas = ON_DEMAND.into();
    let mut body = conversation(&mut client, 1, 1);
    body["compaction"] = json!({"type": "summarize"});
    client.say(vec![call_said("toolu_x", "Read")]);
    let answer = client.ask(&body);
    assert_eq!((&answer["stop_reason"], &answer["content"]), (&json!("tool_use"), &json!([])));
    client.stop(vec![], StopOverride::Refusal);
    assert_eq!(client.ask(&body)["stop_reason"], "refusal");
    body["max_tokens"] = json!(5);
    client.say(vec![OutputBlock::Text(long("summary", 2))]);
    let answer = client.ask(&body);
    assert_eq!((&answer["stop_reason"], &answer["content"]), (&json!("max_tokens"), &json!([])));
    // Token counting ignores the compaction request.
    let mut counted = body.clone();
    counted.as_object_mut().unwrap().shift_remove("max_tokens");
    let with = client.post("/v1/messages/count_tokens", &counted).1;
    counted.as_object_mut().unwrap().shift_remove("compaction");
    assert_eq!(with, client.post("/v1/messages/count_tokens", &counted).1);
}

fn threshold(body: &mut Value, pauses: bool) {
    let edit = json!({"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 50_000}, "pause_after_compaction": pauses});
    body["context_management"] = json!({"edits": [edit]});
}

#[test]
fn threshold_compaction_continues_the_answer() {
    let mut client = TestClient::new();
    client.betas = THRESHOLD.into();
    let mut body = conversation(&mut client, 6, 120);
    threshold(&mut body, false);
    assert!(client.count(&body) > 50_000);
    client.say(vec![OutputBlock::Text("The summary".into())]);
    client.say(vec![OutputBlock::Thinking("Going on".into()), call_said("toolu_next", "Read")]);
    let answer = client.ask(&body);
    let blocks = answer["content"].as_array().unwrap();
    assert_eq!((&blocks[0]["type"], &blocks[0]["content"]), (&json!("compaction"), &json!("The summary")));
    assert_eq!((&blocks[1]["type"], &blocks[2]["type"]), (&json!("thinking"), &json!("tool_use")));
    let passes = answer["usage"]["iterations"].as_array().unwrap();
    assert_eq!((&passes[0]["type"], &passes[1]["type"]), (&json!("compaction"), &json!("message")));
    let usage = client.simulator.ledger().last().unwrap().usage.clone();
    assert!(usage.prompt_tokens() < 5_000, "{usage:?}");
    assert!(usage.cache_read_input_tokens > 500, "tools and system are read across the summary");
    // The whole history and the summary alone render the same prompt.
    let tail = [assistant(answer["content"].clone()), user(json!([result("toolu_next", "r")]))];
    let mut whole = body.clone();
    whole["messages"].as_array_mut().unwrap().extend(tail.clone());
    let mut short = body.clone();
    short["messages"] = json!(tail);
    assert_eq!(client.count(&whole), client.count(&short));
    client.ask(&whole);
    client.ask(&short);
    assert_eq!(client.heard().messages.len(), 2);
    // Thinking after the summary is bound to it.
    short["messages"][0]["content"][0]["content"] = json!("Another summary");
    client.refused(&short);
}

#[test]
fn an_answer_may_pause_after_the_summary() {
    let mut client = TestClient::new();
    client.betas = THRESHOLD.into();
    let mut body = conversation(&mut client, 6, 120);
    threshold(&mut body, true);
    client.say(vec![OutputBlock::Text("The summary".into())]);
    let answer = client.ask(&body);
    assert_eq!(answer["stop_reason"], "compaction");
    assert_eq!(answer["content"].as_array().unwrap().len(), 1);
    body["messages"] = json!([assistant(answer["content"].clone()), user(json!([text("Go on")]))]);
    assert_eq!(client.ask(&body)["stop_reason"], "end_turn");
}

#[test]
fn failed_summary_changes_nothing() {
    let mut client = TestClient::new();
    client.betas = THRESHOLD.into();
    let mut body = conversation(&mut client, 6, 120);
    threshold(&mut body, false);
    client.say(vec![call_said("toolu_x", "Read")]);
    client.say(vec![OutputBlock::Text("Going on".into())]);
    let answer = client.ask(&body);
    assert_eq!(
        (&answer["content"][0]["type"], &answer["content"][0]["content"]),
        (&json!("compaction"), &Value::Null)
    );
    assert!(client.simulator.ledger().last().unwrap().usage.prompt_tokens() > 50_000);
    let messages = body["messages"].as_array_mut().unwrap();
    messages.push(assistant(answer["content"].clone()));
    messages.push(user(json!([text("More")])));
    body.as_object_mut().unwrap().shift_remove("context_management");
    assert!(client.count(&body) > 50_000);
}

#[test]
fn unbound_model_summaries_end_thinking_chains() {
    let cards = SimSettings::plain().cards;
    let mut client = TestClient::with(SimSettings { cards, ..SimSettings::plain() });
    client.betas = ON_DEMAND.into();
    let body = conversation(&mut client, 2, 1);
    let mut early = body.clone();
    early["model"] = json!("claude-opus-5");
    early["messages"] = json!(body["messages"].as_array().unwrap()[..3]);
    let block = summarized(&mut client, &early)["content"][0].clone();
    let mut kept = body.clone();
    let mut messages = vec![assistant(json!([block]))];
    messages.extend_from_slice(&body["messages"].as_array().unwrap()[3..]);
    kept["messages"] = json!(messages);
    assert!(client.refused(&kept)["message"].as_str().unwrap().contains("different conversation"));
}

#[test]
fn a_history_above_the_window_has_no_summary() {
    let cards = SimSettings::plain()
        .cards
        .with_overrides("[models.small]\nlike = \"claude-opus-5-5\"\nwindow = 2000\n")
        .unwrap();
    let mut client = TestClient::with(SimSettings { cards, ..SimSettings::plain() });
    client.betas = ON_DEMAND.into();
    let mut body = request(json!([user(json!(long("much", 30)))]));
    body["model"] = json!("small");
    assert!(client.count(&body) > 2_000);
    assert!(client.refused(&body)["message"].as_str().unwrap().starts_with("prompt is too long"));
    body["compaction"] = json!({"type": "summarize"});
    let answer = client.ask(&body);
    assert_eq!(answer["stop_reason"], "model_context_window_exceeded");
    assert_eq!(answer["content"], json!([]));
    assert_eq!(client.model.asked.lock().unwrap().len(), 0, "nobody was asked");
}

#[test]
fn diagnostics_compare_with_the_summary() {
    let mut client = TestClient::new();
    client.betas = THRESHOLD.into();
    let mut body = conversation(&mut client, 3, 200);
    threshold(&mut body, false);
    body["diagnostics"] = json!({"previous_message_id": null});
    client.say(vec![OutputBlock::Text("The summary.".into())]);
    let first = client.ask(&body);
    assert_eq!(first["content"][0]["type"], "compaction", "{first}");
    let messages = body["messages"].as_array_mut().unwrap();
    messages.push(assistant(first["content"].clone()));
    messages.push(user(json!("Go on")));
    body["diagnostics"] = json!({"previous_message_id": first["id"]});
    assert_eq!(client.ask(&body)["diagnostics"], Value::Null);
}
