//! Pauses: the price of a prompt into an expired cache, and compaction before it expires.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pal_agent::{AgentOptions, IdleOutcome, SessionOrigin};
use pal_agent_testkit::{AgentWorld, ProviderSetup, TestAgent, is_summary, says};
use pal_events::{AgentEvent, PermissionAnswer};
use pal_model::Usage;
use pal_sim::{ExtractiveModel, ReplyPace, SimulatedModel};

use crate::talker;

/// A model with a window of 200,000 tokens, at $5 per million input tokens.
const MODEL: &str = "model = \"claude-opus-4-6\"\n";

/// About 38,000 tokens.
fn long_prompt(number: usize) -> String {
    format!("Part {number}. {}", "some words of a story ".repeat(8_500))
}

/// Usage of the conversation's requests.
fn conversation(agent: &TestAgent) -> Vec<(Usage, f64)> {
    agent.events(|event| match event {
        AgentEvent::ExchangeEnded(report) if report.source.is_conversation() => {
            Some((report.usage.clone()?, report.cost?))
        }
        _ => None,
    })
}

/// A person is there.
fn attend(options: &mut AgentOptions) {
    options.permissions.asker = Some(Arc::new(|_| PermissionAnswer::Unavailable));
}

/// Log of a session with a large context.
fn large_session(world: &AgentWorld, settings: &str) -> std::path::PathBuf {
    let mut agent = world.start(&format!("{MODEL}{settings}"));
    for number in 0..3 {
        agent.prompt(&long_prompt(number));
    }
    agent.finish()
}

/// The session, resumed by a person `seconds` later.
fn resume_later(world: &AgentWorld, settings: &str, log: &Path, seconds: u64) -> TestAgent {
    world.start_with(&format!("{MODEL}{settings}clock_offset_s = {seconds}\n"), |options| {
        options.origin = SessionOrigin::Resumed(log.to_owned());
        attend(options);
    })
}

#[test]
fn the_price_of_a_cold_turn_is_what_the_request_then_costs() {
    for (settings, seconds) in [
        ("policy = \"threshold\"\n", 1_020),
        ("policy = \"threshold\"\ncache_ttl = \"1h\"\n", 7_200),
        ("policy = \"cost-aware\"\n", 7_200),
    ] {
        let (world, cold) = (AgentWorld::new(talker(50)), AgentWorld::new(talker(50)));
        let log = large_session(&world, settings);
        let mut agent =
            world.start_with(&format!("{MODEL}{settings}clock_offset_s = {seconds}\n"), |options| {
                options.origin = SessionOrigin::Resumed(log);
                // Another provider has nothing in its cache.
                options.model.connection = cold.options(MODEL).model.connection;
            });
        let turn = agent.agent.cold_turn().unwrap().unwrap_or_else(|| panic!("{settings}"));
        agent.prompt("Go on.");
        let (usage, cost) = conversation(&agent).remove(0);
        let written = usage.cache_creation_input_tokens as f64;
        assert_eq!(usage.cache_read_input_tokens, 0);
        assert!(written > 80_000.0, "{settings}: {usage:?}");
        assert!((turn.tokens as f64 / written - 1.0).abs() < 0.02, "{settings}: {turn:?} {usage:?}");
        let price = turn.price.unwrap();
        assert!((price / cost - 1.0).abs() < 0.03, "{settings}: {turn:?} costs {cost}");
        let said = agent.events(|event| match event {
            AgentEvent::ColdTurn { tokens, text, .. } => Some((*tokens, text.clone())),
            _ => None,
        });
        assert_eq!(said, [(turn.tokens, turn.line())]);
        assert!(turn.line().starts_with("cache expired "), "{}", turn.line());
        // The request has filled the cache again.
        assert_eq!(agent.agent.cold_turn().unwrap(), None);
        assert!(agent.agent.cache_lifetime().unwrap().left > Duration::from_secs(200));
    }
}

#[test]
fn a_cold_turn_below_its_price_or_within_the_ttl_is_not_reported() {
    let world = AgentWorld::new(talker(50));
    let log = large_session(&world, "");
    let mut warm = resume_later(&world, "", &log, 200);
    assert_eq!(warm.agent.cold_turn().unwrap(), None);
    warm.finish();
    for settings in ["cold_turn_warning_usd = 5\n", "cold_turn_warning_usd = 0\n"] {
        let mut agent = resume_later(&world, settings, &log, 4_000);
        assert_eq!(agent.agent.cold_turn().unwrap(), None, "{settings}");
        assert_eq!(agent.agent.cache_lifetime().unwrap().left, Duration::ZERO);
        agent.finish();
    }
    let mut agent = resume_later(&world, "cold_turn_warning_usd = 0.01\n", &log, 4_000);
    assert!(agent.agent.cold_turn().unwrap().is_some());
}

#[test]
fn compacting_first_makes_a_cold_turn_small() {
    let world = AgentWorld::new(talker(50));
    let log = large_session(&world, "");
    let mut agent = resume_later(&world, "", &log, 4_000);
    let turn = agent.agent.cold_turn().unwrap().unwrap();
    agent.agent.compact(None).unwrap();
    assert_eq!(agent.agent.cold_turn().unwrap(), None);
    agent.prompt("Go on.");
    let (usage, _) = conversation(&agent).remove(0);
    assert!(usage.cache_creation_input_tokens < turn.tokens / 2, "{usage:?} {turn:?}");
}

const IDLE: &str = "policy = \"cost-aware\"\ncache_ttl = \"5m\"\n";

#[test]
fn an_idle_session_compacts_before_its_cache_expires() {
    let (world, cold) = (AgentWorld::new(talker(50)), AgentWorld::new(talker(50)));
    let log = large_session(&world, IDLE);
    let mut agent = resume_later(&world, IDLE, &log, 100);
    let wait = agent.agent.until_idle_compaction().unwrap();
    assert!(wait > Duration::from_secs(140) && wait <= Duration::from_secs(170), "{wait:?}");
    assert_eq!(agent.agent.compact_if_idle().unwrap(), IdleOutcome::Nothing, "not due yet");
    agent.finish();
    let mut agent = resume_later(&world, IDLE, &log, 275);
    assert_eq!(agent.agent.until_idle_compaction(), Some(Duration::ZERO));
    assert_eq!(agent.agent.compact_if_idle().unwrap(), IdleOutcome::Compacted);
    assert_eq!(agent.agent.until_idle_compaction(), None, "once in a pause");
    let boundary = agent.log_of_kind("boundary").pop().unwrap();
    assert_eq!(boundary["trigger"], "idle");
    assert!(boundary["reason"].as_str().unwrap().contains("worth a compaction"), "{boundary}");
    // The summary read the conversation from the cache.
    let summary = agent.log_of_kind("response").pop().unwrap();
    assert_eq!(summary["source"], "compact");
    assert!(summary["usage"]["cache_read_input_tokens"].as_u64() > Some(80_000), "{summary}");
    assert!(agent.notices().contains("compacted in the pause"), "{}", agent.notices());
    let log = agent.finish();
    // The first prompt after the pause finds no cache.
    let mut agent = world.start_with(&format!("{MODEL}{IDLE}clock_offset_s = 4000\n"), |options| {
        options.origin = SessionOrigin::Resumed(log.clone());
        options.model.connection = cold.options(MODEL).model.connection;
    });
    agent.prompt("Go on.");
    let (usage, _) = conversation(&agent).remove(0);
    assert!(usage.cache_creation_input_tokens < 45_000, "{usage:?}");
    agent.finish();
}

#[test]
fn an_idle_compaction_can_be_undone() {
    let world = AgentWorld::new(talker(50));
    let log = large_session(&world, IDLE);
    let mut agent = resume_later(&world, IDLE, &log, 275);
    assert_eq!(agent.agent.compact_if_idle().unwrap(), IdleOutcome::Compacted);
    agent.agent.uncompact().unwrap();
    agent.prompt("Go on.");
    let heard = world.provider.heard();
    let said: Vec<_> = heard.asked.iter().filter(|asked| !asked.is_summary).collect();
    let [.., before, after] = said.as_slice() else { panic!("{}", said.len()) };
    assert_eq!(after.departs_from(before), None);
}

#[test]
fn activity_of_the_user_cancels_an_idle_compaction() {
    let mut at = 0;
    let mut setup = ProviderSetup::answers(move |_, ask| {
        at += 1;
        if is_summary(ask) { ExtractiveModel.answer(ask) } else { says(&format!("Answer {at}.")) }
    });
    setup.pace = ReplyPace { per_1k_output: Duration::from_secs(20), ..ReplyPace::none() };
    let world = AgentWorld::new(setup);
    let log = large_session(&world, IDLE);
    let mut agent = resume_later(&world, IDLE, &log, 275);
    let before = agent.agent.session().view().state().totals;
    let handle = agent.agent.handle();
    let user = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(1_500));
        handle.end_idle_work();
    });
    let begun = Instant::now();
    assert_eq!(agent.agent.compact_if_idle().unwrap(), IdleOutcome::Cancelled);
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    user.join().unwrap();
    assert!(agent.log_of_kind("boundary").is_empty());
    assert!(!agent.notices().contains("compact"), "{}", agent.notices());
    // What the summary had used up to then is in the books.
    let spent = agent.agent.session().view().state().totals.since(&before);
    assert!(spent.responses == 1 && spent.cache_read_input_tokens > 80_000, "{spent:?}");
    agent.prompt("Go on.");
    let heard = world.provider.heard();
    let said: Vec<_> = heard.asked.iter().filter(|asked| !asked.is_summary).collect();
    let [.., before, after] = said.as_slice() else { panic!("{}", said.len()) };
    assert_eq!(after.departs_from(before), None, "as if it had never begun");
}

#[test]
fn no_idle_compaction_without_its_setting_a_person_or_budget() {
    let world = AgentWorld::new(talker(50));
    let log = large_session(&world, IDLE);
    for settings in [
        "policy = \"cost-aware\"\nidle_compaction = false\n",
        "policy = \"threshold\"\n",
        "policy = \"cost-aware\"\nbackground_tokens_daily = 0\n",
    ] {
        let mut agent = resume_later(&world, settings, &log, 275);
        assert_eq!(agent.agent.compact_if_idle().unwrap(), IdleOutcome::Nothing, "{settings}");
        agent.finish();
    }
    let mut unattended = world.start_with(&format!("{MODEL}{IDLE}clock_offset_s = 275\n"), |options| {
        options.origin = SessionOrigin::Resumed(log.clone());
    });
    assert_eq!(unattended.agent.compact_if_idle().unwrap(), IdleOutcome::Nothing);
    unattended.finish();
    // The user was active just now: it waits until they have stopped.
    let mut typing = resume_later(&world, IDLE, &log, 275);
    typing.agent.handle().end_idle_work();
    assert_eq!(typing.agent.compact_if_idle().unwrap(), IdleOutcome::Nothing);
    assert!(typing.agent.until_idle_compaction() > Some(Duration::from_secs(5)));
}

#[test]
fn an_unexpected_cache_break_above_its_price_raises_an_alarm() {
    let alarms = |settings: &str| {
        let world = AgentWorld::new(talker(50));
        let mut agent = world.start(&format!("{MODEL}{settings}"));
        agent.prompt(&long_prompt(0));
        agent.prompt("Is it cached?");
        agent.agent.break_cache().unwrap();
        agent.prompt("Go on.");
        let broken = agent.events(|event| matches!(event, AgentEvent::CacheBroken(_)).then_some(()));
        assert_eq!(broken.len(), 1, "{settings}");
        agent.events(|event| match event {
            AgentEvent::Alarm { kind, cost, text } => Some((*kind, *cost, text.clone())),
            _ => None,
        })
    };
    let raised = alarms("cache_break_alarm_usd = 0.05\n");
    let [(kind, cost, text)] = raised.as_slice() else { panic!("{raised:?}") };
    assert!(*kind == "cache_break" && *cost > 0.05 && text.contains("were paid again, $"), "{raised:?}");
    assert_eq!(alarms("cache_break_alarm_usd = 0\n"), []);
    assert_eq!(alarms(""), [], "a dollar by default");
}
