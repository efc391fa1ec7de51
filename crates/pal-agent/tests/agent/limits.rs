//! Limits of a prompt: turns, tokens, money, progress.

use pal_agent_testkit::{AgentWorld, ProviderSetup, calls, says};
use pal_events::PromptEnd;
use pal_sim::{ModelOutput, StopOverride};
use serde_json::json;

use crate::{BYPASS, bash, talker};

#[test]
fn a_limit_ends_the_prompt_after_the_calls_before_it() {
    for limit in ["max_turns = 2\n", "max_cost_usd = 0.05\n", "max_tokens_total = 30000\n"] {
        let world = AgentWorld::new(ProviderSetup::answers(|at, _| {
            calls("On.", &[bash(&format!("echo {at} >> ran.txt"))])
        }));
        let mut agent = world.start(&format!("{limit}{BYPASS}"));
        let ended = agent.prompt("work");
        assert!(matches!(ended.end, PromptEnd::Limit(_)), "{limit}: {:?}", ended.end);
        let ran = world.text("ran.txt").lines().count();
        assert_eq!(ran, world.provider.heard().asked.len(), "{limit}: each call was carried out");
        if limit.starts_with("max_turns") {
            assert_eq!(ran, 2);
            assert!(matches!(agent.prompt("go on").end, PromptEnd::Limit(_)));
            assert_eq!(world.text("ran.txt").lines().count(), 4, "turns count from the prompt");
        }
    }
}

#[test]
fn a_run_without_progress_is_stopped_and_the_model_is_told_before() {
    let world = AgentWorld::new(ProviderSetup::answers(|_, _| {
        calls("I try again.", &[("Glob", json!({"pattern": "*.none"}))])
    }));
    let mut agent = world.start("max_stalled_turns = 4\n");
    let PromptEnd::Limit(why) = agent.prompt("go").end else { panic!("no limit") };
    assert!(why.contains("no progress in 4 turns") && why.contains("*.none"), "{why}");
    let heard = world.provider.heard();
    assert_eq!(heard.asked.len(), 5);
    assert!(heard.asked.last().unwrap().text().contains("You repeat yourself"));
}

#[test]
fn endless_pauses_are_stopped() {
    let world = AgentWorld::new(ProviderSetup::answers(|_, _| ModelOutput {
        stop: Some(StopOverride::PauseTurn),
        ..says("Still at it.")
    }));
    let mut agent = world.start("max_stalled_turns = 3\n");
    let PromptEnd::Limit(why) = agent.prompt("go").end else { panic!("no limit") };
    assert!(why.contains("pause_turn"), "{why}");
    assert_eq!(world.provider.heard().asked.len(), 4);
}

#[test]
fn searches_that_alternate_are_no_progress() {
    let world = AgentWorld::new(ProviderSetup::answers(|at, _| {
        let pattern = if at % 2 == 0 { "*.a" } else { "*.b" };
        calls("", &[("Glob", json!({"pattern": pattern}))])
    }));
    let mut agent = world.start("max_stalled_turns = 3\n");
    assert!(matches!(agent.prompt("go").end, PromptEnd::Limit(_)));
    assert_eq!(world.provider.heard().asked.len(), 5);
}

#[test]
fn a_used_up_day_stops_all_sessions_until_the_user_lifts_it() {
    let world = AgentWorld::new(talker(20));
    let settings = "max_daily_cost_usd = 0.001\n";
    let mut agent = world.start(settings);
    assert_eq!(agent.agent.budget_question(), None);
    // The first request is paid, and then the budget is used up.
    assert_eq!(agent.prompt("one").end, PromptEnd::Done);
    let PromptEnd::Limit(why) = agent.prompt("two").end else { panic!("no limit") };
    assert!(why.starts_with("the daily budget of $0.00 is used up"), "{why}");
    assert!(why.contains("max_daily_cost_usd"), "{why}");
    agent.finish();
    let mut other = world.start(settings);
    assert!(matches!(other.prompt("three").end, PromptEnd::Limit(_)), "it holds for all sessions");
    assert_eq!(world.provider.heard().asked.len(), 1);
    let question = other.agent.budget_question().unwrap();
    assert!(question.contains("is used up"), "{question}");
    other.agent.lift_day_budget();
    assert_eq!(other.prompt("four").end, PromptEnd::Done);
    other.finish();
    let mut tomorrow = world.start(&format!("{settings}clock_offset_s = 86400\n"));
    assert_eq!(tomorrow.prompt("five").end, PromptEnd::Done);
}
