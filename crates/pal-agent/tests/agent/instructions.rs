//! Instruction files: includes outside of the project, their size, and the user's own system prompt.

use std::sync::{Arc, Mutex};

use pal_agent_testkit::{AgentWorld, TestAgent};
use pal_events::{AgentEvent, PermissionAnswer};

use crate::caller;

fn world() -> AgentWorld {
    AgentWorld::new(caller(Vec::new()))
}

fn warnings(agent: &TestAgent) -> Vec<String> {
    agent.events(|event| match event {
        AgentEvent::Warning(line) => Some(line.clone()),
        _ => None,
    })
}

/// An agent whose user gives the same answer to every question, and the number of questions.
fn asked(world: &AgentWorld, answer: &PermissionAnswer) -> (TestAgent, Arc<Mutex<Vec<String>>>) {
    let questions: Arc<Mutex<Vec<String>>> = Arc::default();
    let (kept, answer) = (Arc::clone(&questions), answer.clone());
    let agent = world.start_with("", |options| {
        options.permissions.asker = Some(Arc::new(move |question| {
            kept.lock().unwrap().push(question.input.clone());
            answer.clone()
        }));
    });
    (agent, questions)
}

#[test]
fn an_include_outside_of_the_project_is_asked_about_once() {
    for (answer, is_read) in [(PermissionAnswer::Once, true), (PermissionAnswer::No(None), false)] {
        let world = world();
        world.file("../outside.md", "OUTSIDE RULES");
        world.file("../second.md", "SECOND RULES");
        world.file("CLAUDE.md", "Own rules.\n@../outside.md\n@../second.md\n");
        let (mut agent, questions) = asked(&world, &answer);
        agent.prompt("one");
        agent.prompt("two");
        assert_eq!(questions.lock().unwrap().len(), 2, "{answer:?}: one question a file");
        assert_eq!(warnings(&agent), [""; 0], "{answer:?}: the question says it all");
        let first = world.provider.heard().asked[0].text();
        assert_eq!(first.contains("OUTSIDE RULES"), is_read, "{answer:?}: {first}");
        assert_eq!(first.contains("SECOND RULES"), is_read, "{answer:?}: {first}");
        agent.finish();
        let (mut agent, questions) = asked(&world, &PermissionAnswer::No(None));
        agent.prompt("three");
        assert_eq!(questions.lock().unwrap().len(), 0, "{answer:?}: the answer is remembered");
        let sent = world.provider.heard().asked[2].text();
        assert_eq!(sent.contains("OUTSIDE RULES"), is_read, "{answer:?}: {sent}");
    }
}

#[test]
fn an_unattended_session_reports_an_include_that_is_not_read() {
    let world = world();
    world.file("../outside.md", "OUTSIDE RULES");
    world.file("CLAUDE.md", "Own rules.\n@../outside.md\n");
    let mut agent = world.start("");
    agent.prompt("one");
    let told = warnings(&agent);
    assert!(told.len() == 1 && told[0].contains("allow_includes"), "{told:?}");
    assert!(!world.provider.heard().asked[0].text().contains("OUTSIDE RULES"));
}

#[test]
fn large_instruction_files_are_reported_when_a_session_starts() {
    let world = world();
    world.file("CLAUDE.md", &"Always write plain words.\n".repeat(12_000));
    let mut agent = world.start("");
    let told = warnings(&agent);
    assert!(told.len() == 1 && told[0].contains("max_instruction_tokens"), "{told:?}");
    agent.prompt("hi");
    let log = agent.finish();
    let agent = world.resume("", &log);
    assert_eq!(warnings(&agent), [""; 0], "a continued session was warned at its start");
}

/// The prefix is built again at a compaction; flags of an earlier run still apply.
#[test]
fn a_continued_session_keeps_its_own_system_prompt() {
    let world = world();
    let mut agent = world.start_with("", |options| {
        options.prompt.prompts.custom = Some(String::from("You are a pirate."));
        options.prompt.prompts.appended = Some(String::from("Say arr."));
    });
    agent.prompt("hello");
    let log = agent.finish();
    let mut agent = world.resume("", &log);
    agent.agent.compact(None).unwrap();
    agent.prompt("again");
    let heard = world.provider.heard();
    let system = heard.asked.last().unwrap().head.concat();
    assert!(system.contains("You are a pirate.") && system.contains("Say arr."), "{system}");
}
