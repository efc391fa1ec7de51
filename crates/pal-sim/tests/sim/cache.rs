//! The prefix cache follows its documented rules.

use std::time::Duration;

use pal_sim::{OutputBlock, ReplyPace, SimSettings};
use serde_json::{Value, json};

use crate::client::{
    TestClient, UsageCounts, assistant, call, call_said, long, marked, marked_1h, request, result, text,
    tool, user,
};

/// A conversation with a breakpoint on the last tool, the system prompt and the last message, each layer
/// large enough.
fn layered() -> Value {
    json!({
        "model": "claude-opus-5-5",
        "max_tokens": 100,
        "tools": [{"name": "Read", "description": long("tool", 8), "input_schema": {"type": "object"}}, marked(tool("Bash"))],
        "system": [text(&long("first", 4)), marked(text(&long("system", 8)))],
        "messages": [
            user(json!([text(&long("question", 8))])),
            assistant(json!([text("An answer"), call("toolu_1", "Read")])),
            user(json!([result("toolu_1", &long("result", 8)), marked(text("Go on"))])),
        ],
    })
}

#[test]
fn identical_request_reads_everything_written() {
    let mut client = TestClient::new();
    let body = layered();
    let first = client.usage(&body);
    assert!(first.read == 0 && first.written_5m > 1_500 && first.uncached < 10, "{first:?}");
    let second = client.usage(&body);
    assert_eq!(second, UsageCounts { read: first.written_5m, written_5m: 0, ..first });
}

#[test]
fn tool_loop_reads_old_blocks_and_writes_new_ones() {
    let mut client = TestClient::new();
    let mut body = layered();
    let mut previous = client.usage(&body);
    for round in 0..100 {
        client.say(vec![call_said(&format!("toolu_r{round}"), "Read")]);
        let answer = client.ask(&body)["content"].clone();
        let messages = body["messages"].as_array_mut().unwrap();
        let last = messages.last_mut().unwrap()["content"].as_array_mut().unwrap().last_mut().unwrap();
        last.as_object_mut().unwrap().shift_remove("cache_control");
        messages.push(assistant(answer));
        messages.push(user(json!([marked(result(&format!("toolu_r{round}"), &long("more", 1)))])));
        let counts = client.usage(&body);
        assert_eq!(counts.read, previous.read + previous.written_5m, "round {round}");
        assert!(counts.written_5m > 50 && counts.uncached < 10, "{counts:?}");
        previous = counts;
    }
}

#[test]
fn entries_live_from_the_start_of_a_request_and_reading_refreshes_them() {
    let mut client = TestClient::new();
    let body = layered();
    let written = client.usage(&body).written_5m;
    for _ in 0..3 {
        client.wait(299);
        assert_eq!(client.usage(&body).read, written);
    }
    client.wait(300);
    assert_eq!(client.usage(&body).read, 0);
}

#[test]
fn one_hour_entries_live_one_hour() {
    let mut client = TestClient::new();
    let mut body = layered();
    body["tools"][1] = marked_1h(tool("Bash"));
    body["system"][1] = marked_1h(text(&long("system", 8)));
    let first = client.usage(&body);
    assert!(first.written_1h > 1_000 && first.written_5m > 500, "{first:?}");
    client.wait(3_599);
    let later = client.usage(&body);
    assert_eq!((later.read, later.written_5m), (first.written_1h, first.written_5m));
    client.wait(3_600);
    assert_eq!(client.usage(&body), first);
}

#[test]
fn entries_are_readable_when_the_answer_of_their_writer_has_begun() {
    let pace = ReplyPace { start: Duration::from_secs(2), ..ReplyPace::none() };
    let mut client = TestClient::with(SimSettings { pace, ..SimSettings::plain() });
    let body = layered();
    let first = client.usage(&body);
    client.wait(1);
    assert_eq!(client.usage(&body), first);
    client.wait(1);
    assert_eq!(client.usage(&body).read, first.written_5m);
}

#[test]
fn keys_and_models_do_not_share_entries() {
    let mut client = TestClient::new();
    let body = layered();
    let written = client.usage(&body).written_5m;
    client.key = "key-two".into();
    assert_eq!(client.usage(&body).read, 0);
    client.key = "key-one".into();
    let mut other = body.clone();
    other["model"] = json!("claude-fable-5-1");
    assert_eq!(client.usage(&other).read, 0);
    assert_eq!(client.usage(&body).read, written);
}

#[test]
fn breakpoints_below_the_minimum_size_are_ignored() {
    let mut client = TestClient::new();
    let body =
        json!({"model": "claude-opus-5-5", "max_tokens": 9, "messages": [user(json!([marked(text("Hi"))]))]});
    for _ in 0..2 {
        let counts = client.usage(&body);
        assert_eq!((counts.read, counts.written()), (0, 0));
    }
    assert_eq!(client.simulator.ledger().last().unwrap().cache.marks, 0);
}

/// Checks which layers stay cached after a change to the request.
fn check_survivors(name: &str, change: impl Fn(&mut Value), survivors: (bool, bool, bool)) {
    let mut client = TestClient::new();
    client.version = "2026-10-21";
    client.betas = "mid-conversation-output-config-2026-07-01".into();
    // Sizes of the layers, from requests that end after each.
    let body = layered();
    let all = client.usage(&body).written_5m;
    let mut head = body.clone();
    head["messages"] = json!([user(json!("x"))]);
    let system = client.usage(&head).read;
    head["system"] = json!("x");
    let tools = client.usage(&head).read;
    assert!(0 < tools && tools < system && system < all, "{tools} {system} {all}");
    let mut changed = body.clone();
    change(&mut changed);
    let expected = match survivors {
        (true, true, true) => all,
        (true, true, false) => system,
        (true, false, false) => tools,
        _ => 0,
    };
    assert_eq!(client.usage(&changed).read, expected, "{name}");
}

#[test]
fn changed_tools_or_system_invalidate_later_layers() {
    let web = json!({"type": "web_search_20260318", "name": "web_search"});
    check_survivors("nothing", |_| {}, (true, true, true));
    check_survivors(
        "one byte of a tool",
        |body| body["tools"][1]["description"] = json!("Does bash"),
        (false, false, false),
    );
    check_survivors(
        "order of tools",
        |body| {
            let description = body["tools"][0].clone();
            body["tools"] = json!([marked(tool("Bash")), description]);
        },
        (false, false, false),
    );
    check_survivors(
        "a schema in another order",
        |body| {
            body["tools"][1]["input_schema"] =
                json!({"properties": {"path": {"type": "string"}}, "type": "object"});
        },
        (false, false, false),
    );
    check_survivors(
        "web search",
        |body| body["tools"].as_array_mut().unwrap().insert(0, web.clone()),
        (true, false, false),
    );
    check_survivors("speed", |body| body["speed"] = json!("fast"), (true, false, false));
    check_survivors(
        "citations",
        |body| {
            let source = json!({"type": "text", "media_type": "text/plain", "data": "x"});
            let document = json!({"type": "document", "source": source, "citations": {"enabled": true}});
            body["messages"][2]["content"].as_array_mut().unwrap().push(document);
        },
        (true, false, false),
    );
    check_survivors("system text", |body| body["system"][0] = text("other"), (true, false, false));
}

#[test]
fn changed_parameters_invalidate_messages() {
    check_survivors("tool choice", |body| body["tool_choice"] = json!({"type": "none"}), (true, true, false));
    check_survivors(
        "no parallel calls",
        |body| {
            body["tool_choice"] = json!({"type": "auto", "disable_parallel_tool_use": true});
        },
        (true, true, false),
    );
    check_survivors(
        "the usual choice",
        |body| body["tool_choice"] = json!({"type": "auto"}),
        (true, true, true),
    );
    check_survivors("effort", |body| body["output_config"] = json!({"effort": "high"}), (true, true, false));
    check_survivors(
        "the usual effort",
        |body| body["output_config"] = json!({"effort": "medium"}),
        (true, true, true),
    );
    check_survivors(
        "the usual thinking",
        |body| body["thinking"] = json!({"type": "adaptive"}),
        (true, true, true),
    );
    check_survivors(
        "one byte of an old message",
        |body| body["messages"][0]["content"][0] = text("other"),
        (true, true, false),
    );
}

#[test]
fn appended_or_ignored_changes_keep_the_cache() {
    let mut late = tool("Late");
    late["defer_loading"] = json!(true);
    let image = json!({"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}});
    check_survivors(
        "the first image",
        |body| body["messages"][2]["content"].as_array_mut().unwrap().push(image.clone()),
        (true, true, true),
    );
    check_survivors(
        "a deferred tool",
        |body| body["tools"].as_array_mut().unwrap().push(late.clone()),
        (true, true, true),
    );
    check_survivors(
        "parameters",
        |body| {
            body["max_tokens"] = json!(7);
            body["metadata"] = json!({"user_id": "me"});
            body["stop_sequences"] = json!(["x"]);
        },
        (true, true, true),
    );
    check_survivors(
        "a system message at the end",
        |body| {
            body["messages"].as_array_mut().unwrap().push(json!({"role": "system", "content": "Plan mode"}));
        },
        (true, true, true),
    );
    check_survivors(
        "effort per message",
        |body| {
            let switch = json!({"role": "system", "content": [], "output_config": {"effort": "low"}});
            body["messages"].as_array_mut().unwrap().push(switch);
        },
        (true, true, true),
    );
    check_survivors(
        "white space and order of fields",
        |body| {
            body["messages"][0]["content"] = json!([{"text": long("question", 8), "type": "text"}]);
        },
        (true, true, true),
    );
}

#[test]
fn thinking_modes_are_part_of_the_key_where_they_can_be_chosen() {
    let mut client = TestClient::new();
    let mut body = layered();
    body["model"] = json!("claude-opus-5");
    let all = client.usage(&body).written_5m;
    body["thinking"] = json!({"type": "adaptive"});
    let counts = client.usage(&body);
    assert!(counts.read > 0 && counts.read < all, "{counts:?}");
    body["thinking"] = json!({"type": "disabled"});
    assert_eq!(client.usage(&body).read, all);
}

#[test]
fn a_change_of_the_last_message_rewrites_only_what_follows() {
    let mut client = TestClient::new();
    let mut body = layered();
    body["messages"][0]["content"][0] = marked(text(&long("question", 8)));
    let first = client.usage(&body);
    body["messages"][2]["content"][1] = marked(text("Go on!"));
    let second = client.usage(&body);
    assert!(second.read > 0 && second.written_5m > 0, "{second:?}");
    assert!(second.read + second.written_5m >= first.written_5m, "{first:?} {second:?}");
    // The question had a breakpoint; the answer and the result had none.
    let result_tokens = first.written_5m - second.read;
    assert!(result_tokens > 200, "{result_tokens}");
}

/// Checks reads with these blocks between the breakpoints of two requests.
fn check_look_back(between: Vec<Value>, is_read: bool, name: &str) {
    let mut client = TestClient::new();
    let start = text(&long("start", 8));
    let body = |messages: Value| json!({"model": "claude-opus-5-5", "max_tokens": 9, "tools": [tool("Read")], "messages": messages});
    let first = client.usage(&body(json!([user(json!([marked(start.clone())]))])));
    let mut messages = vec![user(json!([start]))];
    messages.extend(between);
    let counts = client.usage(&body(json!(messages)));
    assert_eq!(counts.read, if is_read { first.written_5m } else { 0 }, "{name}");
}

#[test]
fn look_back_covers_twenty_positions_and_runs_count_once() {
    let texts = |count: usize| -> Vec<Value> {
        // An answer, then a message of `count` blocks with a breakpoint on the last.
        let mut blocks: Vec<Value> = (1..count).map(|number| text(&format!("block {number}"))).collect();
        blocks.push(marked(text("end")));
        vec![assistant(json!("An answer")), user(json!(blocks))]
    };
    // The breakpoint is position 1, so 17 texts before it, the answer and the start are positions 2 to 20.
    check_look_back(texts(18), true, "the twentieth position");
    check_look_back(texts(19), false, "the twenty-first position");
    let calls: Vec<Value> = (0..50).map(|number| call(&format!("toolu_{number}"), "Read")).collect();
    let mut results: Vec<Value> = (0..50).map(|number| result(&format!("toolu_{number}"), "r")).collect();
    results.push(marked(text("end")));
    check_look_back(
        vec![assistant(json!(calls)), user(json!(results))],
        true,
        "a run of calls and one of results",
    );
}

#[test]
fn every_breakpoint_has_its_own_look_back() {
    let mut client = TestClient::new();
    let start = text(&long("start", 8));
    let body = |messages: Value| json!({"model": "claude-opus-5-5", "max_tokens": 9, "messages": messages});
    let first = client.usage(&body(json!([user(json!([marked(start.clone())]))])));
    let mut blocks: Vec<Value> = (0..30).map(|number| text(&format!("block {number}"))).collect();
    blocks[29] = marked(blocks[29].clone());
    let far = json!([user(json!([start])), assistant(json!("So")), user(json!(blocks))]);
    assert_eq!(client.usage(&body(far)).read, 0);
    blocks[5] = marked(blocks[5].clone());
    blocks[10] = text("another, so that nothing of the last request is found");
    let near = json!([user(json!([start])), assistant(json!("So")), user(json!(blocks))]);
    assert_eq!(client.usage(&body(near)).read, first.written_5m);
}

#[test]
fn mixed_ttls_are_billed_in_order() {
    let mut client = TestClient::new();
    let mut body = layered();
    body["tools"][1] = marked_1h(tool("Bash"));
    let first = client.usage(&body);
    body["system"][1] = marked_1h(text(&long("system", 8)));
    let second = client.usage(&body);
    // Everything up to the last breakpoint is read, for any TTL.
    assert_eq!((second.read, second.written()), (first.written(), 0));
    body["system"][1] = marked_1h(text(&long("changed", 8)));
    let third = client.usage(&body);
    assert_eq!(third.read, first.written_1h, "the tools");
    assert!(third.written_1h > 500 && third.written_5m > 500, "{third:?}");
}

#[test]
fn automatic_caching_uses_the_last_block_that_allows_a_breakpoint() {
    let mut client = TestClient::new();
    client.betas = "mid-conversation-system-clear-at-2026-08-21".into();
    let mut body = request(json!([user(json!(long("question", 8)))]));
    body["cache_control"] = json!({"type": "ephemeral"});
    let first = client.usage(&body);
    assert!(first.written_5m > 500 && first.uncached < 10, "{first:?}");
    let messages = body["messages"].as_array_mut().unwrap();
    messages.push(assistant(json!("An answer")));
    messages.push(user(json!("More")));
    messages.push(json!({"role": "system", "content": "Now", "clear_at": "next_user_message"}));
    let second = client.usage(&body);
    assert_eq!(second.read, first.written_5m);
    // The turn-scoped message cannot have a breakpoint and is uncached each time.
    assert!(second.written_5m > 0 && second.uncached > first.uncached, "{second:?}");
}

#[test]
fn prewarm_writes_without_an_answer() {
    let mut client = TestClient::new();
    let mut body = layered();
    body["max_tokens"] = json!(0);
    let answer = client.ask(&body);
    assert_eq!((&answer["content"], &answer["stop_reason"]), (&json!([]), &json!("max_tokens")));
    assert_eq!(answer["usage"]["output_tokens"], 0);
    body["max_tokens"] = json!(5);
    assert!(client.usage(&body).read > 1_500);
}

#[test]
fn old_models_forget_the_thinking_of_earlier_turns() {
    let read_after_new_turn = |model: &str, thinking: Value| {
        let mut client = TestClient::new();
        client.version = "2023-06-01";
        client.say(vec![OutputBlock::Thinking(long("thought", 3)), OutputBlock::Text("An answer".into())]);
        let mut body = json!({"model": model, "max_tokens": 20_000, "thinking": thinking, "messages": [
            user(json!([text(&long("question", 60))])),
        ]});
        let answer = client.ask(&body)["content"].clone();
        body["messages"].as_array_mut().unwrap().push(assistant(answer));
        body["messages"].as_array_mut().unwrap().push(user(json!([marked(text("And then?"))])));
        let counted = client.count(&body);
        let mut without = body.clone();
        without["messages"][1]["content"].as_array_mut().unwrap().remove(0);
        counted - client.count(&without)
    };
    let budget = json!({"type": "enabled", "budget_tokens": 2000});
    assert_eq!(read_after_new_turn("claude-sonnet-4-5", budget.clone()), 0);
    assert_eq!(read_after_new_turn("claude-haiku-4-5", budget.clone()), 0);
    assert!(read_after_new_turn("claude-opus-4-5", budget.clone()) > 100);
    assert!(read_after_new_turn("claude-opus-4-6", budget) > 100);
    assert!(read_after_new_turn("claude-opus-5-5", json!({"type": "adaptive"})) > 100);
}

#[test]
fn diagnostics_name_the_first_layer_that_differs() {
    let check = |change: fn(&mut Value), reason: Value| {
        let mut client = TestClient::new();
        let mut body = layered();
        body["diagnostics"] = json!({"previous_message_id": null});
        let first = client.ask(&body);
        assert_eq!(first["diagnostics"], Value::Null);
        body["diagnostics"] = json!({"previous_message_id": first["id"]});
        body["messages"].as_array_mut().unwrap().push(assistant(first["content"].clone()));
        body["messages"].as_array_mut().unwrap().push(user(json!("Next")));
        change(&mut body);
        let diagnosed = client.ask(&body)["diagnostics"].clone();
        assert_eq!(diagnosed["cache_miss_reason"]["type"], reason, "{diagnosed}");
        if let Some(missed) = diagnosed["cache_miss_reason"].get("cache_missed_input_tokens") {
            assert!(missed.as_u64().unwrap() > 100, "{diagnosed}");
        }
    };
    check(|_| {}, Value::Null);
    check(|body| body["model"] = json!("claude-fable-5-1"), json!("model_changed"));
    check(|body| body["speed"] = json!("fast"), json!("model_changed"));
    check(|body| body["tools"][0]["description"] = json!("x"), json!("tools_changed"));
    check(|body| body["system"][0] = text("x"), json!("system_changed"));
    check(|body| body["tool_choice"] = json!({"type": "none"}), json!("unavailable"));
    check(|body| body["output_config"] = json!({"effort": "low"}), json!("unavailable"));
    // Explicit defaults change nothing.
    check(|body| body["tool_choice"] = json!({"type": "auto"}), Value::Null);
    check(|body| body["thinking"] = json!({"type": "adaptive"}), Value::Null);
    check(|body| body["output_config"] = json!({"effort": "medium"}), Value::Null);
    // Appending keeps the cache; citations invalidate it even so.
    check(
        |body| {
            let source = json!({"type": "url", "url": "https://example.org/a.png"});
            body["messages"][4]["content"] = json!([{"type": "image", "source": source}]);
        },
        Value::Null,
    );
    check(
        |body| {
            let source = json!({"type": "text", "media_type": "text/plain", "data": "Words"});
            body["messages"][4]["content"] =
                json!([{"type": "document", "source": source, "citations": {"enabled": true}}]);
        },
        json!("system_changed"),
    );
    check(
        |body| {
            let search = json!({"type": "web_search_20260318", "name": "web_search"});
            body["tools"].as_array_mut().unwrap().push(search);
        },
        json!("system_changed"),
    );
    check(|body| body["messages"][0]["content"] = json!("x"), json!("messages_changed"));
    check(
        |body| body["diagnostics"] = json!({"previous_message_id": "msg_unknown"}),
        json!("previous_message_not_found"),
    );
    check(
        |body| {
            body["tools"][0]["description"] = json!("x");
            body["tool_choice"] = json!({"type": "none"});
        },
        json!("tools_changed"),
    );
}

/// Adds white space wherever JSON allows it.
fn pretty(body: &Value) -> Vec<u8> {
    serde_json::to_vec_pretty(body).unwrap()
}

#[test]
fn breakpoints_and_white_space_are_not_counted() {
    let mut client = TestClient::new();
    let found = json!({"type": "search_result", "source": "https://example.org/a", "title": "A page",
        "content": [text("Words that were found")]});
    let search = |block: Value| {
        json!({"model": "claude-opus-5-5", "tools": [tool("Read")], "messages": [user(json!([block, text("Go")])),
            assistant(json!([call("toolu_1", "Read")])), user(json!([result("toolu_1", "r")]))]})
    };
    let mut with_tool = search(found.clone());
    with_tool["tools"][0] = marked(tool("Read"));
    let plain = search(found.clone());
    let counted = client.count(&plain);
    assert_eq!(client.count(&with_tool), counted, "a mark on a tool");
    assert_eq!(client.count(&search(marked(found))), counted, "a mark on a search result");
    let reply = client.request("POST", "/v1/messages/count_tokens", &pretty(&plain));
    let answer: Value = serde_json::from_slice(&reply.body()).unwrap();
    assert_eq!(answer["input_tokens"], counted, "white space");
}

#[test]
fn moving_a_breakpoint_off_a_tool_keeps_the_reads() {
    let mut client = TestClient::new();
    let mut body = layered();
    let written = client.usage(&body).written_5m;
    body["tools"][1] = tool("Bash");
    let counts = client.usage(&body);
    assert_eq!((counts.read, counts.written()), (written, 0));
}
