//! Laws: splitting the bytes makes no difference; a streamed response equals the complete one; nothing panics.

use pal_model::{ContentBlock, SharedText, array_items, object_fields};
use pal_testkit::{cases, session_files};
use pal_wire::{Dialect, ResponseEnd, ResponseEvent, classify_failure, decode_response};
use proptest::prelude::*;
use proptest::sample::Index;

use super::generated::{Answer, answer, can_be_streamed};
use super::{decode, shown};

const DIALECTS: [Dialect; 3] = [Dialect::Messages, Dialect::Responses, Dialect::Chat];

/// Splits the bytes at the cuts.
fn pieces<'a>(bytes: &'a [u8], cuts: &[Index]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    cuts.sort_unstable();
    let mut from = 0;
    let mut pieces = Vec::new();
    for cut in cuts {
        pieces.push(&bytes[from..cut]);
        from = cut;
    }
    pieces.push(&bytes[from..]);
    pieces
}

fn kept(events: &[ResponseEvent]) -> (Vec<(usize, ContentBlock)>, Option<ResponseEnd>) {
    let blocks = events.iter().filter_map(|event| match event {
        ResponseEvent::Block { index, block } => Some((*index, block.clone())),
        _ => None,
    });
    let finished = events.iter().find_map(|event| match event {
        ResponseEvent::Finished(finished) => Some(finished.clone()),
        _ => None,
    });
    (blocks.collect(), finished)
}

/// Damages bytes as networks, gateways and attackers do: dropped, doubled, changed, moved.
fn damaged(mut bytes: Vec<u8>, damages: &[(u8, Index, Index, u8)]) -> Vec<u8> {
    for (what, one, two, byte) in damages {
        if bytes.is_empty() {
            break;
        }
        let (one, two) = (one.index(bytes.len()), two.index(bytes.len()));
        let (from, to) = (one.min(two), one.max(two).min(one.min(two) + 200));
        match what % 5 {
            0 => bytes[one] = *byte,
            1 => bytes.insert(one, *byte),
            2 => drop(bytes.drain(from..to)),
            3 => {
                let copy = bytes[from..to].to_vec();
                bytes.splice(to..to, copy);
            }
            _ => bytes.truncate(one),
        }
    }
    bytes
}

fn damage() -> impl Strategy<Value = Vec<(u8, Index, Index, u8)>> {
    let byte = prop_oneof![any::<u8>(), prop::sample::select(b"\n\r{}[]\",:\\ud0".to_vec())];
    prop::collection::vec((any::<u8>(), any::<Index>(), any::<Index>(), byte), 1..4)
}

fn cuts() -> impl Strategy<Value = Vec<Index>> {
    prop::collection::vec(any::<Index>(), 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(4_000)))]

    #[test]
    fn any_split_gives_the_same_events(answer in answer(), cuts in cuts()) {
        let body = answer.streamed();
        let events = decode(Dialect::Messages, [body.as_bytes()]);
        prop_assert_eq!(&decode(Dialect::Messages, pieces(body.as_bytes(), &cuts)), &events);
        prop_assert_eq!(&decode(Dialect::Messages, body.as_bytes().chunks(1)), &events);
    }

    #[test]
    fn the_form_of_an_event_makes_no_difference(answer in answer(), damage in damage()) {
        let plain = r#"{"type":"content_block_delta","#;
        let spaced = r#"{ "type":"content_block_delta","#;
        let body = answer.streamed();
        let events = decode(Dialect::Messages, [body.as_bytes()]);
        prop_assert_eq!(&decode(Dialect::Messages, [body.replace(plain, spaced).as_bytes()]), &events);
        // Damage leads to the same kind of end, though the message may name another position.
        let body = String::from_utf8_lossy(&damaged(body.into_bytes(), &damage)).into_owned();
        let ends = |body: &str| {
            let mut events = decode(Dialect::Messages, [body.as_bytes()]);
            if let Some(ResponseEvent::Failed(failure)) = events.last_mut() {
                failure.message.clear();
            }
            events
        };
        prop_assert_eq!(ends(&body), ends(&body.replace(plain, spaced)));
    }

    #[test]
    fn streamed_response_equals_the_complete_one(answer in answer()) {
        let streamed = decode(Dialect::Messages, [answer.streamed().as_bytes()]);
        let whole = decode_response(Dialect::Messages, answer.whole().as_bytes());
        prop_assert_eq!(kept(&streamed), kept(&whole), "{}", shown(&streamed));
        prop_assert!(kept(&whole).1.is_some());
        let meant: Vec<String> = answer.blocks.iter().map(|block| block.trim().to_owned()).collect();
        let blocks: Vec<String> = kept(&whole).0.iter().map(|(_, block)| block.raw().to_string()).collect();
        prop_assert_eq!(blocks, meant);
    }

    #[test]
    fn damage_never_panics_and_splits_the_same(answer in answer(), damage in damage(), cuts in cuts(), at in 0..3usize) {
        let body = damaged(answer.streamed().into_bytes(), &damage);
        for dialect in [Dialect::Messages, DIALECTS[at]] {
            let events = decode(dialect, [body.as_slice()]);
            prop_assert_eq!(&decode(dialect, pieces(&body, &cuts)), &events);
            one_end(&events);
        }
        let whole = damaged(answer.whole().into_bytes(), &damage);
        one_end(&decode_response(DIALECTS[at], &whole));
        classify_failure(500, |_| None, &whole);
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), cuts in cuts(), status in any::<u16>()) {
        for dialect in DIALECTS {
            let events = decode(dialect, [bytes.as_slice()]);
            prop_assert_eq!(&decode(dialect, pieces(&bytes, &cuts)), &events);
            one_end(&events);
            one_end(&decode_response(dialect, &bytes));
        }
        let text = String::from_utf8_lossy(&bytes);
        classify_failure(status, |_| Some(text.as_ref()), &bytes);
    }
}

/// Checks that there is one last event, and that every block is an object on one line.
fn one_end(events: &[ResponseEvent]) {
    let is_end =
        |event: &ResponseEvent| matches!(event, ResponseEvent::Finished(_) | ResponseEvent::Failed(_));
    assert_eq!(events.iter().filter(|event| is_end(event)).count(), 1, "{events:?}");
    assert!(events.last().is_some_and(is_end));
    for (_, block) in kept(events).0 {
        assert!(object_fields(block.raw()).is_ok() && !block.raw().contains(['\n', '\r']), "{block:?}");
    }
}

#[test]
#[ignore = "needs sessions of other agents: PAL_TEST_DATA"]
fn recorded_responses_are_decoded_completely() {
    let mut seen = 0;
    for file in
        session_files().iter().filter(|file| file.components().any(|part| part.as_os_str() == "claude"))
    {
        let Ok(text) = std::fs::read_to_string(file) else { continue };
        for line in text.lines() {
            let content = object_field(line, "message").and_then(|message| {
                (object_field(message, "role")? == "\"assistant\"")
                    .then(|| object_field(message, "content"))?
            });
            let blocks = content.and_then(|content| array_items(content).ok()).unwrap_or_default();
            let blocks: Vec<String> =
                blocks.into_iter().filter(|block| can_be_streamed(block)).map(str::to_owned).collect();
            if blocks.is_empty() {
                continue;
            }
            seen += blocks.len();
            let answer = Answer { blocks, choices: vec![seen as u8, 7, 130, 41] };
            let body = answer.streamed();
            let events = decode(Dialect::Messages, [body.as_bytes()]);
            let said: Vec<SharedText> =
                kept(&events).0.iter().map(|(_, block)| block.raw().clone()).collect();
            let meant: Vec<SharedText> =
                answer.blocks.iter().map(|block| SharedText::from(block.as_str())).collect();
            assert_eq!(said, meant, "{}", file.display());
            for size in [1, 7, 4096] {
                assert_eq!(decode(Dialect::Messages, body.as_bytes().chunks(size)), events);
            }
        }
    }
    assert!(seen > 1000, "{seen} blocks seen");
}

fn object_field<'a>(json: &'a str, name: &str) -> Option<&'a str> {
    object_fields(json).ok()?.into_iter().find(|(key, _)| key == name).map(|(_, value)| value)
}
