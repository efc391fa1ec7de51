//! Any bytes as an answer, in any pieces, of every dialect: never a panic, one end, the same events whatever the
//! pieces, little memory, and blocks that a log can hold.
//!
//! The first two bytes choose how the rest is cut.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pal_fuzz::{Meter, peak_of};
use pal_model::object_fields;
use pal_wire::{Dialect, ResponseDecoder, ResponseEvent, classify_failure, decode_response};

#[global_allocator]
static METER: Meter = Meter;

fuzz_target!(|bytes: &[u8]| {
    let Some(([first, second], body)) = bytes.split_first_chunk() else { return };
    for dialect in [Dialect::Messages, Dialect::Responses, Dialect::Chat] {
        let (events, peak) = peak_of(|| decode(dialect, [body]));
        assert!(peak <= (64 << 10) + 256 * body.len(), "{peak} bytes held for a body of {}", body.len());
        check(&events);
        assert_eq!(decode(dialect, pieces(body, *first, *second)), events, "{dialect:?} in pieces");
        assert_eq!(decode(dialect, body.chunks(1)), events, "{dialect:?} byte by byte");
        check(&decode_response(dialect, body));
    }
    let text = String::from_utf8_lossy(body);
    let failure = classify_failure(u16::from_be_bytes([*first, *second]), |_| Some(text.as_ref()), body);
    assert!(!failure.message.is_empty() && failure.message.chars().count() <= 700);
});

/// Pieces of changing length, short ones among them.
fn pieces(body: &[u8], first: u8, second: u8) -> Vec<&[u8]> {
    let mut pieces = Vec::new();
    let mut rest = body;
    let mut state = u32::from(first) << 8 | u32::from(second) | 1;
    while !rest.is_empty() {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let length = (1 + (state >> 16) as usize % (1 + usize::from(first))).min(rest.len());
        let (piece, behind) = rest.split_at(length);
        pieces.push(piece);
        rest = behind;
    }
    pieces
}

fn decode<'a>(dialect: Dialect, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<ResponseEvent> {
    let mut decoder = ResponseDecoder::new(dialect);
    let mut events = Vec::new();
    for piece in pieces {
        decoder.push(piece, &mut events);
    }
    decoder.finish(&mut events);
    events
}

fn check(events: &[ResponseEvent]) {
    let is_end =
        |event: &ResponseEvent| matches!(event, ResponseEvent::Finished(_) | ResponseEvent::Failed(_));
    assert_eq!(events.iter().filter(|event| is_end(event)).count(), 1, "{events:?}");
    assert!(events.last().is_some_and(is_end), "{events:?}");
    for event in events {
        match event {
            ResponseEvent::Block { block, .. } => {
                assert!(object_fields(block.raw()).is_ok(), "no object: {block:?}");
                assert!(!block.raw().contains(['\n', '\r']), "more than one line: {block:?}");
            }
            ResponseEvent::Finished(finished) => {
                assert!(object_fields(&finished.extras).is_ok(), "no object: {}", finished.extras);
                assert!(!finished.extras.contains(['\n', '\r']), "{}", finished.extras);
            }
            _ => {}
        }
    }
}
