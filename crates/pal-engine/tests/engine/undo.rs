//! **What is compacted can be taken back.** With nothing said since, the request is the one before the compaction, byte
//! for byte; with turns since, it is that request followed by what was said. Live, and resumed from the disk.
//!
//! Not promised: on models that bind their thinking to what stands before it (§0.3), thinking that was said behind a
//! summary is void when the summary goes, so it is not looked for there.

use std::path::PathBuf;

use pal_context::{CompactionRange, ContextPolicy, SummaryMethod};
use pal_engine::CompactionResult;
use pal_model::{EntryBody, EntryDraft, LogEntry, ModelCard, ModelCatalog};
use pal_testkit::{RandomLogOptions, cases, map_on_all_cores, random_log, recorded_entries, session_sample};
use proptest::prelude::*;
use proptest::test_runner::Config;

use crate::played_session::{OPTIONS, PlayedSession, by_hand, card, prose};

/// A session as a log that was written elsewhere tells it.
fn told(card: ModelCard, entries: &[LogEntry]) -> PlayedSession {
    let mut played = PlayedSession::new(card);
    for entry in entries {
        match &entry.body {
            EntryBody::Boundary(boundary) => {
                played.session().copy_boundary(entry.id, boundary, entry.at).unwrap();
            }
            _ => {
                played.session().append(EntryDraft::copy_of(entry), entry.at).unwrap();
            }
        }
    }
    played
}

/// The blocks of all messages, each with the role where a message begins: what a request says, without marks.
fn blocks(played: &PlayedSession) -> Vec<String> {
    let request = played.view().render(OPTIONS);
    request.pieces().map(|(opens, block, _)| format!("{opens:?} {block}")).collect()
}

/// Compacts and takes back, in every order of restarts; whether there was anything to compact.
fn comes_back(played: &mut PlayedSession, reach: CompactionRange) -> bool {
    let before = played.body();
    let compacted = played.compact(by_hand(reach, Some(SummaryMethod::Extractive)));
    if !matches!(compacted, CompactionResult::Done { .. }) {
        assert_eq!(played.body(), before, "what is refused changes nothing");
        return false;
    }
    let after = played.body();
    assert_ne!(after, before);
    if played.uncompact().is_err() {
        // It does not fit; then nothing changes.
        assert_eq!(played.body(), after);
        return false;
    }
    assert_eq!(played.body(), before, "live");
    played.restart();
    assert_eq!(played.body(), before, "resumed after it was taken back");
    let again = played.compact(by_hand(reach, Some(SummaryMethod::Extractive)));
    if let CompactionResult::Refused(why) = again {
        // What was taken back is estimated anew, so that it may look too small to be worth it.
        assert!(why.contains("no less than"), "{why}");
        assert_eq!(played.body(), before);
        return true;
    }
    assert_eq!(played.body(), after, "the same compaction once more");
    played.restart();
    assert_eq!(played.body(), after, "resumed after the compaction");
    played.uncompact().unwrap();
    assert_eq!(played.body(), before, "taken back by a session that has not read what it brings back");
    played.restart();
    assert_eq!(played.body(), before, "and resumed");
    true
}

/// Compacts, goes on, takes back: what was there before, and then what was said since.
fn is_followed_by_what_was_said(played: &mut PlayedSession, reach: CompactionRange) {
    let before = blocks(played);
    let compacted = played.compact(by_hand(reach, Some(SummaryMethod::Extractive)));
    assert!(matches!(compacted, CompactionResult::Done { .. }), "{compacted:?}");
    played.restart();
    played.say("What comes after the summary?");
    played.turn().unwrap();
    played.tool("later", "Edit", "done");
    played.say("And after that?");
    played.uncompact().unwrap();
    let live = blocks(played);
    played.restart();
    assert_eq!(blocks(played), live);
    assert!(live.len() > before.len());
    assert_eq!(live[..before.len()], before[..], "what was there before");
    let since = live[before.len()..].concat();
    let places = ["What comes after the summary?", "Understood.", "later", "done", "And after that?"]
        .map(|words| since.find(words).unwrap_or_else(|| panic!("{words} is not in {since}")));
    assert!(places.is_sorted(), "{since}");
}

fn conversation(turns: usize) -> PlayedSession {
    let mut played = PlayedSession::new(card(200_000));
    for number in 0..turns {
        played.say(&format!("Question {number}"));
        played.turn().unwrap();
        played.tool(&format!("t{number}"), "Edit", &prose(6_000));
        played.turn().unwrap();
    }
    played.say("And now?");
    played
}

#[test]
fn every_compaction_can_be_undone() {
    for turns in [3, 8] {
        let mut played = conversation(turns);
        let middle = played.view().visible_entries().filter(|shown| shown.is_from_person()).nth(turns / 2);
        let middle = middle.unwrap().entry.id;
        for reach in [CompactionRange::Whole, CompactionRange::From(middle), CompactionRange::UpTo(middle)] {
            assert!(comes_back(&mut played, reach), "{reach:?}");
        }
        for reach in [CompactionRange::Whole, CompactionRange::From(middle), CompactionRange::UpTo(middle)] {
            let mut played = conversation(turns);
            let middle =
                played.view().visible_entries().filter(|shown| shown.is_from_person()).nth(turns / 2);
            let middle = middle.unwrap().entry.id;
            let reach = match reach {
                CompactionRange::Whole => CompactionRange::Whole,
                CompactionRange::From(_) => CompactionRange::From(middle),
                CompactionRange::UpTo(_) => CompactionRange::UpTo(middle),
            };
            is_followed_by_what_was_said(&mut played, reach);
        }
    }
}

#[test]
fn compactions_upon_compactions_are_taken_back_one_by_one() {
    let mut played = PlayedSession::new(card(200_000));
    let mut before = Vec::new();
    for round in 0..4 {
        for number in 0..4 {
            played.say(&format!("Question {round} {number}"));
            played.tool(&format!("t{round}{number}"), "Edit", &prose(8_000));
            played.turn().unwrap();
        }
        before.push(played.body());
        assert!(matches!(
            played.compact(by_hand(CompactionRange::Whole, None)),
            CompactionResult::Done { .. }
        ));
    }
    played.restart();
    played.uncompact().unwrap();
    assert_eq!(Some(played.body()), before.pop());
    played.uncompact().unwrap();
    let last = blocks(&played);
    let earlier: String = last.concat();
    assert!(earlier.contains("Question 2 0") && earlier.contains("Question 3 3"), "said since, it follows");
    played.restart();
    assert_eq!(blocks(&played), last);
}

/// Prefixes of a session that end before a request; their number is approximate.
fn beginnings(entries: &[LogEntry], count: usize) -> Vec<usize> {
    let is_request =
        |entry: &LogEntry| matches!(&entry.body, EntryBody::Request(sent) if sent.source.is_conversation());
    let places: Vec<usize> =
        entries.iter().enumerate().filter(|(_, entry)| is_request(entry)).map(|(at, _)| at).collect();
    let step = (places.len() / count).max(1);
    places.into_iter().rev().step_by(step).take(count).collect()
}

#[test]
fn recorded_sessions_come_back() {
    let files = session_sample("undo");
    let work = |file: &PathBuf| {
        let (mut tried, mut back) = (0, 0);
        let entries = recorded_entries(file);
        for end in beginnings(&entries, 3) {
            // A window that takes every session whole, on both kinds of thinking.
            for model in ["claude-opus-4-6", "claude-opus-5-5"] {
                let card = ModelCard { window: 2_000_000, ..ModelCatalog::built_in().find(model).card };
                let mut played = told(card, &entries[..end]);
                tried += 1;
                back += usize::from(comes_back(&mut played, CompactionRange::Whole));
            }
        }
        (tried, back)
    };
    let (tried, back) =
        map_on_all_cores(&files, work).into_iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    println!("{} sessions: {back} of {tried} beginnings were compacted and came back", files.len());
    assert!(back * 10 > tried * 7, "{back} of {tried}: too few were worth it");
}

const RANDOM: RandomLogOptions =
    RandomLogOptions { steps: 40, decisions: true, boundaries: false, rewinds: false, prefixes: true };

proptest! {
    #![proptest_config(Config { cases: cases(96), failure_persistence: None, ..Config::default() })]

    #[test]
    fn random_logs_come_back(entries in random_log(RANDOM), bound in any::<bool>()) {
        let model = if bound { "claude-opus-5-5" } else { "claude-opus-4-6" };
        let mut played = worth_it(told(ModelCatalog::built_in().find(model).card, &entries));
        comes_back(&mut played, CompactionRange::Whole);
    }

    #[test]
    fn random_logs_come_back_with_later_messages(entries in random_log(RANDOM)) {
        let mut played = worth_it(told(card(200_000), &entries));
        is_followed_by_what_was_said(&mut played, CompactionRange::Whole);
    }
}

/// Soups are short; something long makes a summary worth it. No layer decides anything on the way.
fn worth_it(mut played: PlayedSession) -> PlayedSession {
    played.engine.policy = ContextPolicy::none();
    played.say("Do it.");
    played.tool("long", "Edit", &prose(120_000));
    played.say("And now?");
    played
}
