//! Compactions: by command, automatic, undone, after a refusal; and pins that survive them.

use pal_agent_testkit::{AgentWorld, ProviderSetup, calls, is_summary, says};
use pal_context::CompactionRange;
use pal_events::{AgentEvent, PromptEnd};
use pal_model::{EntryBody, EntryId, LogEntry, MessageOrigin};
use pal_sim::{ExtractiveModel, SimulatedModel};
use pal_wire::Dialect;
use serde_json::{Value, json};

use crate::{BYPASS, bash, caller, last_message, talker};

/// Boundaries that the agent reported.
fn boundaries(agent: &pal_agent_testkit::TestAgent) -> usize {
    agent.events(|event| matches!(event, AgentEvent::Compacted(_)).then_some(())).len()
}

#[test]
fn a_compaction_by_command_makes_the_next_request_shorter() {
    let world = AgentWorld::new(talker(200));
    let mut agent = world.start("");
    for prompt in ["one", "two", "three"] {
        agent.prompt(prompt);
    }
    agent.agent.compact(Some(String::from("the numbers"))).unwrap();
    assert_eq!(boundaries(&agent), 1);
    let boundary = &agent.log_of_kind("boundary")[0];
    assert!(!boundary["summary"].as_array().unwrap().is_empty(), "{boundary}");
    agent.prompt("four");
    let heard = world.provider.heard();
    let summary = heard.asked.iter().find(|asked| asked.is_summary).unwrap();
    assert!(summary.text().contains("the numbers"));
    let (before, after) = (heard.asked[2].text().len(), heard.asked.last().unwrap().text().len());
    assert!(after < before, "{before} {after}");
    assert_eq!(heard.asked.last().unwrap().head, heard.asked[0].head, "tools and system prompt stay");
}

#[test]
fn an_empty_session_is_not_compacted() {
    let world = AgentWorld::new(talker(0));
    let mut agent = world.start("");
    assert!(agent.agent.compact(None).is_err());
    assert_eq!((boundaries(&agent), world.provider.heard().asked.len()), (0, 0));
}

#[test]
fn a_small_window_compacts_by_itself() {
    let world = AgentWorld::new(talker(400));
    let mut agent = world.start("threshold = { used = 24000 }\n");
    for prompt in ["one", "two", "three", "four", "five", "six", "seven", "eight"] {
        assert_eq!(agent.prompt(prompt).end, PromptEnd::Done);
    }
    assert!(boundaries(&agent) >= 1);
    assert_eq!(agent.log_of_kind("boundary").len(), boundaries(&agent));
    let compacting = agent.events(|event| match event {
        AgentEvent::Compacting { tokens } => Some(*tokens),
        _ => None,
    });
    assert!(compacting[0] >= 20_000, "{compacting:?}");
}

#[test]
fn an_undone_compaction_restores_the_earlier_request() {
    let world = AgentWorld::new(talker(50));
    let mut agent = world.start("");
    agent.prompt("one");
    agent.prompt("two");
    agent.agent.compact(None).unwrap();
    agent.agent.uncompact().unwrap();
    agent.prompt("three");
    let heard = world.provider.heard();
    let last = heard.asked.last().unwrap();
    assert_eq!(last.departs_from(&heard.asked[1]), None);
    assert!(last.text().contains("Answer 1.") && last.text().contains("Answer 2."));
}

#[test]
fn a_pin_is_kept_by_a_compaction_until_it_is_removed() {
    let world = AgentWorld::new(talker(50));
    let mut agent = world.start("");
    agent.agent.pin("Never touch the vault.").unwrap();
    let compacted = |agent: &mut pal_agent_testkit::TestAgent| {
        agent.prompt("one");
        agent.prompt("two");
        agent.agent.compact(None).unwrap();
        agent.log_of_kind("boundary").pop().unwrap()["summary"].to_string()
    };
    assert_eq!(compacted(&mut agent).matches("Never touch the vault.").count(), 1);
    agent.agent.unpin(1).unwrap();
    assert!(agent.agent.pins().is_empty());
    assert!(agent.agent.unpin(1).is_err());
}

#[test]
fn a_preview_writes_nothing_and_asks_no_model() {
    let world = AgentWorld::new(talker(600));
    let mut agent = world.start("");
    agent.prompt("one");
    agent.prompt("two");
    let before = std::fs::read(agent.log_path()).unwrap();
    let preview = agent.agent.preview_compaction(CompactionRange::Whole).unwrap();
    assert!(preview.boundary.tokens_after < preview.boundary.tokens_before);
    assert_eq!(std::fs::read(agent.log_path()).unwrap(), before);
    assert_eq!(world.provider.heard().asked.len(), 2);
}

#[test]
fn a_request_that_is_too_long_is_compacted_and_sent_again() {
    let mut setup = caller(vec![bash("echo part-9; seq 1 4000")]);
    setup.faults = String::from("too-long=210000/200000@3");
    let world = AgentWorld::new(setup);
    let mut agent = world.start(BYPASS);
    agent.prompt("Read it.");
    let ended = agent.prompt("Go on.");
    assert_eq!((ended.end, ended.text.as_str()), (PromptEnd::Done, "Done."));
    assert_eq!((boundaries(&agent), world.provider.heard().refused.len()), (1, 1));
}

#[test]
fn a_request_that_is_refused_after_the_start_of_its_answer_is_compacted_and_sent_again() {
    for dialect in [Dialect::Messages, Dialect::Responses, Dialect::Chat] {
        let mut setup = caller(vec![bash("echo part-9; seq 1 4000")]);
        setup.faults = String::from("too-long=210000/200000+started@3");
        setup.dialect = dialect;
        setup.cards = String::from("[models.local]\nwindow = 400_000\n");
        let world = AgentWorld::new(setup);
        let mut agent = world.start(&format!("model = \"local\"\n{BYPASS}"));
        agent.prompt("Read it.");
        let ended = agent.prompt("Go on.");
        assert_eq!((ended.end, ended.text.as_str()), (PromptEnd::Done, "Done."), "{dialect:?}");
        assert_eq!(boundaries(&agent), 1, "{dialect:?}");
    }
}

#[test]
fn a_rewound_session_repeats_the_earlier_request() {
    let world = AgentWorld::new(talker(0));
    let mut agent = world.start("");
    agent.prompt("one");
    agent.prompt("two");
    let prompt = agent.log_of_kind("user")[1]["id"].as_str().unwrap().to_owned();
    let both = pal_agent::RewindScope::Both;
    assert_eq!(agent.agent.rewind(&prompt, both).unwrap().prompt.as_deref(), Some("two"));
    assert!(agent.agent.rewind("0199", both).is_err());
    agent.prompt("two, but better");
    let heard = world.provider.heard();
    assert_eq!(heard.asked[2].departs_from(&heard.asked[0]), None);
    assert!(!heard.asked[2].text().contains("Answer 2."));
}

/// Id of the prompt with this number, counted from 0.
fn message_id(agent: &pal_agent_testkit::TestAgent, number: usize) -> EntryId {
    let is_prompt = |entry: &&LogEntry| matches!(&entry.body, EntryBody::User(user) if user.origin == MessageOrigin::Person);
    agent.agent.session().view().branch().iter().filter(is_prompt).nth(number).unwrap().id
}

/// A model that answers each prompt with calls of its own, then in words; summaries are extracted.
fn worker(calls_by_prompt: Vec<(&'static str, (&'static str, Value))>) -> ProviderSetup {
    ProviderSetup::answers(move |_, ask| {
        if is_summary(ask) {
            return ExtractiveModel.answer(ask);
        }
        let last = last_message(ask);
        let step = calls_by_prompt.iter().find(|(prompt, _)| last.contains(prompt));
        match step.filter(|_| !last.contains("tool_result")) {
            Some((_, call)) => calls("On.", std::slice::from_ref(call)),
            None => says(&format!("Answer.{}", " It is a long one.".repeat(100))),
        }
    })
}

#[test]
fn a_read_that_a_compaction_keeps_counts_as_read() {
    let read = ("Read", json!({"file_path": "src/lib.rs"}));
    let edit = ("Edit", json!({"file_path": "src/lib.rs", "old_string": "a + b", "new_string": "b + a"}));
    let world = AgentWorld::new(worker(vec![("Prompt two", read), ("Prompt three", edit)]));
    let mut agent = world.start(BYPASS);
    agent.prompt("Prompt one.");
    agent.prompt("Prompt two.");
    let range = CompactionRange::UpTo(message_id(&agent, 1));
    agent.agent.compact_range(range, None).unwrap();
    let boundary = &agent.log_of_kind("boundary")[0];
    assert!(boundary["preserved"].is_object(), "{boundary}");
    agent.prompt("Prompt three.");
    assert!(world.text("src/lib.rs").contains("b + a"), "{}", agent.log().last().unwrap());
}

#[test]
fn a_compaction_from_a_message_keeps_the_earlier_ones() {
    let world = AgentWorld::new(talker(100));
    let mut agent = world.start("");
    for prompt in ["one", "two", "three"] {
        agent.prompt(prompt);
    }
    let from = CompactionRange::From(message_id(&agent, 1));
    let preview = agent.agent.preview_compaction(from).unwrap();
    assert!(preview.boundary.preserved.is_some());
    agent.agent.compact_range(from, None).unwrap();
    agent.prompt("four");
    let last = world.provider.heard().asked.last().unwrap().text();
    assert!(last.contains("Answer 1.") && !last.contains("Answer 2."), "{last}");
}

#[test]
fn hooks_after_a_compaction_add_context_and_hear_of_instructions() {
    let world = AgentWorld::new(talker(100));
    world.file("AGENTS.md", "Be brief.\n");
    let mut agent = world.start(
        r#"
[[hooks.PostCompact]]
hooks = [{ type = "command", command = "echo 'The vault is closed.'" }]

[[hooks.InstructionsLoaded]]
matcher = "compact"
hooks = [{ type = "command", command = "cat >> loaded.txt" }]
"#,
    );
    agent.prompt("one");
    agent.prompt("two");
    assert!(!world.has_file("loaded.txt"));
    agent.agent.compact(None).unwrap();
    assert!(world.text("loaded.txt").contains("AGENTS.md"), "{}", agent.notices());
    agent.prompt("three");
    let last = world.provider.heard().asked.last().unwrap().text();
    assert_eq!(last.matches("The vault is closed.").count(), 1, "{last}");
}

#[test]
fn the_approved_plan_survives_two_compactions() {
    let plan = ("ExitPlanMode", json!({"plan": "# Plan\n\nMove the vault."}));
    let world = AgentWorld::new(worker(vec![("Prompt one", plan)]));
    let mut agent = world.start_with(BYPASS, |options| options.permissions.begins_planning = true);
    for prompt in ["Prompt one.", "Prompt two.", "Prompt three."] {
        agent.prompt(prompt);
    }
    let restored = |agent: &mut pal_agent_testkit::TestAgent| {
        agent.agent.compact(None).unwrap();
        agent.log_of_kind("boundary").pop().unwrap()["restored"].to_string()
    };
    let first = restored(&mut agent);
    assert!(first.contains("[The plan]") && first.contains("Move the vault."), "{first}");
    agent.prompt("Prompt four.");
    agent.prompt("Prompt five.");
    let second = restored(&mut agent);
    assert_eq!(second.matches("Move the vault.").count(), 1, "{second}");
}

#[test]
fn the_small_model_summarizes_after_a_refusal_if_the_setting_says_so() {
    let summarizers = |settings: &str| {
        let mut setup = caller(vec![bash("echo part-9; seq 1 4000")]);
        setup.faults = String::from("too-long=210000/200000@3");
        let world = AgentWorld::new(setup);
        let models = "model = \"claude-opus-5\"\nsmall_model = \"claude-haiku-4-5\"\n";
        let mut agent = world.start(&format!("{BYPASS}{models}{settings}"));
        agent.prompt("Read it.");
        assert_eq!(agent.prompt("Go on.").end, PromptEnd::Done);
        assert_eq!(boundaries(&agent), 1);
        let of_kind = |kind: &str| -> Vec<String> {
            let entries = agent.log_of_kind(kind).into_iter().filter(|entry| entry["source"] == "compact");
            entries.map(|entry| entry["model"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(of_kind("request"), of_kind("response"));
        of_kind("response")
    };
    assert_eq!(summarizers(""), ["claude-opus-5"]);
    assert_eq!(summarizers("compaction.reactive_model = \"small\"\n"), ["claude-haiku-4-5"]);
}

/// Models of the responses to summary requests, with their prices.
fn summaries(agent: &pal_agent_testkit::TestAgent) -> Vec<(String, f64)> {
    let responses = agent.log_of_kind("response").into_iter().filter(|line| line["source"] == "compact");
    responses
        .map(|line| (line["model"].as_str().unwrap().to_owned(), line["cost"].as_f64().unwrap()))
        .collect()
}

fn talk(agent: &mut pal_agent_testkit::TestAgent, prompts: &[&str]) {
    for prompt in prompts {
        agent.prompt(prompt);
    }
}

#[test]
fn another_model_writes_the_summary_if_the_settings_name_it() {
    let prices = |settings: &str| {
        let world = AgentWorld::new(talker(200));
        let mut agent = world.start(&format!("model = \"claude-opus-4-6\"\n{settings}"));
        talk(&mut agent, &["one", "two", "three"]);
        agent.agent.compact(None).unwrap();
        assert_eq!(boundaries(&agent), 1);
        (summaries(&agent), agent.notices())
    };
    let (cheap, _) = prices("compaction.model = \"claude-haiku-4-5\"\n");
    assert_eq!(cheap.len(), 1);
    assert!(cheap[0].0.contains("haiku"), "{cheap:?}");
    let (own, told) = prices("");
    assert!(!told.contains("own model"), "{told}");
    assert!(own[0].0.contains("opus") && own[0].1 > 0.0 && cheap[0].1 > 0.0, "{own:?} {cheap:?}");
}

#[test]
fn the_own_model_writes_the_summary_if_the_other_one_cannot() {
    // Its window does not hold the conversation.
    let mut setup = talker(400);
    setup.cards = String::from("[models.claude-haiku-4-5]\nwindow = 6000\nmax_output = 1000\n");
    let world = AgentWorld::new(setup);
    let mut agent = world.start("compaction.model = \"claude-haiku-4-5\"\n");
    talk(&mut agent, &["one", "two", "three", "four"]);
    agent.agent.compact(None).unwrap();
    assert!(agent.notices().contains("does not fit the window of claude-haiku-4-5"), "{}", agent.notices());
    assert!(summaries(&agent).iter().all(|(model, _)| model.contains("opus")));
    // It answers without a summary.
    let world = AgentWorld::new(ProviderSetup::answers(|at, ask| match is_summary(ask) {
        true if at == 3 => says(""),
        true => ExtractiveModel.answer(ask),
        false => says(&format!("Answer {at}.{}", " It is a long one.".repeat(200))),
    }));
    let mut agent = world.start("compaction.model = \"claude-haiku-4-5\"\n");
    talk(&mut agent, &["one", "two", "three"]);
    agent.agent.compact(None).unwrap();
    let told = agent.notices();
    assert!(told.contains("claude-haiku-4-5 wrote no summary") && told.contains("own model"), "{told}");
    let models: Vec<String> = summaries(&agent).into_iter().map(|(model, _)| model).collect();
    assert!(models.len() == 2 && models[0].contains("haiku") && models[1].contains("opus"), "{models:?}");
}

#[test]
fn the_cost_of_a_summary_stays_in_the_totals_of_the_session() {
    let world = AgentWorld::new(talker(200));
    let mut agent = world.start("");
    talk(&mut agent, &["one", "two", "three"]);
    let before = agent.agent.session().view().state().totals;
    agent.agent.compact(None).unwrap();
    let spent = agent.agent.session().view().state().totals.since(&before);
    let [(_, cost)] = summaries(&agent)[..] else { panic!("{:?}", summaries(&agent)) };
    assert!(cost > 0.0 && spent.responses == 1 && (spent.cost - cost).abs() < 1e-9, "{spent:?} {cost}");
}
