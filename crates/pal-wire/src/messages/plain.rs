//! Deltas in the spelling that nearly all of them have, read by comparing instead of parsing.
//!
//! Refuses everything that it is not sure of; such events are parsed as any other. Whatever is read here means the
//! same when it is parsed.

use std::borrow::Cow;

use pal_model::unescape;

/// What a block grows in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grows {
    /// Words for the reader.
    Text,
    /// Thinking.
    Thinking,
    /// The input of a call.
    Input,
}

/// A delta of one string.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PlainDelta<'a> {
    pub(crate) index: usize,
    pub(crate) grows: Grows,
    /// The string as it stands, without its quotation marks.
    pub(crate) inside: &'a str,
    /// Its characters.
    pub(crate) shown: Cow<'a, str>,
}

/// What stands before the string, behind the index.
const KINDS: [(&str, Grows); 3] = [
    (r#","delta":{"type":"text_delta","text":"#, Grows::Text),
    (r#","delta":{"type":"input_json_delta","partial_json":"#, Grows::Input),
    (r#","delta":{"type":"thinking_delta","thinking":"#, Grows::Thinking),
];

impl PlainDelta<'_> {
    /// Reads the data of an event, if it is spelled in this way.
    pub(crate) fn read(data: &str) -> Option<PlainDelta<'_>> {
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
        Some(PlainDelta { index, grows, inside, shown: unescape(literal)? })
    }
}

/// Whether there are characters that must not stand in a string. Looks at all of them, without a branch for each.
fn has_control(bytes: &[u8]) -> bool {
    bytes.chunks(32).any(|chunk| chunk.iter().fold(false, |found, byte| found | (*byte < 0x20)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_certain_is_read() {
        let start = r#"{"type":"content_block_delta","index":"#;
        let text = |rest: &str| format!(r#"{start}3,"delta":{{"type":"text_delta","text":{rest}"#);
        let read = |data: &str| {
            PlainDelta::read(data).map(|delta| (delta.index, delta.grows, delta.shown.into_owned()))
        };
        assert_eq!(read(&text(r#""a\n\u00e9"}}"#)), Some((3, Grows::Text, String::from("a\né"))));
        assert_eq!(read(&text(r#""a"}     }"#)), Some((3, Grows::Text, String::from("a"))));
        let input = format!(r#"{start}0,"delta":{{"type":"input_json_delta","partial_json":"{{\"a\":"}}}}"#);
        assert_eq!(read(&input), Some((0, Grows::Input, String::from("{\"a\":"))));
        let thinking = format!(r#"{start}12,"delta":{{"type":"thinking_delta","thinking":""}}}}"#);
        assert_eq!(read(&thinking), Some((12, Grows::Thinking, String::new())));
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
