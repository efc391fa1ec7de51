//! Messages survive a round trip through their line.

use pal_model::IdSource;
use proptest::prelude::*;

use super::*;

fn id(seed: u64) -> MessageId {
    IdSource::seeded(seed).next_id(Timestamp::from_milliseconds(1_800_000_000_000)).into()
}

fn any_kind() -> impl Strategy<Value = MessageKind> {
    let text = || "\\PC{0,20}|[\\x00-\\x1f\"\\\\]{0,9}".prop_map(SharedText::from);
    prop_oneof![
        Just(MessageKind::Text),
        Just(MessageKind::ShutdownRequest),
        any::<bool>().prop_map(|accepted| MessageKind::ShutdownResponse { accepted }),
        text().prop_map(|plan| MessageKind::PlanApprovalRequest { plan }),
        (any::<bool>(), proptest::option::of(text()))
            .prop_map(|(accepted, feedback)| MessageKind::PlanApproval { accepted, feedback }),
        Just(MessageKind::Unknown("weather_report".into())),
    ]
}

proptest! {
    #[test]
    fn envelope_round_trips(
        kind in any_kind(),
        summary in "\\PC{0,20}",
        text in "(?s).{0,60}",
        answers in proptest::option::of(any::<u64>().prop_map(id)),
        to in "scout|\\*|uds:/run/a \"b\"\\.sock",
    ) {
        let from = "lead".parse().unwrap();
        let to: Address = to.parse().unwrap();
        let draft = EnvelopeDraft { from, to, kind, summary: summary.into(), text: text.into(), answers };
        let message = draft.seal(id(1), Timestamp::from_milliseconds(1_800_000_000_123)).unwrap();
        prop_assert!(!message.line.contains('\n'));
        prop_assert_eq!(&Envelope::parse(&message.line).unwrap(), &message);
        prop_assert_eq!(id_of(&message.line), Some(message.id));
        for cut in (0..message.line.len()).filter(|cut| message.line.is_char_boundary(*cut)) {
            prop_assert!(Envelope::parse(&message.line[..cut]).is_err(), "cut at {}", cut);
        }
    }
}

#[test]
fn unknown_kinds_and_fields_are_preserved() {
    let id = id(1);
    let line = format!(
        r#"{{"v":7, "kind":"weather","id":"{id}","from":"a","to":"b","at":"2026-11-16T09:00:00Z","rain":1e999}}"#
    );
    let message = Envelope::parse(&line).unwrap();
    assert_eq!(message.kind, MessageKind::Unknown("weather".into()));
    assert_eq!(message.line.as_str(), line, "byte for byte");
    assert_eq!(id_of(&line), Some(id), "wherever it stands");
    let line = line.replace("weather", "shutdown_response");
    let message = Envelope::parse(&line).unwrap();
    assert_eq!(
        message.kind,
        MessageKind::Unknown("shutdown_response".into()),
        "nobody said whether it was accepted"
    );
}

#[test]
fn invalid_lines_are_refused() {
    let good =
        format!(r#"{{"id":"{}","from":"a","to":"b","at":"2026-11-16T09:00:00Z","kind":"text"}}"#, id(1));
    assert!(Envelope::parse(&good).is_ok());
    for (from, to) in [
        ("\"from\":\"a\"", "\"from\":\"../a\""),
        ("\"to\":\"b\"", "\"to\":\"b/c\""),
        ("2026-11", "2026-13"),
        ("\"kind\"", "\"sort\""),
        ("{\"id\":\"0", "{\"id\":\"x"),
    ] {
        assert!(Envelope::parse(&good.replace(from, to)).is_err(), "{to}");
    }
    assert!(Envelope::parse("[]").is_err());
    assert!(Envelope::parse(&good.replace(',', ",\n")).is_err(), "it would be several lines of a mailbox");
    assert_eq!(id_of(&format!("{good}\u{18}")), None);
    let long =
        EnvelopeDraft::text("a".parse().unwrap(), Address::Everyone, "", &"x".repeat(MESSAGE_BYTES_MAX));
    let refused = long.seal(id(1), Timestamp::default()).unwrap_err().to_string();
    assert!(refused.contains("write it to a file"), "{refused}");
}
