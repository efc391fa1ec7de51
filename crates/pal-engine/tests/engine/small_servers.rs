//! Servers whose real window is smaller than the card says (§4.16): the session finds out and goes on.

use pal_engine::EngineError;
use pal_model::EntryDraft;

use crate::played_session::{PlayedSession, RefusalStyle, ServerWindow, card, prefix, prose};

const CARD_WINDOW: u64 = 200_000;

/// Numbers of a fixed sequence.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// Bytes of a full prefix, and of the prefix for small windows.
const PREFIX: (usize, usize) = (36_000, 3_500);

/// Plays a session of random prompts and results against a server.
fn play(server: ServerWindow, seed: u64) {
    let mut chance = Chance(seed);
    let mut played = PlayedSession::new(card(CARD_WINDOW));
    played.append(EntryDraft::prefix(&prefix(PREFIX.0)));
    played.host.lean_prefix = Some(prefix(PREFIX.1));
    played.host.server = Some(server);
    for number in 0..12 {
        played.say(&format!("Question {number}: {}", prose(chance.below(2_000) as usize)));
        for call in 0..chance.below(4) {
            let size = chance.below(8) * chance.below(12_000);
            played.tool(&format!("t{number}_{call}"), "Bash", &prose(size as usize));
        }
        let refused = played.host.refused.len();
        let result = played.turn();
        let refused = &played.host.refused[refused..];
        assert!(refused.is_sorted_by(|one, next| one > next), "{server:?} {seed}: {refused:?}");
        if let Err(error) = result {
            panic!("{server:?} {seed}, question {number}: {error}\n{:?}", played.host.notices);
        }
    }
    let said: String = played.entries().iter().map(|entry| entry.line.to_string()).collect();
    assert!((0..12).all(|number| said.contains(&format!("Question {number}:"))));
    if played.host.refused.is_empty() {
        return;
    }
    assert!(played.engine.limits.window < CARD_WINDOW);
    match server.refusal {
        RefusalStyle::Silent => {
            assert!(played.host.learned.is_empty(), "{server:?} {seed}");
            assert!(played.host.refused.len() <= 12, "{server:?} {seed}: {:?}", played.host.refused);
            assert!(
                played.host.guessed.is_sorted_by(|one, next| one.window > next.window),
                "{server:?} {seed}: {:?}",
                played.host.guessed
            );
            let is_bounded = played.host.guessed.iter().all(|one| one.window < one.refused);
            assert!(is_bounded, "{server:?} {seed}: {:?}", played.host.guessed);
        }
        _ => assert_eq!(played.host.learned.first(), Some(&server.tokens), "{server:?} {seed}"),
    }
}

#[test]
fn every_prompt_is_answered_whatever_the_real_window_is() {
    for seed in 0..100 {
        let mut chance = Chance(seed * 7 + 1);
        let window = 6_000 + chance.below(194_000) * chance.below(194_000) / 194_000;
        let ratio = 0.4 + chance.below(130) as f64 / 100.0;
        let server = ServerWindow {
            // As large in the server's count as in ours: below, the prefix alone would fill it.
            tokens: ((window as f64 * ratio.max(1.0)) as u64).min(CARD_WINDOW - 1),
            ratio,
            refusal: RefusalStyle::ALL[chance.below(4) as usize],
        };
        play(server, seed);
    }
}

#[test]
fn parallel_results_and_a_prefix_fit_a_tiny_window() {
    for (tokens, style) in (6_000..12_000).step_by(1_000).zip(RefusalStyle::ALL.into_iter().cycle()) {
        let mut played = PlayedSession::new(card(CARD_WINDOW));
        played.append(EntryDraft::prefix(&prefix(6_000)));
        played.host.server = Some(ServerWindow { tokens, ratio: 1.0, refusal: style });
        for number in 0..4 {
            played.say(&format!("Question {number}"));
            played.parallel_tools(&format!("t{number}"), 6, &prose(9_000));
            played.turn().unwrap_or_else(|error| panic!("{tokens} {style:?}, question {number}: {error}"));
        }
    }
}

#[test]
fn parallel_results_of_the_first_prompt_fit_a_tiny_window() {
    for window in (4_000..9_000).step_by(500) {
        let mut played = PlayedSession::new(card(CARD_WINDOW));
        played.append(EntryDraft::prefix(&prefix(2_500)));
        played.engine.limits = played.engine.limits.lowered_to(window);
        played.say("Look at all of it.");
        played.parallel_tools("t", 4, &prose(14_000));
        played.turn().unwrap_or_else(|error| panic!("{window}: {error}"));
        assert!(played.view().size().tokens < window, "{window}");
    }
}

#[test]
fn a_stated_window_is_not_exceeded_again() {
    let server = ServerWindow { tokens: 32_768, ratio: 1.0, refusal: RefusalStyle::PromptAndWindow };
    let mut played = PlayedSession::new(card(CARD_WINDOW));
    played.host.server = Some(server);
    for number in 0..30 {
        played.say(&format!("Question {number}"));
        played.tool(&format!("t{number}"), "Bash", &prose(9_000));
        played.turn().unwrap();
    }
    assert_eq!(played.host.refused.len(), 1, "{:?}", played.host.refused);
    assert_eq!(played.host.learned, [32_768]);
}

#[test]
fn an_answer_that_does_not_fit_beside_the_prompt_is_shortened_and_nothing_is_compacted() {
    let server = ServerWindow { tokens: 20_000, ratio: 1.0, refusal: RefusalStyle::PromptAnswerAndWindow };
    let mut played = PlayedSession::new(card(CARD_WINDOW));
    played.host.server = Some(server);
    played.say("Question");
    played.tool("t", "Bash", &prose(26_000));
    let sent = played.turn().unwrap();
    assert_eq!((sent.rejected, played.boundaries()), (1, 0), "{:?}", played.host.refused);
    assert!(sent.prepared.request.max_tokens() + played.host.refused[0] <= server.tokens);
    assert_eq!(played.engine.max_tokens, 8_000, "the next answer may be long again");
}

#[test]
fn a_prefix_that_does_not_fit_ends_with_its_size_and_the_session_stays() {
    let server = ServerWindow { tokens: 2_000, ratio: 1.0, refusal: RefusalStyle::PromptAndWindow };
    let mut played = PlayedSession::new(card(CARD_WINDOW));
    played.append(EntryDraft::prefix(&prefix(20_000)));
    played.host.server = Some(server);
    played.say("Question");
    let error = played.turn().unwrap_err();
    assert!(matches!(error, EngineError::TooLong { .. } | EngineError::Full(_)), "{error}");
    assert!(error.to_string().contains("instruction"), "{error}");
    // With a larger window, the same prompt is answered: a window that was never accepted is not kept.
    played.host.server = None;
    played.turn().unwrap();
}

#[test]
fn without_figures_a_prefix_that_is_too_long_gives_way_to_the_lean_one() {
    for tokens in [6_500, 9_000, 12_000, 14_000] {
        let server = ServerWindow { tokens, ratio: 1.0, refusal: RefusalStyle::Silent };
        let mut played = PlayedSession::new(card(CARD_WINDOW));
        played.append(EntryDraft::prefix(&prefix(PREFIX.0)));
        played.host.lean_prefix = Some(prefix(PREFIX.1));
        played.host.server = Some(server);
        for number in 0..4 {
            played.say(&format!("Question {number}"));
            played.turn().unwrap_or_else(|error| panic!("{tokens}, question {number}: {error}"));
        }
        let [refused] = played.host.refused[..] else { panic!("{tokens}: {:?}", played.host.refused) };
        let [guessed] = played.host.guessed[..] else { panic!("{tokens}: {:?}", played.host.guessed) };
        assert_eq!(guessed.window, guessed.refused * 75 / 100);
        assert!(guessed.accepted < tokens && tokens < guessed.refused.min(refused), "{guessed:?}");
        assert_eq!(played.engine.limits.window, guessed.window);
    }
}

#[test]
fn without_figures_a_size_that_stays_refused_is_sent_once() {
    let server = ServerWindow { tokens: 1_000, ratio: 1.0, refusal: RefusalStyle::Silent };
    let mut played = PlayedSession::new(card(CARD_WINDOW));
    played.append(EntryDraft::prefix(&prefix(PREFIX.0)));
    played.host.lean_prefix = Some(prefix(PREFIX.1));
    played.host.server = Some(server);
    played.say("Question");
    let error = played.turn().unwrap_err().to_string();
    assert!(error.contains("max_context_tokens") && error.contains("models.toml"), "{error}");
    assert!(played.host.refused.len() == 2 && played.host.refused.is_sorted_by(|one, next| one > next));
    assert_eq!((&*played.host.guessed, played.engine.limits.window), (&[][..], CARD_WINDOW));
    played.host.server = None;
    played.turn().unwrap();
}

#[test]
fn a_refusal_near_the_window_of_the_card_limits_the_session_and_is_not_learned() {
    let server = ServerWindow { tokens: 190_000, ratio: 1.2, refusal: RefusalStyle::Silent };
    let mut played = PlayedSession::new(card(CARD_WINDOW));
    played.host.server = Some(server);
    played.engine.limits.auto_compact = None;
    played.engine.policy.spill = false;
    played.say("Question");
    for number in 0..10 {
        played.tool(&format!("t{number}"), "Bash", &prose(30_500));
    }
    played.turn().unwrap();
    assert_eq!(played.host.refused.len(), 1, "{:?}", played.host.refused);
    assert_eq!(played.host.guessed, []);
    assert!(played.engine.limits.window < CARD_WINDOW);
}
