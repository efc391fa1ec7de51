//! Compactions: by command, automatic, undone, after a refusal; and pins that survive them.

use pal_agent_testkit::AgentWorld;
use pal_events::{AgentEvent, PromptEnd};

use crate::{BYPASS, bash, caller, talker};

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
    let world = AgentWorld::new(talker(50));
    let mut agent = world.start("");
    agent.prompt("one");
    agent.prompt("two");
    let before = std::fs::read(agent.log_path()).unwrap();
    let preview = agent.agent.preview_compaction().unwrap();
    assert!(preview.boundary.tokens_after < preview.boundary.tokens_before);
    assert_eq!(std::fs::read(agent.log_path()).unwrap(), before);
    assert_eq!(world.provider.heard().asked.len(), 2);
}

#[test]
fn a_request_that_is_too_long_is_compacted_and_sent_again() {
    let mut setup = caller(vec![bash("echo part-9; seq 1 4000")]);
    setup.faults = String::from("too-long=210000/200000@2");
    let world = AgentWorld::new(setup);
    let mut agent = world.start(BYPASS);
    let ended = agent.prompt("Read it.");
    assert_eq!((ended.end, ended.text.as_str()), (PromptEnd::Done, "Done."));
    assert_eq!((boundaries(&agent), world.provider.heard().refused.len()), (1, 1));
}

#[test]
fn a_rewound_session_repeats_the_earlier_request() {
    let world = AgentWorld::new(talker(0));
    let mut agent = world.start("");
    agent.prompt("one");
    agent.prompt("two");
    let prompt = agent.log_of_kind("user")[1]["id"].as_str().unwrap().to_owned();
    assert_eq!(agent.agent.rewind(&prompt).unwrap(), "two");
    assert!(agent.agent.rewind("0199").is_err());
    agent.prompt("two, but better");
    let heard = world.provider.heard();
    assert_eq!(heard.asked[2].departs_from(&heard.asked[0]), None);
    assert!(!heard.asked[2].text().contains("Answer 2."));
}
