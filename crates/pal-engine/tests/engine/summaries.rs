//! **A failing summarizer does no harm.** Whatever it does wrong, the conversation is compacted without it; after three
//! failures in a row it is not asked again, the user is told, and one summary by hand that works brings it back.

use pal_context::{CompactionRange, SessionNotes, SummaryMethod};
use pal_engine::CompactionResult;
use pal_model::{Boundary, EntryBody};

use crate::played_session::{PlayedSession, SummaryQuality, by_hand, card, prose};

const WINDOW: u64 = 30_000;

/// Fills the context until `times` compactions have happened.
fn until_compacted(played: &mut PlayedSession, times: usize) {
    for round in 0.. {
        assert!(round < 400, "it was not compacted");
        if played.boundaries() >= times {
            return;
        }
        let id = format!("t{}", played.host.sent.len());
        played.say(&format!("Question {id}"));
        played.tool(&id, "Edit", &prose(6_000));
        played.turn().unwrap();
    }
}

fn last_boundary(played: &PlayedSession) -> Boundary {
    let found = played.entries().into_iter().rev().find_map(|entry| match entry.body {
        EntryBody::Boundary(boundary) => Some(*boundary),
        _ => None,
    });
    found.unwrap()
}

#[test]
fn three_failures_and_no_model_is_asked_until_one_by_hand_works() {
    use SummaryQuality::{CallsATool, Empty, Endless, Errors, FindsTooLong, Refuses};
    for summaries in [Errors, Empty, Refuses, CallsATool, FindsTooLong, Endless] {
        let mut played = PlayedSession::new(card(WINDOW));
        played.host.summaries = summaries;
        for times in 1..=3 {
            let n_asked = played.host.asked.len();
            until_compacted(&mut played, times);
            let n_asked = played.host.asked.len() - n_asked;
            assert!((1..=6).contains(&n_asked), "{summaries:?}: asked {n_asked} times");
            assert_eq!(last_boundary(&played).method, SummaryMethod::Extractive.name(), "{summaries:?}");
            // What is known of failures outlives the process.
            played.restart();
        }
        let n_asked = played.host.asked.len();
        played.host.notices.clear();
        until_compacted(&mut played, 5);
        assert_eq!(played.host.asked.len(), n_asked, "{summaries:?}: the breaker is out");
        assert!(played.host.was_told("no model is asked"), "{summaries:?}: {:?}", played.host.notices);
        // By hand it is tried again, and what works counts.
        played.host.summaries = SummaryQuality::Good;
        played.say("One more question.");
        let compacted = played.compact(by_hand(CompactionRange::Whole, None));
        assert!(matches!(compacted, CompactionResult::Done { .. }), "{compacted:?}");
        assert!(played.host.asked.len() > n_asked);
        let n_asked = played.host.asked.len();
        until_compacted(&mut played, 7);
        assert!(played.host.asked.len() > n_asked, "{summaries:?}: the model is asked again");
        assert_ne!(last_boundary(&played).method, SummaryMethod::Extractive.name());
    }
}

#[test]
fn a_round_that_fills_the_window_is_kept_and_the_rest_is_summarised_by_a_fork() {
    let mut played = PlayedSession::new(card(WINDOW));
    let threshold = played.engine.limits.auto_compact.unwrap();
    for number in 0.. {
        played.say(&format!("Question {number}"));
        played.tool(&format!("small{number}"), "Edit", &prose(600));
        played.turn().unwrap();
        if played.view().size().tokens > threshold - 800 {
            break;
        }
    }
    assert_eq!(played.boundaries(), 0);
    let large = prose(6_000);
    played.tool("large", "Read", &large);
    played.turn().unwrap();
    let boundary = last_boundary(&played);
    assert_eq!(boundary.method, SummaryMethod::Fork.name(), "{:?}", played.host.notices);
    let end = large.lines().last().unwrap();
    let sent = played.host.sent.last().unwrap();
    assert!(sent.contains(end), "the result is kept: {sent}");
}

#[test]
fn messages_behind_the_notes_are_kept_whenever_they_fit() {
    let mut played = PlayedSession::new(card(WINDOW));
    let last_noted = played.say("Question 0").id;
    for number in 1..9 {
        played.tool(&format!("t{number}"), "Edit", &prose(5_000));
        played.turn().unwrap();
        played.say(&format!("Question {number}"));
    }
    let tokens = played.view().tokens_after(last_noted);
    assert!(tokens > 6_000, "more than the usual bound of kept messages: {tokens}");
    let notes = SessionNotes {
        text: String::from("# State\nThe parser is half done.\n"),
        path: String::from("session/notes.md"),
        last_covered: last_noted,
    };
    let order =
        pal_context::CompactionRequest { notes: Some(notes), ..by_hand(CompactionRange::Whole, None) };
    let CompactionResult::Done { boundary, attempts } = played.compact(order) else { panic!() };
    assert_eq!(boundary.method, SummaryMethod::Notes.name(), "{attempts:?}");
    assert!(played.host.asked.is_empty() && played.body().contains("The parser is half done."));
}

#[test]
fn the_log_says_what_every_compaction_left_and_found() {
    let mut played = PlayedSession::new(card(WINDOW));
    until_compacted(&mut played, 3);
    for entry in played.entries() {
        let EntryBody::Boundary(boundary) = &entry.body else { continue };
        let (before, after) = (boundary.tokens_before.unwrap(), boundary.tokens_after.unwrap());
        assert!(after < before && after < boundary.threshold.unwrap(), "{before} → {after}");
        let audit = boundary.audit.as_ref().unwrap();
        let found = audit.user_messages_verbatim + audit.user_messages_repaired;
        assert_eq!(found + audit.user_messages_by_pointer, audit.user_messages, "{audit:?}");
    }
}

#[test]
fn a_compaction_that_cannot_help_asks_a_bounded_number_of_times() {
    // The instructions alone are over the threshold, so that nothing helps; but there is room for an answer.
    let mut played = PlayedSession::new(card(WINDOW));
    let limits = played.engine.limits;
    let between = (limits.auto_compact.unwrap() + limits.blocking) / 2;
    let mut bytes = 1_000;
    let prefix = |bytes: usize| pal_model::PromptPrefix {
        system: format!("[{}]", pal_model::ContentBlock::text(&prose(bytes)).raw()).into(),
        tools: "[]".into(),
        context: pal_model::Content::default(),
        unseen_tokens: 0,
        notes: Default::default(),
    };
    let estimator = played.view().estimator();
    while estimator.total(estimator.text(&prose(bytes))) < between {
        bytes += 100;
    }
    played.append(pal_model::EntryDraft::prefix(&prefix(bytes)));
    played.say("Hello?");
    played.turn().unwrap();
    played.say("Are you there?");
    for _ in 0..40 {
        played.turn().unwrap();
        played.restart();
    }
    let n_asked = played.host.asked.len();
    assert!((1..=3 * 6).contains(&n_asked), "asked {n_asked} times: {:#?}", played.host.notices);
    assert_eq!(played.boundaries(), 0, "what does not help is not done");
    assert!(played.host.was_told("still be over the threshold"), "{:?}", played.host.notices);
}

#[test]
fn notes_take_the_place_of_a_summary_and_no_model_is_asked() {
    let mut played = PlayedSession::new(card(WINDOW));
    let mut last_noted = played.say("Question 0").id;
    for number in 1..16 {
        played.tool(&format!("t{number}"), "Edit", &prose(1_500));
        played.turn().unwrap();
        let said = played.say(&format!("Question {number}")).id;
        if number == 12 {
            last_noted = said;
        }
    }
    let text =
        String::from("# State\n_what is going on_\nThe parser is half done.\n# Next\nWrite its tests.\n");
    let notes = Some(SessionNotes { text, path: String::from("session/notes.md"), last_covered: last_noted });
    let before = played.view().size().tokens;
    let compacted =
        played.compact(pal_context::CompactionRequest { notes, ..by_hand(CompactionRange::Whole, None) });
    let CompactionResult::Done { boundary, .. } = compacted else { panic!("{compacted:?}") };
    assert!(played.host.asked.is_empty() && boundary.method == SummaryMethod::Notes.name());
    assert!(boundary.tokens_after.unwrap() < before);
    let body = played.body();
    assert!(body.contains("The parser is half done.") && body.contains("Write its tests."));
    // What the notes do not cover is kept as it was said, with at least five messages that have text.
    let kept = boundary.preserved.unwrap();
    let whole = played.entries();
    let place = |id| whole.iter().position(|entry| entry.id == id).unwrap();
    assert!(place(kept.head) <= place(last_noted) + 1, "what came after the notes is kept");
    let with_text = whole[place(kept.head)..=place(kept.tail)].iter().filter(|entry| {
        let content = match &entry.body {
            EntryBody::User(user) => &user.content,
            EntryBody::Assistant(assistant) => &assistant.content,
            _ => return false,
        };
        content.blocks().iter().any(|block| block.kind() == pal_model::BlockType::Text)
    });
    assert!(with_text.count() >= 5);
    // And the words that the notes stand for are not lost either.
    for number in 0..16 {
        assert!(body.contains(&format!("Question {number}")), "question {number}");
    }
    played.restart();
    assert_eq!(played.body(), body);
    played.turn().unwrap();
}

#[test]
fn notes_that_would_not_help_are_refused_and_a_model_is_asked() {
    let mut played = PlayedSession::new(card(WINDOW));
    let mut last_noted = played.say("Question 0").id;
    for number in 1..16 {
        played.tool(&format!("t{number}"), "Edit", &prose(1_500));
        played.turn().unwrap();
        last_noted = played.say(&format!("Question {number}")).id;
    }
    // Each section fits its budget, and all together fill the window.
    let section = |number: usize| format!("# Part {number}\n{}\n", prose(1_000));
    let text: String = (0..WINDOW as usize / 200).map(section).collect();
    let notes = SessionNotes { text, path: String::from("session/notes.md"), last_covered: last_noted };
    let order =
        pal_context::CompactionRequest { notes: Some(notes), ..by_hand(CompactionRange::Whole, None) };
    let compacted = played.compact(order);
    let CompactionResult::Done { boundary, attempts } = compacted else { panic!("{compacted:?}") };
    assert_eq!(boundary.method, SummaryMethod::Fork.name());
    assert!(
        attempts.iter().any(|why| why.starts_with("notes: ") && why.contains("threshold")),
        "{attempts:?}"
    );
    assert_eq!(played.host.asked.len(), 1);
}
