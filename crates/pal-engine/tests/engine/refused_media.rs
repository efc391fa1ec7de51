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

#[test]
fn a_picture_that_was_taken_before_is_not_blamed() {
    let mut played = PlayedSession::new(card(200_000));
    played.append(EntryDraft::user(MessageOrigin::Person, &format!("[{PICTURE}]")));
    played.turn().unwrap();
    played.host.mood = ProviderMood::RefusesPictures;
    played.say("And now?");
    let error = played.turn().unwrap_err();
    assert!(matches!(&error, EngineError::Provider(why) if why.contains("image")), "{error}");
}
