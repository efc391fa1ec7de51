//! **Death by length is impossible.** Whatever makes a session too long, it goes on, and says what it did.

use pal_context::{CompactionRange, SummaryMethod};
use pal_engine::{CompactionResult, EngineError};
use pal_model::{EntryBody, EntryDraft, MessageOrigin};

use crate::played_session::{PlayedSession, ProviderMood, SummaryQuality, by_hand, card, prose};

const WINDOW: u64 = 30_000;
/// More bytes than a window has tokens are never in it, times ten.
const TEN_WINDOWS: usize = 10 * WINDOW as usize * 4;

/// The person goes on, and is heard: the request is answered and holds their words.
#[track_caller]
fn goes_on(played: &mut PlayedSession) {
    played.say("And now the next step, please.");
    played.turn().unwrap();
    assert!(played.host.sent.last().unwrap().contains("And now the next step, please."));
    played.restart();
}

#[test]
fn a_tool_result_of_ten_windows() {
    for name in ["Bash", "Read", "mcp__far__away"] {
        let mut played = PlayedSession::new(card(WINDOW));
        played.say("Look at everything.");
        played.turn().unwrap();
        played.tool("big", name, &prose(TEN_WINDOWS));
        let sent = played.turn().unwrap();
        assert_eq!(sent.rejected, 0, "{name}");
        assert!(played.host.asked.is_empty(), "{name}: a long result is no reason for a summary");
        let body = played.host.sent.last().unwrap();
        assert!(body.contains("tool-results/big.txt"), "{name}: the model is told where the rest is");
        let file = played.log.parent().unwrap().join("tool-results/big.txt");
        assert_eq!(std::fs::read_to_string(file).unwrap(), prose(TEN_WINDOWS), "{name}");
        goes_on(&mut played);
    }
}

#[test]
fn a_tool_result_of_ten_windows_that_no_disk_takes() {
    let mut played = PlayedSession::new(card(WINDOW));
    std::fs::write(played.log.parent().unwrap().join("tool-results"), "in the way").unwrap();
    played.say("Look at everything.");
    played.turn().unwrap();
    played.tool("big", "Bash", &prose(TEN_WINDOWS));
    played.turn().unwrap();
    assert!(played.host.was_told("the text stays whole"), "{:?}", played.host.notices);
    assert!(played.boundaries() == 1 && played.host.sent.last().unwrap().contains("Look at everything."));
    goes_on(&mut played);
}

/// Text of `characters` Chinese characters, about one token each.
fn chinese(characters: usize) -> String {
    "模型从未见过的内容不能被压缩掉。".chars().cycle().take(characters).collect()
}

#[test]
fn results_that_the_model_has_not_seen_are_never_compacted_away() {
    for (window, size) in [(200_000, 48_000), (60_000, 14_000), (WINDOW, 7_000)] {
        let mut played = PlayedSession::new(card(window));
        for number in 0..6 {
            played.say(&format!("Question {number}"));
            played.tool(&format!("old{number}"), "Edit", &prose(window as usize / 5));
            played.turn().unwrap();
        }
        for number in 0..4 {
            played.tool(&format!("new{number}"), "Bash", &format!("Part {number}: {}", chinese(size)));
        }
        assert_eq!(played.turn().unwrap().rejected, 0, "{window}");
        let body = played.host.sent.last().unwrap();
        for number in 0..4 {
            assert!(
                body.contains(&format!("Part {number}: ")),
                "{window}: part {number} is not in the request"
            );
        }
        goes_on(&mut played);
    }
}

#[test]
fn a_prompt_that_leaves_no_room_for_a_summary_is_shown_in_part() {
    for history in [0, 4] {
        let mut played = PlayedSession::new(card(WINDOW));
        for number in 0..history {
            played.say(&format!("Question {number}"));
            played.tool(&format!("old{number}"), "Edit", &prose(6_000));
            played.turn().unwrap();
        }
        let limits = played.engine.limits;
        // Within the budget of user texts, and more than a compaction keeps.
        played.say(&format!("This is my log: {} What does it say?", chinese(13_000)));
        assert!(played.view().size().tokens * 3 > limits.auto_compact.unwrap());
        assert_eq!(played.turn().unwrap().rejected, 0, "{history}");
        let body = played.host.sent.last().unwrap();
        assert!(body.contains("This is my log: ") && body.contains("What does it say?"), "{history}");
        goes_on(&mut played);
    }
}

#[test]
fn a_paste_of_ten_windows() {
    let mut played = PlayedSession::new(card(WINDOW));
    played.say(&format!("This is my log:\n{}", prose(TEN_WINDOWS)));
    assert_eq!(played.turn().unwrap().rejected, 0);
    assert!(played.host.sent.last().unwrap().contains("This is my log:"));
    goes_on(&mut played);
}

#[test]
fn a_log_of_hundreds_of_windows_that_was_never_compacted() {
    let mut played = PlayedSession::new(card(WINDOW));
    for number in 0..40 {
        played.say(&format!("This is wish {number}."));
        played.tool(&format!("big{number}"), "Bash", &prose(600_000));
    }
    played.restart();
    assert!(played.session().left_out().unwrap().messages > 0);
    let first = "This is wish 0.";
    assert!(played.body().contains(first), "what people said is in sight");
    played.say("And now?");
    assert_eq!(played.turn().unwrap().rejected, 0);
    assert!(played.host.asked.is_empty(), "no model is asked to summarise what no window holds");
    assert_eq!(played.boundaries(), 1);
    let sent = played.host.sent.last().unwrap();
    assert!(sent.contains(first) && sent.contains("And now?"), "{}", &sent[..sent.len().min(4_000)]);
    // From now on it is a session like any other: a resume begins where this request did.
    let body = played.body();
    played.restart();
    assert!(played.session().left_out().is_none());
    assert_eq!(played.body(), body);
    goes_on(&mut played);
}

#[test]
fn five_thousand_tiny_messages() {
    for summaries in [SummaryQuality::Good, SummaryQuality::Errors] {
        let mut played = PlayedSession::new(card(WINDOW));
        played.host.summaries = summaries;
        for number in 0..5_000 {
            played.say(&format!("word {number}"));
            if number % 50 == 49 {
                assert_eq!(played.turn().unwrap().rejected, 0);
            }
        }
        assert!(played.boundaries() > 0 && played.host.sent.last().unwrap().contains("word 4999"));
        let audits = played.entries().into_iter().filter_map(|entry| match entry.body {
            EntryBody::Boundary(boundary) => boundary.audit,
            _ => None,
        });
        for audit in audits {
            let found = audit.user_messages_verbatim + audit.user_messages_repaired;
            assert!(found + audit.user_messages_by_pointer >= audit.user_messages, "{audit:?}");
        }
        goes_on(&mut played);
    }
}

/// A pasted picture of `bytes` bytes.
fn picture(bytes: usize) -> EntryDraft {
    let data = "iVBORw0KGgo".repeat(bytes / 11);
    let data = &data[..data.len() / 4 * 4];
    let source = format!(r#"{{"type":"base64","media_type":"image/png","data":"{data}"}}"#);
    EntryDraft::user(MessageOrigin::Person, &format!(r#"[{{"type":"image","source":{source}}}]"#))
}

#[test]
fn pictures_alone() {
    let mut played = PlayedSession::new(card(WINDOW));
    for number in 0..60 {
        played.append(picture(2_000));
        if number % 2 == 1 {
            assert_eq!(played.turn().unwrap().rejected, 0, "picture {number}");
        }
    }
    assert!(played.boundaries() > 0, "sixty pictures are more than the window");
    goes_on(&mut played);
}

#[test]
fn pictures_of_forty_megabytes() {
    let mut played = PlayedSession::new(card(200_000));
    for _ in 0..10 {
        played.append(picture(4_000_000));
    }
    played.say("What do they show?");
    assert_eq!(played.turn().unwrap().rejected, 0);
    let body = played.host.sent.last().unwrap();
    assert!(body.len() < 32_000_000 && body.len() > 15_000_000, "{} bytes", body.len());
    assert!(body.contains("Picture or document left out") && played.boundaries() == 0);
    goes_on(&mut played);
}

#[test]
fn words_of_forty_megabytes() {
    let mut played = PlayedSession::new(card(1_000_000));
    played.say("Look at everything.");
    played.turn().unwrap();
    // No result alone is long enough for the disk.
    played.engine.policy.spill = false;
    played.engine.policy.condense = false;
    for number in 0..40 {
        played.tool(&format!("t{number}"), "Bash", &prose(1_000_000));
    }
    assert_eq!(played.turn().unwrap().rejected, 0);
    assert!(played.host.sent.last().unwrap().len() < 32_000_000);
    goes_on(&mut played);
}

#[test]
fn a_provider_that_ignores_what_it_is_asked_to_clear() {
    let mut played = PlayedSession::new(card(60_000));
    played.append(EntryDraft::prefix(&pal_model::PromptPrefix {
        system: "[]".into(),
        tools: r#"[{"name":"Bash","input_schema":{"type":"object"}}]"#.into(),
        context: pal_model::Content::default(),
        unseen_tokens: 0,
        notes: Default::default(),
    }));
    for number in 0..60 {
        played.say(&format!("Question {number}"));
        played.tool(&format!("t{number}"), "Bash", &prose(6_000));
        assert_eq!(played.turn().unwrap().rejected, 0, "question {number}");
    }
    let asked = played.host.sent.iter().filter(|body| body.contains("clear_tool_uses")).count();
    assert!(asked > 0, "it was never asked");
    assert!(played.boundaries() > 0, "what is not cleared is compacted");
    goes_on(&mut played);
}

#[test]
fn a_provider_that_finds_everything_too_long() {
    let mut played = PlayedSession::new(card(WINDOW));
    for number in 0..6 {
        played.say(&format!("Question {number}"));
        played.tool(&format!("t{number}"), "Bash", &prose(3_000));
        played.turn().unwrap();
    }
    played.host.mood = ProviderMood::TooLong;
    played.say("Question 6");
    let n_sent = played.host.sent.len();
    let error = played.turn().unwrap_err();
    assert!(matches!(error, EngineError::TooLong { .. }), "{error}");
    for expected in ["prompt is too long", "nothing is lost", "instruction files", "larger window"] {
        assert!(error.to_string().contains(expected), "{expected}: {error}");
    }
    let sizes: Vec<usize> = played.host.sent[n_sent..].iter().map(String::len).collect();
    assert!(
        sizes.len() > 1 && sizes.is_sorted_by(|one, next| one > next),
        "each attempt is smaller: {sizes:?}"
    );
    assert!(played.host.was_told("compacting without a model"), "{:?}", played.host.notices);
    // Nothing is lost, and the same prompt is answered when the provider has recovered.
    played.restart();
    let said: String = played.entries().iter().map(|entry| entry.line.to_string()).collect();
    assert!((0..7).all(|number| said.contains(&format!("Question {number}"))));
    assert!(played.turn().is_err());
    played.host.mood = ProviderMood::Answers;
    assert_eq!(played.turn().unwrap().rejected, 0);
    assert!(played.host.sent.last().unwrap().contains("Question 6"));
    goes_on(&mut played);
}

#[test]
fn a_window_that_the_instructions_fill_ends_the_turn_with_an_error_that_says_so() {
    let mut played = PlayedSession::new(card(WINDOW));
    let system =
        pal_model::SharedText::from(format!("[{}]", pal_model::ContentBlock::text(&prose(90_000)).raw()));
    let tools = pal_model::SharedText::from("[]");
    let context = pal_model::Content::default();
    let prefix =
        pal_model::PromptPrefix { system, tools, context, unseen_tokens: 0, notes: Default::default() };
    played.append(EntryDraft::prefix(&prefix));
    played.say("Hello?");
    let error = played.turn().unwrap_err().to_string();
    assert!(error.contains("the context is full") && error.contains("shorten the instructions"), "{error}");
    assert!(played.host.sent.is_empty(), "what cannot be answered does not leave");
    // Shorter instructions, and it goes on.
    let prefix = pal_model::PromptPrefix { system: pal_model::SharedText::from("[]"), ..prefix };
    played.append(EntryDraft::prefix(&prefix));
    goes_on(&mut played);
}

#[test]
fn a_manual_compaction_works_after_failures() {
    let mut played = PlayedSession::new(card(WINDOW));
    played.host.summaries = SummaryQuality::Errors;
    for number in 0..5 {
        played.say(&format!("Question {number}"));
        played.tool(&format!("t{number}"), "Bash", &prose(3_000));
        played.turn().unwrap();
    }
    let compacted = played.compact(by_hand(CompactionRange::Whole, None));
    let CompactionResult::Done { boundary, attempts } = compacted else { panic!("{compacted:?}") };
    assert_eq!(boundary.method, SummaryMethod::Extractive.name());
    assert!(attempts.iter().any(|attempt| attempt.contains("overloaded")), "{attempts:?}");
    goes_on(&mut played);
}
