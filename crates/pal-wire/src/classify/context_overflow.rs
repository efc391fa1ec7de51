//! Recognition of messages about a prompt that is too long, with their token counts.

use pal_model::ContextOverflow;

use super::display_text::byte_prefix;
use super::error_body::ErrorBody;
use crate::FailureKind;

/// Bytes of a message that are searched.
const MESSAGE_BYTES_MAX: usize = 4 << 10;

/// Meaning of a number in a message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NumberSlot {
    /// Prompt tokens.
    Have,
    /// Size of the context window.
    Window,
    /// Requested output tokens, which count against the window.
    Output,
    /// Maximum output tokens of the model.
    OutputLimit,
    /// Irrelevant number.
    Other,
}
use NumberSlot::{Have, Other, Output, OutputLimit, Window};

/// Pattern of a message: phrases in order, each optionally followed by a number.
type OverflowPattern = &'static [(&'static str, Option<NumberSlot>)];

/// All patterns, those with more numbers first, in lower case.
const OVERFLOW_PATTERNS: [OverflowPattern; 20] = [
    // Anthropic, also behind Bedrock and Vertex.
    &[("prompt is too long", Some(Have)), (">", Some(Window))],
    &[("exceed context limit", Some(Have)), ("+", Some(Output)), (">", Some(Window))],
    // Answers that no prompt may have: Anthropic, OpenAI, Bedrock.
    &[
        ("max_tokens", Some(Output)),
        (">", Some(OutputLimit)),
        ("maximum allowed number of output tokens", None),
    ],
    &[("too large:", Some(Output)), ("supports at most", Some(OutputLimit)), ("completion tokens", None)],
    &[("maximum tokens you requested exceeds the model limit of", Some(OutputLimit))],
    // OpenAI's older messages, adopted by vLLM and others.
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
    // Text Generation Inference.
    &[
        ("`max_new_tokens` must be <=", Some(Window)),
        ("given:", Some(Have)),
        ("`inputs` tokens and", Some(Output)),
    ],
    // llama.cpp.
    &[("request (", Some(Have)), ("exceeds the available context size (", Some(Window))],
    // Google.
    &[("input token count (", Some(Have)), ("exceeds the maximum number of tokens allowed (", Some(Window))],
    // With one number or none.
    &[("maximum context length is", Some(Window))],
    &[("exceeds the available context size", None)],
    &[("input is too long", None)],
    &[("exceeds the context window", None)],
    &[("prompt_too_long", None)],
];

/// Phrases that suffice without a number.
const OVERFLOW_PHRASES: [&str; 6] = [
    "prompt is too long",
    "exceed context limit",
    "input length exceeds the context length",
    "contextwindowexceeded",
    "exceeds model limits",
    "exceeds the model's limits",
];

/// Words of a sentence about the length of a prompt in no known wording: what is too long, in which unit, and that it is.
const PROMPT_WORDS: [&str; 6] = ["context", "prompt", "input", "inputs", "sequence", "messages"];
const LENGTH_WORDS: [&str; 5] = ["token", "tokens", "context", "length", "size"];
const EXCESS_PHRASES: [&str; 11] = [
    "exceed",
    "too long",
    "too large",
    "too many tokens",
    "longer than",
    "larger than",
    "greater than",
    "maximum",
    "not enough",
    "overflow",
    "at most",
];
/// Phrases of other refusals with the same words: of a field, of its characters, of a rate, of a body, of media.
const OTHER_PHRASES: [&str; 12] = [
    "string",
    "character",
    "schema",
    "per min",
    "per day",
    "rate limit",
    "quota",
    "byte",
    " mb",
    "image",
    "pdf",
    "array",
];
/// Words before a number that call it a limit.
const LIMIT_WORDS: [&str; 9] = [
    "max",
    "limit",
    "window",
    "context length of",
    "context size",
    "at most",
    "up to",
    "must be <=",
    "cannot exceed",
];
/// Bytes before a number that say what it is.
const LIMIT_WORDS_BYTES: usize = 32;
/// Smallest number taken for a count of prompt tokens; smaller ones index messages or name versions.
const PROMPT_TOKENS_MIN: u64 = 256;

/// Returns the failure if the error reports a prompt that is too long.
pub(super) fn overflow(error: &ErrorBody<'_>) -> Option<FailureKind> {
    let is_named = [&error.code, &error.kind].into_iter().flatten().any(|word| {
        matches!(word.as_ref(), "context_length_exceeded" | "exceed_context_size_error" | "prompt_too_long")
    });
    let message = error.message.as_deref().or(error.plain).unwrap_or_default();
    let message = byte_prefix(message, MESSAGE_BYTES_MAX).to_ascii_lowercase();
    let found = OVERFLOW_PATTERNS.iter().find_map(|pattern| match_pattern(&message, pattern));
    let has_figures = found.is_some_and(|found| found != ContextOverflow::UNKNOWN);
    let found = if has_figures { found } else { unknown_wording(&message).or(found) };
    let is_matched = found.is_some() || OVERFLOW_PHRASES.iter().any(|words| message.contains(words));
    if !is_named && !is_matched {
        return None;
    }
    let found = found.unwrap_or_default();
    Some(FailureKind::TooLong(ContextOverflow {
        prompt: error.have.or(found.prompt),
        window: error.limit.or(found.window),
        output: found.output,
        output_limit: found.output_limit,
    }))
}

/// Matches a message against a pattern; returns its figures.
fn match_pattern(message: &str, pattern: OverflowPattern) -> Option<ContextOverflow> {
    let mut found = ContextOverflow::UNKNOWN;
    let mut rest = message;
    for (words, slot) in pattern {
        rest = &rest[rest.find(words)? + words.len()..];
        let Some(slot) = slot else { continue };
        let (number, behind) = next_number(rest)?;
        rest = behind;
        match slot {
            Have => found.prompt = Some(number),
            Window => found.window = Some(number),
            Output => found.output = Some(number),
            OutputLimit => found.output_limit = Some(number),
            Other => {}
        }
    }
    Some(found)
}

/// Recognizes a message in no known wording; of two numbers the smaller one is the window.
fn unknown_wording(message: &str) -> Option<ContextOverflow> {
    let contains = |phrases: &[&str]| phrases.iter().any(|phrase| message.contains(phrase));
    let is_word_of = |list: &[&str]| {
        message
            .split(|letter: char| !letter.is_alphanumeric() && letter != '_')
            .any(|word| list.contains(&word))
    };
    if !is_word_of(&PROMPT_WORDS)
        || !is_word_of(&LENGTH_WORDS)
        || !contains(&EXCESS_PHRASES)
        || contains(&OTHER_PHRASES)
    {
        return None;
    }
    let mut numbers = Vec::new();
    let mut rest = message;
    while let Some(start) = rest.find(|letter: char| letter.is_ascii_digit()) {
        let before = message.len() - rest.len() + start;
        let Some((number, behind)) = next_number(&rest[start..]) else { break };
        if number >= PROMPT_TOKENS_MIN {
            numbers.push((number, before));
        }
        rest = behind;
    }
    Some(match numbers.as_slice() {
        [(one, _), (other, _)] if one != other => ContextOverflow {
            prompt: Some(*one.max(other)),
            window: Some(*one.min(other)),
            ..ContextOverflow::UNKNOWN
        },
        [(number, before)] => {
            let start = message.floor_char_boundary(before.saturating_sub(LIMIT_WORDS_BYTES));
            let is_limit = LIMIT_WORDS.iter().any(|word| message[start..*before].contains(word));
            let number = Some(*number);
            match is_limit {
                true => ContextOverflow { window: number, ..ContextOverflow::UNKNOWN },
                false => ContextOverflow { prompt: number, ..ContextOverflow::UNKNOWN },
            }
        }
        _ => ContextOverflow::UNKNOWN,
    })
}

/// Returns the next number within a few words, and the text after it. Commas may group its digits.
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
