//! The policy that goes by price: what it does when, and why.

mod pings;

use std::fmt::Write;

use pal_context::cache::{Eligibility, LIFETIME_LATCH, lifetime_of};
use pal_context::thrifty::Thrift;
use pal_context::{Act, Policy, What};
use pal_model::{Decision, DecisionKind};
use pal_view::CacheLifetime;
use smol_str::SmolStr;

use crate::common::Setting;

/// A session of so many calls that return so many characters each, whose context has `tokens` at the end and had as many
/// all the time; its marks last five minutes.
fn session_of(model: &str, calls: usize, characters: usize, tokens: u64) -> Setting {
    let mut log = String::from("tools Read Bash\nuser: go\n");
    for number in 0..calls {
        writeln!(log, "sent\nmodel m{number}: call c{number} Bash {{\"command\":\"make {number}\"}}")
            .unwrap();
        writeln!(log, "usage m{number} {tokens} 10\nresult c{number}: ~{characters}~").unwrap();
    }
    writeln!(log, "sent\nmodel m: done\nusage m {tokens} 10\nuser: and now?").unwrap();
    latched(Setting::of(model, &log), CacheLifetime::Minutes5)
}

fn session(model: &str, calls: usize, tokens: u64) -> Setting {
    session_of(model, calls, 20_000, tokens)
}

fn latched(mut setting: Setting, lifetime: CacheLifetime) -> Setting {
    let kind =
        DecisionKind::Latch { name: SmolStr::new_static(LIFETIME_LATCH), value: lifetime.name().to_owned() };
    setting.carry_out(&Act::decide(
        vec![Decision { kind, reason: String::from("test"), cost: Default::default() }],
        "test",
    ));
    setting
}

fn thrifty(fidelity: f64) -> impl FnOnce(&mut Policy) {
    move |policy| *policy = Policy::thrifty(Thrift { fidelity, ..Thrift::STANDARD })
}

fn cleared(act: &Act) -> usize {
    let What::Decide(proposals) = &act.what else { return 0 };
    let ids = |kind: &DecisionKind| match kind {
        DecisionKind::Clear { tool_use_ids, .. } => tool_use_ids.len(),
        _ => 0,
    };
    proposals.iter().map(|proposal| ids(&proposal.decision.kind)).sum()
}

#[test]
fn a_pause_longer_than_marks_last_is_used_to_clear() {
    let warm = session("claude-opus-4-6", 12, 90_000).with_policy(thrifty(0.5));
    assert_eq!(cleared(&warm.act("microcompact")), 0);
    // So few requests have not cost enough yet for a compaction.
    let mut cold = session_of("claude-opus-4-6", 8, 36_000, 90_000).with_policy(thrifty(1.0)).later(6);
    let act = cold.act("microcompact");
    // All but the newest three.
    assert_eq!(cleared(&act), 5, "{}", act.reason);
    assert!(act.reason.starts_with("cold after 6 minutes: clearing old results costs "), "{}", act.reason);
    let before = cold.view.size().tokens;
    cold.carry_out(&act);
    assert!(cold.view.size().tokens < before * 2 / 3);
    assert_eq!(cleared(&cold.act("microcompact")), 0, "once is enough");
    // What has been carried for long is rather compacted, where the provider has to read all of it anyway.
    let long = session("claude-opus-4-6", 12, 90_000).with_policy(thrifty(0.5)).later(6);
    assert!(matches!(long.act("auto-compact").what, What::Compact));
    // Marks that last an hour are not lost yet, and classic waits for an hour whatever they say.
    let hour = latched(session("claude-opus-4-6", 12, 90_000), CacheLifetime::Hour1);
    assert_eq!(cleared(&hour.with_policy(thrifty(0.5)).later(6).act("microcompact")), 0);
    assert_eq!(cleared(&session("claude-opus-4-6", 12, 90_000).later(6).act("microcompact")), 0);
}

#[test]
fn in_the_middle_of_a_turn_bound_thinking_is_left_alone() {
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
        let setting = Setting::of("claude-opus-5-5", &log(last));
        latched(setting, CacheLifetime::Minutes5).with_policy(thrifty(0.5)).later(6)
    };
    assert_eq!(cleared(&cold("").act("microcompact")), 0);
    assert!(cleared(&cold("user: go on").act("microcompact")) > 0);
}

/// Requests at 120 000 tokens after which the conversation is compacted; none if it never is.
fn compacts_after(model: &str, fidelity: f64) -> Option<usize> {
    (1..400).step_by(3).find(|calls| {
        let setting = session_of(model, *calls, 50, 120_000).with_policy(thrifty(fidelity));
        matches!(setting.act("auto-compact").what, What::Compact)
    })
}

#[test]
fn a_conversation_is_compacted_when_its_rent_has_reached_the_price() {
    let usual = compacts_after("claude-opus-4-6", 0.5).unwrap();
    assert!((3..60).contains(&usual), "{usual}");
    // Whoever dreads losses waits longer; where reading is a quarter as dear for its prompt, carrying is cheap.
    assert!(compacts_after("claude-opus-4-6", 0.0).unwrap() < usual);
    assert!(compacts_after("claude-opus-4-6", 1.0).unwrap() > usual);
    assert!(compacts_after("claude-fable-5-1", 0.5).is_none_or(|later| later > 2 * usual));
    let reason = session("claude-opus-4-6", 1, 120_000).with_policy(thrifty(0.5)).act("auto-compact").reason;
    assert!(reason.contains(" % of what makes compacting worth it"), "{reason}");
}

#[test]
fn the_threshold_holds_whatever_the_price_says() {
    let full = session("claude-opus-4-6", 1, 170_000).with_window(200_000).with_policy(thrifty(1.0));
    assert!(matches!(full.act("auto-compact").what, What::Compact));
    let forbidden = Setting { blocked_by: Some("keep"), ..session("claude-opus-4-6", 200, 120_000) };
    let act = forbidden.with_policy(thrifty(0.5)).act("auto-compact");
    assert!(!matches!(act.what, What::Compact), "a hook forbids it");
}

#[test]
fn the_lifetime_of_marks_is_chosen_by_price_unless_the_account_is_in_overage() {
    let setting = Setting::of("claude-opus-4-6", "user: go");
    let policy = Policy::thrifty(Thrift::STANDARD);
    let wanted = Eligibility { is_wanted: true, is_in_overage: false };
    let (_, decision) = lifetime_of(&setting.view, &policy, wanted, None);
    assert!(decision.unwrap().reason.contains("the cheapest where"));
    let overage = Eligibility { is_wanted: true, is_in_overage: true };
    assert_eq!(lifetime_of(&setting.view, &policy, overage, None).0, CacheLifetime::Minutes5);
    assert_eq!(lifetime_of(&setting.view, &Policy::classic(), wanted, None).0, CacheLifetime::Hour1);
    // What is latched stays.
    let latched = latched(setting, CacheLifetime::Hour1);
    let (lifetime, decision) = lifetime_of(&latched.view, &policy, wanted, None);
    assert!(lifetime == CacheLifetime::Hour1 && decision.is_none());
}
