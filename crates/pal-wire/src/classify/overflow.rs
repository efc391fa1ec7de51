//! A prompt that does not fit, in the words of every provider, with the numbers in them.

use super::body::ErrorBody;
use super::words::beginning;
use crate::FailureKind;

/// No more of a message than this is searched.
const MESSAGE_BYTES_MAX: usize = 4 << 10;

/// A number in a message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Slot {
    /// Tokens of the prompt.
    Have,
    /// Tokens that the window holds.
    Window,
    /// Tokens that the answer wants; they do not fit either.
    Output,
    /// Something else.
    Other,
}
use Slot::{Have, Other, Output, Window};

/// A way to say it: words that the message has in this order, each with the number behind it, if it is wanted.
type Shape = &'static [(&'static str, Option<Slot>)];

/// Every way, those with more numbers first. Words are in lower case.
const SHAPES: [Shape; 16] = [
    // Anthropic, also behind Bedrock and Vertex.
    &[("prompt is too long", Some(Have)), (">", Some(Window))],
    &[("exceed context limit", Some(Have)), ("+", Some(Output)), (">", Some(Window))],
    // OpenAI's older words, which vLLM and others took over.
    &[
        ("maximum context length is", Some(Window)),
        ("you requested", Some(Other)),
        ("(", Some(Have)),
        ("in the messages", None),
        (",", Some(Output)),
        ("in the completion", None),
    ],
    &[("maximum context length is", Some(Window)), ("resulted in", Some(Have))],
    &[("too large:", Some(Output)), ("maximum context length is", Some(Window)), ("request has", Some(Have))],
    &[("maximum context length is", Some(Window)), ("request has", Some(Have))],
    &[("maximum context length is", Some(Window)), ("you requested", Some(Have))],
    // SGLang.
    &[
        ("maximum context length of", Some(Window)),
        ("requested a total of", Some(Other)),
        (":", Some(Have)),
        ("input", None),
        ("and", Some(Output)),
        ("completion", None),
    ],
    &[("the input (", Some(Have)), ("longer than the model's context length (", Some(Window))],
    // llama.cpp.
    &[("request (", Some(Have)), ("exceeds the available context size (", Some(Window))],
    // Google.
    &[("input token count (", Some(Have)), ("exceeds the maximum number of tokens allowed (", Some(Window))],
    // Without numbers, or with one.
    &[("maximum context length is", Some(Window))],
    &[("exceeds the available context size", None)],
    &[("input is too long", None)],
    &[("exceeds the context window", None)],
    &[("prompt_too_long", None)],
];

/// Shapes that need no number in them to be what they look like.
const BARE: [&str; 3] =
    ["prompt is too long", "exceed context limit", "input length exceeds the context length"];

/// The failure, if the error is one of these.
pub(super) fn overflow(error: &ErrorBody<'_>) -> Option<FailureKind> {
    let is_named = [&error.code, &error.kind].into_iter().flatten().any(|word| {
        matches!(word.as_ref(), "context_length_exceeded" | "exceed_context_size_error" | "prompt_too_long")
    });
    let said = error.message.as_deref().or(error.plain).unwrap_or_default();
    let said = beginning(said, MESSAGE_BYTES_MAX).to_ascii_lowercase();
    let found = SHAPES.iter().find_map(|shape| numbers(&said, shape));
    let is_said = found.is_some() || BARE.iter().any(|words| said.contains(words));
    if !is_named && !is_said {
        return None;
    }
    let (have, limit) = found.unwrap_or_default();
    Some(FailureKind::TooLong { have: error.have.or(have), limit: error.limit.or(limit) })
}

/// What the prompt has and what would fit beside the answer, if the message has this shape.
fn numbers(message: &str, shape: Shape) -> Option<(Option<u64>, Option<u64>)> {
    let (mut have, mut window, mut output) = (None, None, 0);
    let mut rest = message;
    for (words, slot) in shape {
        rest = &rest[rest.find(words)? + words.len()..];
        let Some(slot) = slot else { continue };
        let (number, behind) = next_number(rest)?;
        rest = behind;
        match slot {
            Have => have = Some(number),
            Window => window = Some(number),
            Output => output = number,
            Other => {}
        }
    }
    Some((have, window.map(|window| window.saturating_sub(output))))
}

/// The number that comes next, within a few words, and what stands behind it. Commas may group its digits.
fn next_number(text: &str) -> Option<(u64, &str)> {
    let start = text.bytes().take(48).position(|byte| byte.is_ascii_digit())?;
    let mut number: u64 = 0;
    let mut end = start;
    let bytes = text.as_bytes();
    while let Some(&byte) = bytes.get(end) {
        if byte.is_ascii_digit() {
            number = number.checked_mul(10)?.checked_add(u64::from(byte - b'0'))?;
        } else if byte != b',' || !bytes.get(end + 1).is_some_and(u8::is_ascii_digit) {
            break;
        }
        end += 1;
    }
    Some((number, &text[end..]))
}
