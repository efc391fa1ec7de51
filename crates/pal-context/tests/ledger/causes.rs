//! Each cause of a cache-read drop, and cases that are none.

use pal_model::{BreakCause, CacheBreak, DecisionKind, RequestChange, RequestSource};

use super::close;
use super::tape::{LogTape, MODEL, cleared, used, used_for_an_hour};

/// A session whose last request read 100,000 tokens, with a known prefix.
fn warm() -> LogTape {
    let mut tape = LogTape::new();
    tape.prefix("You are a test.");
    tape.result();
    tape.turn(0, used(0, 100_000, 0));
    tape.turn(10, used(100_000, 1_000, 0));
    tape
}

/// Cause of the only drop, in the last request.
#[track_caller]
fn cause(tape: &LogTape) -> BreakCause {
    let ledger = tape.ledger();
    let falls: Vec<_> = ledger.drops().collect();
    let [(row, fall)] = falls.as_slice() else { panic!("{falls:?}") };
    assert_eq!(row.number, ledger.rows.len());
    fall.cache_break.cause.clone()
}

fn expected(what: &str) -> BreakCause {
    BreakCause::Expected { what: what.into() }
}

#[test]
fn expiry_is_a_cause() {
    let mut tape = warm();
    tape.turn(430, used(0, 104_000, 0));
    assert_eq!(cause(&tape), BreakCause::Expired { idle_ms: 430_000, lifetime_ms: 300_000 });
    let ledger = tape.ledger();
    close(ledger.breaks().next().unwrap().1.cache_break.cost, 1.15);
    let mut tape = warm();
    tape.turn(10, used_for_an_hour(101_000, 500));
    tape.turn(430, used(0, 104_000, 0));
    assert_eq!(cause(&tape), BreakCause::Provider, "what was written last lasts an hour");
    let mut tape = warm();
    tape.turn(10, used_for_an_hour(101_000, 500));
    tape.turn(4_000, used(0, 104_000, 0));
    assert_eq!(cause(&tape), BreakCause::Expired { idle_ms: 4_000_000, lifetime_ms: 3_600_000 });
}

#[test]
fn a_long_answer_counts_from_the_start_of_its_request() {
    let mut tape = warm();
    tape.ask(200);
    tape.answer(used(101_000, 100, 0));
    tape.turn(299, used(0, 104_000, 0));
    assert_eq!(cause(&tape), BreakCause::Provider);
}

#[test]
fn model_change_is_a_cause() {
    let mut tape = warm();
    tape.model = "claude-opus-4-6";
    tape.turn(900, used(0, 104_000, 0));
    let to = "claude-opus-4-6".into();
    assert_eq!(cause(&tape), BreakCause::Model { from: MODEL.into(), to });
}

#[test]
fn decisions_make_drops_expected() {
    for (kind, name) in [
        (cleared(), "clear"),
        (DecisionKind::CacheEdit { tool_use_ids: vec!["call".into()] }, "cache_edit"),
        (DecisionKind::ProviderClear { cleared_tokens: 50_000 }, "provider_clear"),
    ] {
        let mut tape = warm();
        tape.decide(kind, 10);
        tape.turn(900, used(20_000, 60_000, 0));
        assert_eq!(cause(&tape), expected(name));
        // It explains one drop, not the next one.
        tape.turn(10, used(0, 80_000, 0));
        assert_eq!(tape.ledger().breaks().next().unwrap().1.cache_break.cause, BreakCause::Provider);
    }
    let mut tape = warm();
    tape.decide(cleared(), 10);
    tape.boundary("All is well.");
    tape.turn(10, used(20_000, 1_000, 0));
    assert_eq!(cause(&tape), expected("boundary"), "a compaction counts more than a clear");
    let mut tape = warm();
    let early = tape.say("or rather");
    tape.turn(10, used(101_000, 1_000, 0));
    tape.say("and so on");
    tape.turn(10, used(102_000, 1_000, 0));
    tape.rewind(early);
    tape.turn(10, used(20_000, 82_000, 0));
    assert_eq!(cause(&tape), expected("rewind"));
}

#[test]
fn decisions_on_unsent_content_announce_nothing() {
    let mut tape = warm();
    tape.decide(DecisionKind::Snip { entries: Vec::new() }, 10);
    tape.turn(900, used(20_000, 60_000, 0));
    assert!(matches!(cause(&tape), BreakCause::Expired { .. }), "nothing was snipped");
    let spill = || DecisionKind::Spill {
        tool_use_id: Some("call".into()),
        entry: None,
        path: "a.txt".into(),
        text: "see a.txt".into(),
    };
    let mut tape = warm();
    tape.decide(spill(), 10);
    tape.turn(10, used(0, 101_000, 0));
    assert_eq!(cause(&tape), expected("spill"), "the result had been sent");
    let mut tape = LogTape::new();
    tape.prefix("You are a test.");
    tape.turn(0, used(0, 100_000, 0));
    tape.turn(10, used(100_000, 1_000, 0));
    tape.result();
    tape.decide(spill(), 10);
    tape.decide(DecisionKind::Pin { text: "mind this".into() }, 0);
    tape.turn(10, used(0, 101_000, 0));
    assert_eq!(cause(&tape), BreakCause::Provider);
}

#[test]
fn prefix_change_is_a_cause() {
    let mut tape = LogTape::new();
    tape.turn(0, used(0, 100_000, 0));
    tape.turn(10, used(100_000, 1_000, 0));
    tape.turn(10, used(0, 102_000, 0));
    assert_eq!(cause(&tape), BreakCause::Unseen, "no prefix is in the log");
    let mut tape = warm();
    tape.is_ours = false;
    tape.turn(10, used(0, 102_000, 0));
    assert_eq!(cause(&tape), BreakCause::Unseen, "the tools of others are not in the log");
    let mut tape = warm();
    tape.prefix("You are another test.");
    tape.turn(10, used(0, 102_000, 0));
    let section =
        BreakCause::Section { name: "block 0".into(), change: RequestChange::Changed, characters: 6 };
    assert_eq!(cause(&tape), section, "a block without notes is one section");
    let mut tape = warm();
    tape.prefix("You are a test.");
    tape.turn(10, used(0, 102_000, 0));
    assert_eq!(cause(&tape), BreakCause::Provider, "the same once more is no change");
}

#[test]
fn a_summary_shares_the_cache_of_the_conversation_and_others_do_not() {
    let mut tape = warm();
    tape.source = "notes";
    tape.ask(5);
    tape.answer(used(0, 3_000, 0));
    tape.source = "compact";
    tape.ask(5);
    tape.answer(used(101_000, 0, 500));
    assert_eq!(tape.ledger().drops().count(), 0);
    assert_eq!(tape.ledger().rows[3].idle_ms, Some(10_000), "since the conversation's last request");
    tape.boundary("All is well.");
    tape.source = "main";
    tape.turn(10, used(20_000, 1_000, 0));
    assert_eq!(cause(&tape), expected("boundary"));
    let ledger = tape.ledger();
    let sources: Vec<&str> = ledger.by_source.iter().map(|(source, _)| source.as_str()).collect();
    assert_eq!(sources, ["main", "notes", "compact"]);
    assert!(ledger.rows[3].by_category.is_empty() && !ledger.rows[4].by_category.is_empty());
    let mut tape = warm();
    tape.source = "compact";
    tape.ask(5);
    tape.answer(used(0, 0, 30_000));
    assert_eq!(cause(&tape), expected("compact"), "a request of its own");
}

#[test]
fn small_drops_are_ignored() {
    let mut tape = warm();
    tape.turn(10, used(98_100, 5_000, 0));
    tape.turn(10, used(94_000, 5_000, 0));
    assert_eq!(tape.ledger().drops().count(), 0, "less than 2 000 tokens, less than 5 %");
}

#[test]
fn unreported_rows_are_skipped() {
    let mut tape = warm();
    tape.turn(200, Default::default());
    tape.turn(200, used(0, 104_000, 0));
    assert_eq!(cause(&tape), BreakCause::Provider, "the request between kept the cache warm");
}

#[test]
fn recorded_cause_takes_precedence() {
    let mut tape = warm();
    let cause =
        BreakCause::Section { name: "environment".into(), change: RequestChange::Changed, characters: 12 };
    tape.verdict = Some(CacheBreak {
        tokens: 100_000,
        cause: cause.clone(),
        also: Vec::new(),
        cost: None,
        provider: Some("system_changed".into()),
        diff: Some("breaks/3.diff".into()),
    });
    tape.turn(900, used(0, 104_000, 0));
    let ledger = tape.ledger();
    let (row, fall) = ledger.breaks().next().unwrap();
    assert_eq!(
        (row.source.clone(), fall.is_recorded, &fall.cache_break.cause),
        (RequestSource::main(), true, &cause)
    );
    close(fall.cache_break.cost, 1.15);
    assert_eq!(fall.cache_break.provider.as_deref(), Some("system_changed"));
    assert_eq!(ledger.drops_by_cause()[0].0, "section");
}
