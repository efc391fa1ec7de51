//! Small windows: the lean prefix, servers without usage, and token estimates of unknown models.

use pal_agent_testkit::{AgentWorld, ProviderSetup, TestAgent, calls, is_summary, says};
use pal_events::PromptEnd;
use pal_sim::{ExtractiveModel, SimulatedModel};
use pal_wire::Dialect;
use serde_json::{Value, json};

use crate::{BYPASS, last_message};

/// A model of 8,192 tokens of which nothing else is known.
const LOCAL: &str = "[models.local]\nwindow = 8_192\n";
const SETTINGS: &str = "model = \"local\"\npermissions.mode = \"bypass\"\n";

/// A model that answers each prompt after two looks at a file.
fn reader(cards: &str) -> ProviderSetup {
    let setup = ProviderSetup::answers(|_, ask| {
        if is_summary(ask) {
            return ExtractiveModel.answer(ask);
        }
        let last = last_message(ask);
        match (last.contains("tool_result"), last.contains("part two")) {
            (false, _) => calls("I look.", &[("Bash", json!({"command": "cat notes.txt"}))]),
            (true, false) => {
                calls("And on.", &[("Bash", json!({"command": "echo part two; cat notes.txt"}))])
            }
            (true, true) => says("It says the same as before, in as many words as it takes to say it."),
        }
    });
    ProviderSetup { dialect: Dialect::Chat, cards: cards.to_owned(), ..setup }
}

fn world(setup: ProviderSetup) -> AgentWorld {
    let world = AgentWorld::new(setup);
    let lines: String = (0..40)
        .map(|line| format!("Line {line}: the reader counts what it reads, word by word.\n"))
        .collect();
    world.file("notes.txt", &lines);
    world
}

/// Names of the tools of the newest request.
fn tools(world: &AgentWorld) -> Vec<String> {
    let heard = world.provider.heard();
    let head = heard.asked.last().unwrap().head.clone();
    let parsed = head.iter().filter_map(|raw| serde_json::from_str::<Value>(raw).ok());
    parsed.filter_map(|tool| Some(tool["name"].as_str()?.to_owned())).collect()
}

fn refusals(world: &AgentWorld) -> Vec<(u16, String)> {
    world.provider.heard().refused.clone()
}

fn notes(agent: &TestAgent) -> Vec<Value> {
    agent.log_of_kind("prefix").iter().map(|prefix| prefix["notes"]["profile"].clone()).collect()
}

#[test]
fn ten_prompts_fit_a_window_of_8192_tokens_without_usage() {
    let world = world(ProviderSetup { faults: String::from("usage=missing"), ..reader(LOCAL) });
    let mut agent = world.start(SETTINGS);
    for number in 0..10 {
        let ended = agent.prompt(&format!("Prompt {number}: read the notes twice and say what you see."));
        assert_eq!(ended.end, PromptEnd::Done, "prompt {number}: {}", agent.notices());
        assert!(!ended.spent.is_reported(), "{:?}", ended.spent);
    }
    assert_eq!(refusals(&world), []);
    assert!(!agent.log_of_kind("boundary").is_empty(), "thirty requests do not fit without a compaction");
    let listed = tools(&world);
    assert!(
        listed.contains(&String::from("ToolSearch")) && !listed.contains(&String::from("Todo")),
        "{listed:?}"
    );
}

#[test]
fn a_server_that_is_smaller_than_its_card_gets_the_lean_prefix() {
    let cards = "[models.local]\nmax_output = 4_096\n";
    let world = world(ProviderSetup { window: Some(8_192), ..reader(cards) });
    let mut agent = world.start(SETTINGS);
    assert_eq!(agent.prompt("Say hello.").end, PromptEnd::Done, "{}", agent.notices());
    assert_eq!(notes(&agent), [Value::Null, json!("lean")]);
    assert!(!refusals(&world).is_empty(), "the full prefix was refused");
    agent.finish();
    let before = refusals(&world).len();
    let mut next = world.start(SETTINGS);
    assert_eq!(next.prompt("Say hello.").end, PromptEnd::Done, "{}", next.notices());
    assert_eq!((notes(&next), refusals(&world).len()), (vec![json!("lean")], before));
}

#[test]
fn a_learned_window_moves_the_threshold_of_the_running_session() {
    let world =
        world(ProviderSetup { window: Some(8_192), ..reader("[models.local]\nmax_output = 4_096\n") });
    let mut agent = world.start(SETTINGS);
    for number in 0..8 {
        let ended = agent.prompt(&format!("Prompt {number}: read the notes twice and say what you see."));
        assert_eq!(ended.end, PromptEnd::Done, "prompt {number}: {}", agent.notices());
    }
    assert_eq!(refusals(&world).len(), 1, "later requests fit: {:?}", refusals(&world));
    let triggers: Vec<Value> =
        agent.log_of_kind("boundary").iter().map(|line| line["trigger"].clone()).collect();
    assert!(!triggers.is_empty() && triggers.iter().all(|trigger| trigger == "auto"), "{triggers:?}");
}

#[test]
fn a_server_that_allows_shorter_answers_than_its_card_gets_shorter_requests() {
    // The server's answers have at most 1/8 of its window.
    let setup = ProviderSetup { dialect: Dialect::Messages, window: Some(32_768), ..reader("") };
    let world = world(setup);
    let mut agent = world.start("model = \"claude-opus-4-5\"\npermissions.mode = \"bypass\"\n");
    for number in 0..6 {
        let ended = agent.prompt(&format!("Prompt {number}: read the notes twice and say what you see."));
        assert_eq!(ended.end, PromptEnd::Done, "prompt {number}: {}", agent.notices());
    }
    let of_answers =
        refusals(&world).iter().filter(|(_, why)| why.contains("number of output tokens")).count();
    assert_eq!(of_answers, 1, "the limit is learned once: {:?}", refusals(&world));
    assert!(agent.notices().contains("max_output = 4096"), "{}", agent.notices());
}

#[test]
fn a_server_that_silently_cuts_prompts_is_noticed_by_its_usage() {
    let cards = "[models.local]\nwindow = 32_768\n";
    let setup = ProviderSetup { faults: String::from("usage=4096"), ..reader(cards) };
    let world = world(setup);
    let mut agent = world.start(SETTINGS);
    for number in 0..8 {
        let ended = agent.prompt(&format!("Prompt {number}: read the notes twice and say what you see."));
        assert_eq!(ended.end, PromptEnd::Done, "prompt {number}: {}", agent.notices());
    }
    let notices = agent.notices();
    assert!(notices.contains("leaves out part of the prompt") && notices.contains("4,096"), "{notices}");
    assert!(!agent.log_of_kind("boundary").is_empty(), "the context is kept below what the server reads");
    let factors = agent.log_of_kind("decision").iter().filter(|line| line["factors"].is_object()).count();
    assert_eq!(factors, 0, "usage that was cut says nothing about the tokenizer");
    agent.finish();
    let mut next = world.start(SETTINGS);
    assert_eq!(next.prompt("Say hello.").end, PromptEnd::Done);
    assert_eq!(notes(&next), [json!("lean")], "the next session knows the window");
}

#[test]
fn a_resumed_session_keeps_its_profile_and_reaches_deferred_tools() {
    let steps = vec![
        ("ToolSearch", json!({"query": "select:Todo"})),
        ("CallTool", json!({"name": "Todo", "input": {"todos": []}})),
    ];
    let world = AgentWorld::new(crate::caller(steps));
    let agent = world.start(&format!("max_context_tokens = 16000\n{BYPASS}"));
    let log = agent.finish();
    // Without the limit, a new session would have the full profile.
    let mut resumed = world.resume(BYPASS, &log);
    assert_eq!(resumed.prompt("Find the list.").end, PromptEnd::Done);
    assert_eq!(notes(&resumed), [json!("lean")]);
    let results = resumed.log_of_kind("user").iter().map(Value::to_string).collect::<String>();
    assert!(!results.contains("is_error"), "{results}");
}

#[test]
fn the_first_usage_corrects_the_estimates_and_later_sessions_start_with_it() {
    let world = world(reader(LOCAL));
    let mut agent = world.start(SETTINGS);
    agent.prompt("Read the notes.");
    agent.prompt("Read them again.");
    let factors = agent.log_of_kind("factors");
    assert_eq!(factors.len(), 1, "frozen after the first usage: {factors:?}");
    assert!(factors[0]["factors"]["local"].is_u64(), "{factors:?}");
    agent.finish();
    let next = world.start(SETTINGS);
    let kinds: Vec<Value> = next.log().iter().map(|line| line["kind"].clone()).collect();
    assert_eq!(kinds, ["session", "prefix", "factors"]);
}
