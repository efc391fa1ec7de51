//! Pauses of a person over all sessions: counting them, and the TTL that follows from them.

use std::path::Path;
use std::sync::Arc;

use pal_agent::{AgentOptions, SessionOrigin};
use pal_agent_testkit::{AgentWorld, TEST_HOUR, TestAgent, log_lines};
use pal_background::LearnedPauses;
use pal_context::PauseHistory;
use pal_context::cache::TTL_LATCH;
use pal_events::PermissionAnswer;
use serde_json::Value;

use crate::talker;

const COST_AWARE: &str = "policy = \"cost-aware\"\nidle_compaction = false\n";

/// Minutes of a pause in the second class.
const TEN: u64 = 10;

/// A person is there.
fn attend(options: &mut AgentOptions) {
    options.permissions.asker = Some(Arc::new(|_| PermissionAnswer::Unavailable));
}

/// A session of a person, `minutes` from now.
fn open(world: &AgentWorld, settings: &str, origin: SessionOrigin, minutes: u64) -> TestAgent {
    world.start_with(&format!("{settings}clock_offset_s = {}\n", minutes * 60), |options| {
        options.origin = origin;
        attend(options);
    })
}

fn project(world: &AgentWorld) -> String {
    pal_store::slug(&pal_project::find_project(&world.project()))
}

fn history(world: &AgentWorld) -> PauseHistory {
    LearnedPauses::in_home(&world.pal_home()).read().history(&project(world), TEST_HOUR)
}

/// Latched TTLs of a log, with their reasons.
fn latched_ttls(log: &Path) -> Vec<(String, String)> {
    let latches = log_lines(log).into_iter().filter(|line| line["name"] == TTL_LATCH);
    let text = |line: &Value, key: &str| line[key].as_str().unwrap_or_default().to_owned();
    latches.map(|line| (text(&line, "value"), text(&line, "reason"))).collect()
}

#[test]
fn earlier_pauses_decide_the_ttl_of_a_new_session() {
    let world = AgentWorld::new(talker(1));
    let first = |settings: &str| {
        let mut agent = open(&world, settings, SessionOrigin::New(None), 0);
        agent.prompt("Hello.");
        latched_ttls(&agent.finish()).remove(0)
    };
    let (ttl, reason) = first(COST_AWARE);
    assert_ne!(ttl, "1h", "{reason}");
    assert!(!reason.contains("pauses in this project"), "{reason}");
    let learned = LearnedPauses::in_home(&world.pal_home());
    learned.record(&project(&world), TEST_HOUR, [4, 36, 0, 0]).unwrap();
    let (ttl, reason) = first(COST_AWARE);
    assert_eq!(ttl, "1h", "{reason}");
    assert!(reason.contains("(40 pauses in this project)"), "{reason}");
    // Neither with the kill switch nor without a person.
    let (ttl, reason) = first(&format!("{COST_AWARE}disabled = [\"pause_history\"]\n"));
    assert!(ttl != "1h" && !reason.contains("in this project"), "{reason}");
    let mut unattended = world.start(COST_AWARE);
    unattended.prompt("Hello.");
    assert_ne!(latched_ttls(&unattended.finish())[0].0, "1h");
}

#[test]
fn a_pause_is_counted_once_and_across_a_resume() {
    let world = AgentWorld::new(talker(1));
    let mut agent = open(&world, "", SessionOrigin::New(None), 0);
    agent.prompt("One.");
    assert_eq!(history(&world), PauseHistory::EMPTY, "nothing was before the first prompt");
    agent.prompt("Two.");
    let log = agent.finish();
    assert_eq!(history(&world).this_hour, [1.0, 0.0, 0.0, 0.0]);
    // Opening it again counts nothing; the prompt counts the pause since the last request.
    let resumed = || SessionOrigin::Resumed(log.clone());
    open(&world, "", resumed(), TEN).finish();
    assert_eq!(history(&world).this_hour, [1.0, 0.0, 0.0, 0.0]);
    let mut agent = open(&world, "", resumed(), TEN);
    agent.prompt("Three.");
    agent.finish();
    assert_eq!(history(&world).this_hour, [1.0, 1.0, 0.0, 0.0]);
    // A program, a subagent, and a session with the kill switch count nothing.
    let mut program = world.resume(&format!("clock_offset_s = {}\n", 2 * TEN * 60), &log);
    program.prompt("Four.");
    program.finish();
    let mut switched_off = open(&world, "disabled = [\"pause_history\"]\n", resumed(), 3 * TEN);
    switched_off.prompt("Five.");
    switched_off.finish();
    let mut subagent = world.start_with(&format!("clock_offset_s = {}\n", 4 * TEN * 60), |options| {
        options.origin = resumed();
        attend(options);
        options.subagent.identity = Some((String::from("scout"), String::from("general")));
    });
    subagent.prompt("Six.");
    subagent.finish();
    assert_eq!(history(&world).this_hour, [1.0, 1.0, 0.0, 0.0]);
    // A person behind a driving program.
    let mut driven = world.start_with(&format!("clock_offset_s = {}\n", 5 * TEN * 60), |options| {
        options.origin = resumed();
        options.background.pauses.is_person_driving = true;
    });
    driven.prompt("Seven.");
    driven.finish();
    assert_eq!(history(&world).this_hour, [1.0, 2.0, 0.0, 0.0]);
}

#[test]
fn what_was_sent_stays_when_the_history_changes() {
    let world = AgentWorld::new(talker(1));
    let mut agent = open(&world, COST_AWARE, SessionOrigin::New(None), 0);
    agent.prompt("One.");
    let log = agent.finish();
    let before = latched_ttls(&log);
    let learned = LearnedPauses::in_home(&world.pal_home());
    learned.record(&project(&world), TEST_HOUR, [4, 36, 0, 0]).unwrap();
    let mut agent = open(&world, COST_AWARE, SessionOrigin::Resumed(log.clone()), 1);
    agent.prompt("Two.");
    agent.finish();
    assert_eq!(latched_ttls(&log), before, "the cache is warm");
    {
        let heard = world.provider.heard();
        let [.., one, two] = heard.asked.as_slice() else { panic!("{}", heard.asked.len()) };
        assert_eq!(two.departs_from(one), None);
    }
    // Expired messages are written anew in any case.
    let mut agent = open(&world, COST_AWARE, SessionOrigin::Resumed(log.clone()), 1 + TEN);
    agent.prompt("Three.");
    agent.finish();
    let (ttl, reason) = latched_ttls(&log).pop().unwrap();
    assert!(ttl == "1h" && reason.contains("in this project"), "{reason}");
}

#[test]
fn counts_that_cannot_be_written_do_not_disturb_a_session() {
    let world = AgentWorld::new(talker(1));
    std::fs::create_dir_all(world.pal_home().join("learned-pauses.json")).unwrap();
    let mut agent = open(&world, COST_AWARE, SessionOrigin::New(None), 0);
    agent.prompt("One.");
    agent.prompt("Two.");
    assert!(!agent.notices().contains("pauses"), "{}", agent.notices());
    agent.finish();
}
