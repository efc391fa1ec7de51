//! Pictures and documents that the provider refuses.

use pal_engine::EngineError;
use pal_model::{EntryDraft, MessageOrigin};

use crate::played_session::{PlayedSession, ProviderMood, card};

/// A picture of one pixel.
const PICTURE: &str = r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="}}"#;

#[test]
fn a_picture_that_is_refused_is_left_out_for_good_and_the_session_goes_on() {
    let mut played = PlayedSession::new(card(200_000));
    played.say("Begin.");
    played.turn().unwrap();
    played.host.mood = ProviderMood::RefusesPictures;
    played.append(EntryDraft::user(
        MessageOrigin::Person,
        &format!(r#"[{{"type":"text","text":"What is this?"}},{PICTURE}]"#),
    ));
    played.turn().unwrap();
    let [.., refused, answered] = played.host.sent.as_slice() else { panic!() };
    assert!(refused.contains("image/png") && !answered.contains("image/png"));
    assert!(
        answered.contains("What is this?") && answered.contains("The provider refused it: image exceeds")
    );
    assert!(played.host.was_told("image exceeds"));
    played.say("And now?");
    played.restart();
    played.turn().unwrap();
    assert!(!played.host.sent.last().unwrap().contains("image/png"), "a restart does not bring it back");
}

/// A document of a few bytes.
const DOCUMENT: &str =
    r#"{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0xLjQK"}}"#;

fn strips(played: &PlayedSession) -> usize {
    let log = std::fs::read_to_string(&played.log).unwrap();
    log.lines().filter(|line| line.contains(r#""kind":"strip""#)).count()
}

#[test]
fn a_kind_that_was_accepted_before_is_stripped_everywhere_once() {
    let mut played = PlayedSession::new(card(200_000));
    played.append(EntryDraft::user(MessageOrigin::Person, &format!("[{PICTURE},{DOCUMENT}]")));
    played.turn().unwrap();
    let result = format!(r#"[{{"type":"tool_result","tool_use_id":"toolu_1","content":[{PICTURE}]}}]"#);
    let call = r#"[{"type":"tool_use","id":"toolu_1","name":"Read","input":{"file_path":"a.png"}}]"#;
    played.append(EntryDraft::assistant(None, None, call));
    played.append(EntryDraft::user(MessageOrigin::Tool, &result));
    played.turn().unwrap();
    played.host.mood = ProviderMood::RefusesPictures;
    played.say("And now?");
    played.turn().unwrap();
    let [.., refused, answered] = played.host.sent.as_slice() else { panic!() };
    assert!(refused.matches("image/png").count() == 2 && !answered.contains("image/png"));
    assert!(answered.contains("application/pdf"), "only the refused kind is stripped");
    assert_eq!((strips(&played), played.host.sent.len()), (2, 4));
    played.restart();
    played.say("Go on.");
    played.turn().unwrap();
    assert_eq!((strips(&played), played.host.sent.len()), (2, 5), "the refusal is not met again");
}

#[test]
fn a_refusal_without_media_is_an_error() {
    let mut played = PlayedSession::new(card(200_000));
    played.host.mood = ProviderMood::RefusesMedia;
    played.say("Begin.");
    let error = played.turn().unwrap_err();
    assert!(matches!(&error, EngineError::Provider(why) if why.contains("image")), "{error}");
}
