//! Context edits and their effect on counts, thinking and the cache.

use pal_sim::{OutputBlock, SimSettings};
use serde_json::{Value, json};

use crate::client::{TestClient, assistant, call, call_said, long, marked, request, result, text, user};

const BETA: &str = "context-management-2025-06-27";

/// A tool loop of `count` rounds with alternating tools.
fn rounds(count: usize) -> Value {
    let mut messages = vec![user(json!([text("Start")]))];
    for round in 0..count {
        let name = if round % 2 == 0 { "Read" } else { "Bash" };
        let id = format!("toolu_{round}");
        messages.push(assistant(json!([call(&id, name)])));
        messages.push(user(json!([result(&id, &long("output", 3))])));
    }
    request(json!(messages))
}

fn cleared(client: &TestClient) -> Vec<usize> {
    let heard = client.heard();
    let results =
        heard.messages.iter().flat_map(|(_, blocks)| blocks).filter(|block| block.contains("tool_result"));
    let cleared = results.enumerate().filter(|(_, block)| block.contains("cleared"));
    cleared.map(|(at, _)| at).collect()
}

/// Checks which results this edit clears.
fn check(edit: Value, expected: &[usize]) {
    let mut client = TestClient::new();
    client.betas = BETA.into();
    let mut body = rounds(8);
    let sent = client.count(&body);
    body["context_management"] = json!({"edits": [edit]});
    let answer = client.ask(&body);
    assert_eq!(cleared(&client), expected, "{edit}");
    let applied = answer["context_management"]["applied_edits"].clone();
    let usage = client.simulator.ledger().last().unwrap().usage.clone();
    let mut counted = body.clone();
    counted.as_object_mut().unwrap().shift_remove("max_tokens");
    let (_, counted) = client.post("/v1/messages/count_tokens", &counted);
    assert_eq!(counted["context_management"]["original_input_tokens"], sent);
    assert_eq!(counted["input_tokens"], usage.prompt_tokens());
    if expected.is_empty() {
        assert_eq!(applied, json!([]));
        assert_eq!(usage.prompt_tokens(), sent);
    } else {
        assert_eq!(applied[0]["cleared_tool_uses"], expected.len(), "{applied}");
        assert_eq!(applied[0]["cleared_input_tokens"], sent - usage.prompt_tokens(), "{applied}");
    }
}

#[test]
fn old_results_are_cleared_as_the_edit_says() {
    let kind = "clear_tool_uses_20250919";
    let tokens = |value: u64| json!({"type": "input_tokens", "value": value});
    let uses = |value: u64| json!({"type": "tool_uses", "value": value});
    check(json!({"type": kind}), &[]);
    check(json!({"type": kind, "trigger": tokens(1_000)}), &[0, 1, 2, 3, 4]);
    check(json!({"type": kind, "trigger": tokens(1_000), "keep": uses(6)}), &[0, 1]);
    check(json!({"type": kind, "trigger": uses(7), "keep": uses(7)}), &[0]);
    check(json!({"type": kind, "trigger": uses(8)}), &[]);
    check(json!({"type": kind, "trigger": tokens(1_000), "exclude_tools": ["Bash"]}), &[0, 2, 4]);
    // Two results free enough for a step; the fifth result waits for a sixth.
    check(json!({"type": kind, "trigger": tokens(1_000), "clear_at_least": tokens(500)}), &[0, 1, 2, 3]);
    check(json!({"type": kind, "trigger": tokens(1_000), "clear_at_least": tokens(50_000)}), &[]);
    check(json!({"type": kind, "trigger": tokens(1_000), "keep": uses(0)}), &[0, 1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn cleared_results_stay_cleared_and_cached_until_the_next_step() {
    let mut client = TestClient::new();
    client.betas = BETA.into();
    let edit = json!({"type": "clear_tool_uses_20250919", "trigger": {"type": "input_tokens", "value": 1_000},
        "clear_at_least": {"type": "input_tokens", "value": 900}});
    let mut steps = Vec::new();
    let mut before = 0;
    for count in 4..14 {
        let mut body = rounds(count);
        let last = body["messages"].as_array().unwrap().len() - 1;
        body["messages"][last]["content"][0] = marked(body["messages"][last]["content"][0].clone());
        body["context_management"] = json!({"edits": [edit]});
        let usage = client.usage(&body);
        let now = cleared(&client).len();
        if now > before {
            steps.push((count, now));
        } else if count > 4 {
            assert!(usage.read > 0, "{count} rounds: {usage:?}");
        }
        before = now;
    }
    assert!(steps.len() >= 2 && steps.windows(2).all(|pair| pair[1].1 - pair[0].1 >= 2), "{steps:?}");
}

#[test]
fn inputs_are_cleared_where_asked() {
    let mut client = TestClient::new();
    client.betas = BETA.into();
    let inputs = |client: &mut TestClient, which: Value| {
        let mut body = rounds(6);
        let edit = json!({"type": "clear_tool_uses_20250919", "trigger": {"type": "tool_uses", "value": 1}, "clear_tool_inputs": which});
        body["context_management"] = json!({"edits": [edit]});
        client.ask(&body);
        let heard = client.heard();
        let blocks = heard.messages.iter().flat_map(|(_, blocks)| blocks);
        blocks.filter(|block| block.contains("\"input\":{}")).count()
    };
    assert_eq!(inputs(&mut client, json!(false)), 0);
    assert_eq!(inputs(&mut client, json!(true)), 3);
    assert_eq!(inputs(&mut client, json!(["Bash"])), 1);
}

#[test]
fn clearing_breaks_the_cache_from_the_first_cleared_block_and_keeps_thinking_valid() {
    let mut client = TestClient::new();
    client.betas = BETA.into();
    let mut body = request(json!([user(json!([marked(text(&long("start", 8)))]))]));
    body["thinking"] = json!({"type": "adaptive"});
    let head = client.usage(&body).written_5m;
    for round in 0..5 {
        let id = format!("toolu_{round}");
        client.say(vec![OutputBlock::Thinking("Hm".into()), call_said(&id, "Read")]);
        let answer = client.ask(&body)["content"].clone();
        let messages = body["messages"].as_array_mut().unwrap();
        messages.push(assistant(answer));
        messages.push(user(json!([result(&id, &long("output", 3))])));
    }
    let last = body["messages"].as_array().unwrap().len() - 1;
    body["messages"][last]["content"][0] = marked(body["messages"][last]["content"][0].clone());
    let whole = client.usage(&body);
    assert_eq!(whole.read, head);
    assert_eq!(client.usage(&body).read, head + whole.written_5m);
    let edit = json!({"type": "clear_tool_uses_20250919", "trigger": {"type": "tool_uses", "value": 2}});
    body["context_management"] = json!({"edits": [edit]});
    let edited = client.usage(&body);
    assert_eq!(edited.read, head, "tools, system and the first message");
    assert_eq!(client.usage(&body).read, head + edited.written_5m);
}

#[test]
fn old_thinking_is_cleared_by_turns() {
    let mut client = TestClient::new();
    client.betas = BETA.into();
    let mut body = request(json!([user(json!([text("Start")]))]));
    body["thinking"] = json!({"type": "adaptive"});
    for round in 0..4 {
        // A tool loop is one turn; user text begins another.
        for call in 0..2 {
            let id = format!("toolu_{round}_{call}");
            client.say(vec![OutputBlock::Thinking(long("thought", 1)), call_said(&id, "Read")]);
            let answer = client.ask(&body)["content"].clone();
            let messages = body["messages"].as_array_mut().unwrap();
            messages.push(assistant(answer));
            let mut said = vec![result(&id, "r")];
            said.extend((call == 1).then(|| text("Go on")));
            messages.push(user(json!(said)));
        }
    }
    let sent = client.count(&body);
    let mut cleared = |keep: Value| {
        body["context_management"] = json!({"edits": [{"type": "clear_thinking_20251015", "keep": keep}]});
        let answer = client.ask(&body);
        let applied = answer["context_management"]["applied_edits"][0].clone();
        let usage = client.simulator.ledger().last().unwrap().usage.prompt_tokens();
        assert_eq!(applied["cleared_input_tokens"].as_u64().unwrap_or(0), sent - usage, "{applied}");
        applied["cleared_thinking_turns"].as_u64().unwrap_or(0)
    };
    assert_eq!(cleared(json!({"type": "thinking_turns", "value": 1})), 3);
    assert_eq!(cleared(json!({"type": "thinking_turns", "value": 3})), 1);
    assert_eq!(cleared(json!({"type": "thinking_turns", "value": 9})), 0);
    assert_eq!(cleared(json!("all")), 0);
    assert_eq!(cleared(json!({"type": "all"})), 0);
}

#[test]
fn models_without_edits_refuse_them() {
    let cards = SimSettings::plain().cards.with_overrides(
        "[models.plain]\nlike = \"claude-opus-5-5\"\ncontext_management = []\nprovider_compaction = false\n",
    );
    let mut client = TestClient::with(SimSettings { cards: cards.unwrap(), ..SimSettings::plain() });
    client.betas = format!("{BETA},compact-2026-09-04");
    let mut body = rounds(1);
    body["model"] = json!("plain");
    body["context_management"] = json!({"edits": [{"type": "clear_tool_uses_20250919"}]});
    assert!(client.refused(&body)["message"].as_str().unwrap().contains("not supported"));
    body.as_object_mut().unwrap().shift_remove("context_management");
    body["compaction"] = json!({"type": "summarize"});
    assert!(client.refused(&body)["message"].as_str().unwrap().contains("not supported"));
}

#[test]
fn cached_results_are_deleted_in_place() {
    let cards = SimSettings::plain()
        .cards
        .with_overrides("[models.private]\nlike = \"claude-opus-5-5\"\ncache_edits = true\n");
    let mut client = TestClient::with(SimSettings { cards: cards.unwrap(), ..SimSettings::plain() });
    let mut body = rounds(4);
    body["model"] = json!("private");
    for round in 0..4 {
        body["messages"][2 + 2 * round]["content"][0]["cache_reference"] = json!(format!("ref_{round}"));
    }
    let last = body["messages"][8]["content"][0].clone();
    body["messages"][8]["content"][0] = marked(last);
    let first = client.usage(&body);
    assert_eq!(first.read, 0);
    let edits = json!({"type": "cache_edits", "edits": [{"type": "delete", "cache_reference": "ref_0"}]});
    body["messages"][8]["content"].as_array_mut().unwrap().push(edits);
    let second = client.usage(&body);
    let deleted = client.ask(&body)["usage"]["cache_deleted_input_tokens"].as_u64().unwrap();
    assert!(deleted > 100, "{deleted}");
    assert_eq!((second.read, second.written()), (first.written() - deleted, 0), "the prefix is still read");
    assert_eq!(cleared(&client), [0]);
}

#[test]
fn a_clearing_edit_that_fires_is_the_reason_for_a_miss() {
    let mut client = TestClient::new();
    client.betas = BETA.into();
    let ask = |client: &mut TestClient, n_rounds, previous: Value| {
        let mut body = rounds(n_rounds);
        let edit = json!({"type": "clear_tool_uses_20250919", "trigger": {"type": "tool_uses", "value": 4}});
        body["context_management"] = json!({"edits": [edit]});
        body["diagnostics"] = json!({"previous_message_id": previous});
        client.ask(&body)
    };
    let first = ask(&mut client, 3, Value::Null);
    let second = ask(&mut client, 4, first["id"].clone());
    assert_eq!(second["diagnostics"], Value::Null, "nothing was cleared yet");
    let third = ask(&mut client, 5, second["id"].clone());
    let reason = &third["diagnostics"]["cache_miss_reason"];
    assert_eq!(reason["type"], "messages_changed");
    assert!(reason["cache_missed_input_tokens"].as_u64().unwrap() > 500, "{reason}");
}
