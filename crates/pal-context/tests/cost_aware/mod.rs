//! The cost-aware policy: its moves and reasons.

mod idle_compaction;
mod keepalive;
mod pause_history;

use std::fmt::Write;

use pal_context::cache::{TTL_LATCH, TtlPreference, choose_ttl};
use pal_context::cost_aware::CostAwareSettings;
use pal_context::{ActionKind, ContextPolicy, LayerAction};
use pal_model::{Decision, DecisionKind};
use pal_view::CacheTtl;
use smol_str::SmolStr;

use crate::common::LayerFixture;

/// A session of `calls` calls that return `characters` characters each, with a constant context of `tokens`
/// tokens and five-minute breakpoints.
fn session_of(model: &str, calls: usize, characters: usize, tokens: u64) -> LayerFixture {
    let mut log = String::from("tools Read Bash\nuser: go\n");
    for number in 0..calls {
        writeln!(log, "sent\nmodel m{number}: call c{number} Bash {{\"command\":\"make {number}\"}}")
            .unwrap();
        writeln!(log, "usage m{number} {tokens} 10\nresult c{number}: ~{characters}~").unwrap();
    }
    writeln!(log, "sent\nmodel m: done\nusage m {tokens} 10\nuser: and now?").unwrap();
    latched(LayerFixture::of(model, &log), CacheTtl::Minutes5)
}

fn session(model: &str, calls: usize, tokens: u64) -> LayerFixture {
    session_of(model, calls, 20_000, tokens)
}

fn latched(mut setting: LayerFixture, ttl: CacheTtl) -> LayerFixture {
    let kind = DecisionKind::Latch { name: SmolStr::new_static(TTL_LATCH), value: ttl.name().to_owned() };
    setting.apply_action(&LayerAction::decide(
        vec![Decision { kind, reason: String::from("test"), cost: Default::default() }],
        "test",
    ));
    setting
}

fn thrifty(fidelity: f64) -> impl FnOnce(&mut ContextPolicy) {
    move |policy| {
        *policy = ContextPolicy::cost_aware(CostAwareSettings {
            loss_weight: fidelity,
            ..CostAwareSettings::STANDARD
        })
    }
}

fn cleared(act: &LayerAction) -> usize {
    let ActionKind::Decide(proposals) = &act.kind else { return 0 };
    let ids = |kind: &DecisionKind| match kind {
        DecisionKind::Clear { tool_use_ids, .. } => tool_use_ids.len(),
        _ => 0,
    };
    proposals.iter().map(|proposal| ids(&proposal.decision.kind)).sum()
}

#[test]
fn results_are_cleared_after_the_ttl_expired() {
    let warm = session("claude-opus-4-6", 12, 90_000).with_policy(thrifty(0.5));
    assert_eq!(cleared(&warm.act("microcompact")), 0);
    // So few requests have not paid enough rent for a compaction.
    let mut cold = session_of("claude-opus-4-6", 8, 36_000, 90_000).with_policy(thrifty(1.0)).later(6);
    let act = cold.act("microcompact");
    // All but the newest three.
    assert_eq!(cleared(&act), 5, "{}", act.reason);
    assert!(act.reason.starts_with("cold after 6 minutes: clearing old results costs "), "{}", act.reason);
    let before = cold.view.size().tokens;
    cold.apply_action(&act);
    assert!(cold.view.size().tokens < before * 2 / 3);
    assert_eq!(cleared(&cold.act("microcompact")), 0, "once is enough");
    // Content carried for long is compacted instead, if the provider has to read all of it anyway.
    let long = session("claude-opus-4-6", 12, 90_000).with_policy(thrifty(0.5)).later(6);
    assert!(matches!(long.act("auto-compact").kind, ActionKind::Compact));
    // One-hour breakpoints have not expired, and the threshold policy waits for an hour in any case.
    let hour = latched(session("claude-opus-4-6", 12, 90_000), CacheTtl::Hour1);
    assert_eq!(cleared(&hour.with_policy(thrifty(0.5)).later(6).act("microcompact")), 0);
    assert_eq!(cleared(&session("claude-opus-4-6", 12, 90_000).later(6).act("microcompact")), 0);
}

#[test]
fn bound_thinking_is_unchanged_within_a_turn() {
    let log = |last: &str| {
        let mut log = String::from("tools Bash\nuser: go\n");
        for number in 0..12 {
            writeln!(log, "sent\nmodel m{number}: call c{number} Bash {{\"command\":\"make {number}\"}}")
                .unwrap();
            writeln!(log, "usage m{number} 90000 10\nresult c{number}: ~20000~").unwrap();
        }
        log + last
    };
    let cold = |last: &str| {
        let setting = LayerFixture::of("claude-opus-5-5", &log(last));
        latched(setting, CacheTtl::Minutes5).with_policy(thrifty(0.5)).later(6)
    };
    assert_eq!(cleared(&cold("").act("microcompact")), 0);
    assert!(cleared(&cold("user: go on").act("microcompact")) > 0);
}

/// Number of requests at 120,000 tokens after which the conversation is compacted, if ever.
fn compacts_after(model: &str, fidelity: f64) -> Option<usize> {
    (1..400).step_by(3).find(|calls| {
        let setting = session_of(model, *calls, 50, 120_000).with_policy(thrifty(fidelity));
        matches!(setting.act("auto-compact").kind, ActionKind::Compact)
    })
}

#[test]
fn compaction_starts_when_rent_reaches_the_price() {
    let usual = compacts_after("claude-opus-4-6", 0.5).unwrap();
    assert!((3..60).contains(&usual), "{usual}");
    // A higher loss weight waits longer; where reading costs a quarter of the input price, carrying is cheap.
    assert!(compacts_after("claude-opus-4-6", 0.0).unwrap() < usual);
    assert!(compacts_after("claude-opus-4-6", 1.0).unwrap() > usual);
    assert!(compacts_after("claude-fable-5-1", 0.5).is_none_or(|later| later > 2 * usual));
    let reason = session("claude-opus-4-6", 1, 120_000).with_policy(thrifty(0.5)).act("auto-compact").reason;
    assert!(reason.contains("% of what makes compacting worth it"), "{reason}");
}

#[test]
fn thresholds_hold_for_the_cost_aware_policy() {
    let full = session("claude-opus-4-6", 1, 170_000).with_window(200_000).with_policy(thrifty(1.0));
    assert!(matches!(full.act("auto-compact").kind, ActionKind::Compact));
    let forbidden = LayerFixture { blocked_by: Some("keep"), ..session("claude-opus-4-6", 200, 120_000) };
    let act = forbidden.with_policy(thrifty(0.5)).act("auto-compact");
    assert!(!matches!(act.kind, ActionKind::Compact), "a hook forbids it");
}

#[test]
fn ttl_is_chosen_by_price_unless_fixed_or_in_overage() {
    let setting = LayerFixture::of("claude-opus-4-6", "user: go");
    let policy = ContextPolicy::cost_aware(CostAwareSettings::STANDARD);
    let free = TtlPreference::default();
    let (_, decision) = choose_ttl(&setting.view, &policy, free, None);
    assert!(decision.unwrap().reason.contains("the cheapest where"));
    let overage = TtlPreference { fixed: None, is_in_overage: true };
    assert_eq!(choose_ttl(&setting.view, &policy, overage, None).0, CacheTtl::Minutes5);
    // A TTL in the settings wins: not every gateway accepts an hour.
    for ttl in [CacheTtl::Minutes5, CacheTtl::Hour1] {
        let fixed = TtlPreference { fixed: Some(ttl), is_in_overage: false };
        for policy in [&policy, &ContextPolicy::threshold()] {
            let (chosen, decision) = choose_ttl(&setting.view, policy, fixed, None);
            assert_eq!(chosen, ttl);
            assert!(decision.unwrap().reason.contains("as the settings say"));
        }
    }
    assert_eq!(choose_ttl(&setting.view, &ContextPolicy::threshold(), free, None).0, CacheTtl::Minutes5);
    // A latched value stays.
    let latched = latched(setting, CacheTtl::Hour1);
    let (ttl, decision) = choose_ttl(&latched.view, &policy, free, None);
    assert!(ttl == CacheTtl::Hour1 && decision.is_none());
}
