//! Fast path for deltas in their usual byte form, matched without JSON parsing.
//!
//! Any other form is left to the JSON parser, which gives the same result.

use std::borrow::Cow;

use pal_model::unescape;

/// Field that a delta extends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeltaTarget {
    Text,
    Thinking,
    Input,
}

/// A delta of one string.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StringDelta<'a> {
    pub(crate) index: usize,
    pub(crate) grows: DeltaTarget,
    /// Escaped text without quotation marks.
    pub(crate) inside: &'a str,
    /// Unescaped text.
    pub(crate) shown: Cow<'a, str>,
}

/// Bytes between the index and the string.
const KINDS: [(&str, DeltaTarget); 3] = [
    (r#","delta":{"type":"text_delta","text":"#, DeltaTarget::Text),
    (r#","delta":{"type":"input_json_delta","partial_json":"#, DeltaTarget::Input),
    (r#","delta":{"type":"thinking_delta","thinking":"#, DeltaTarget::Thinking),
];

impl StringDelta<'_> {
    /// Reads the data of an event; none if it has another form.
    pub(crate) fn read(data: &str) -> Option<StringDelta<'_>> {
        let rest = data.strip_prefix(r#"{"type":"content_block_delta","index":"#)?;
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (index, rest) = rest.split_at(digits);
        // JSON has no leading zeros.
        let index = if index.len() > 1 && index.starts_with('0') { None } else { index.parse().ok() }?;
        let (literal, grows) =
            KINDS.iter().find_map(|(kind, grows)| Some((rest.strip_prefix(kind)?, *grows)))?;
        // The provider pads events with spaces before the last brace.
        let literal = literal.strip_suffix('}')?.trim_end_matches(' ').strip_suffix('}')?;
        if has_control(literal.as_bytes()) {
            return None;
        }
        let inside = literal.strip_prefix('"')?.strip_suffix('"')?;
        Some(StringDelta { index, grows, inside, shown: unescape(literal)? })
    }
}

/// Returns true if there are control characters, which are invalid in a string. Branch-free per chunk.
fn has_control(bytes: &[u8]) -> bool {
    bytes.chunks(32).any(|chunk| chunk.iter().fold(false, |found, byte| found | (*byte < 0x20)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_usual_form_is_read() {
        let start = r#"{"type":"content_block_delta","index":"#;
        let text = |rest: &str| format!(r#"{start}3,"delta":{{"type":"text_delta","text":{rest}"#);
        let read = |data: &str| {
            StringDelta::read(data).map(|delta| (delta.index, delta.grows, delta.shown.into_owned()))
        };
        assert_eq!(read(&text(r#""a\n\u00e9"}}"#)), Some((3, DeltaTarget::Text, String::from("a\né"))));
        assert_eq!(read(&text(r#""a"}     }"#)), Some((3, DeltaTarget::Text, String::from("a"))));
        let input = format!(r#"{start}0,"delta":{{"type":"input_json_delta","partial_json":"{{\"a\":"}}}}"#);
        assert_eq!(read(&input), Some((0, DeltaTarget::Input, String::from("{\"a\":"))));
        let thinking = format!(r#"{start}12,"delta":{{"type":"thinking_delta","thinking":""}}}}"#);
        assert_eq!(read(&thinking), Some((12, DeltaTarget::Thinking, String::new())));
        for rest in [
            "\"a\u{1}\"}}",
            r#""a","x":1}}"#,
            r#""a"},"x":1}"#,
            r#""a\"}}"#,
            r#""a\x"}}"#,
            r#""a"b"}}"#,
            r#"""}"#,
            r#""}}"#,
            "\"a\"\n}}",
            "7}}",
            "null}}",
        ] {
            assert_eq!(read(&text(rest)), None, "{rest}");
        }
        for index in ["", "01", "-1", "1.0", "99999999999999999999999"] {
            let data = format!(r#"{start}{index},"delta":{{"type":"text_delta","text":"a"}}}}"#);
            assert_eq!(read(&data), None, "{index}");
        }
    }
}
