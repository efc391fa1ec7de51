//! Splits a JSONL source into records: one JSON object each, with its line number.
//!
//! Other lines are [`SourceLine::Bad`]. Several objects on one line, as left by a lost line end, are several
//! records. Nesting is limited, because later readers of the log may recurse.

use std::fmt;

use serde_json::value::RawValue;

use crate::raw_fields::{RawFields, pick};

/// Maximum nesting of a record; JSON readers commonly refuse more.
const DEPTH_MAX: usize = 120;

/// Defect of a source line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LineProblem {
    /// Not UTF-8 from this byte of the line on.
    NotUtf8(usize),
    /// NUL bytes, as left by an interrupted writer.
    NulBytes,
    /// JSON nested too deeply.
    TooDeep,
    /// JSON that ends early.
    Truncated,
    /// Not JSON; the parser's message.
    NotJson(String),
    /// JSON, but not an object.
    NotAnObject,
    /// Several objects; split into records unless the import is strict.
    SeveralObjects(usize),
}

impl fmt::Display for LineProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LineProblem::NotUtf8(at) => write!(formatter, "not UTF-8 from byte {at} of the line on"),
            LineProblem::NulBytes => formatter.write_str("NUL bytes in the line"),
            LineProblem::TooDeep => write!(formatter, "nested deeper than {DEPTH_MAX} levels"),
            LineProblem::Truncated => formatter.write_str("the JSON ends early (a truncated line)"),
            LineProblem::NotJson(words) => write!(formatter, "not JSON: {words}"),
            LineProblem::NotAnObject => formatter.write_str("JSON, but no object"),
            LineProblem::SeveralObjects(count) => write!(formatter, "{count} objects on one line"),
        }
    }
}

/// A record, or a bad line.
pub(crate) enum SourceLine<'a, const N: usize> {
    /// An object with the requested fields.
    Record {
        /// Raw object.
        text: &'a str,
        /// Raw fields, in the requested order.
        fields: RawFields<'a, N>,
        /// Number of objects on the line, if it had several.
        mended: Option<usize>,
    },
    /// A bad line and its defect.
    Bad(&'a [u8], LineProblem),
}

/// Calls `each` with the number and content of every non-blank line; an error of `each` ends it. Returns the
/// number of lines.
pub(crate) fn read<'a, const N: usize, E>(
    source: &'a [u8],
    names: &[&str; N],
    mut each: impl FnMut(u64, SourceLine<'a, N>) -> Result<(), E>,
) -> Result<u64, E> {
    let source = source.strip_prefix(b"\xef\xbb\xbf").unwrap_or(source);
    let mut number = 0;
    let mut from = 0;
    while from < source.len() {
        let end = memchr::memchr(b'\n', &source[from..]).map_or(source.len(), |at| from + at);
        let line = source[from..end].trim_ascii();
        from = end + 1;
        number += 1;
        if !line.is_empty() {
            read_line(number, line, names, &mut each)?;
        }
    }
    Ok(number)
}

fn read_line<'a, const N: usize, E>(
    number: u64,
    line: &'a [u8],
    names: &[&str; N],
    each: &mut impl FnMut(u64, SourceLine<'a, N>) -> Result<(), E>,
) -> Result<(), E> {
    let text = match std::str::from_utf8(line) {
        Ok(text) => text,
        Err(error) => return each(number, SourceLine::Bad(line, LineProblem::NotUtf8(error.valid_up_to()))),
    };
    if is_too_deep(line) {
        return each(number, SourceLine::Bad(line, LineProblem::TooDeep));
    }
    let error = match pick(text, names) {
        Ok(fields) => return each(number, SourceLine::Record { text, fields, mended: None }),
        Err(error) => error,
    };
    if let Some(objects) = several_objects(text, names) {
        let mended = Some(objects.len());
        return objects
            .into_iter()
            .try_for_each(|(text, fields)| each(number, SourceLine::Record { text, fields, mended }));
    }
    each(number, SourceLine::Bad(line, problem_of(text, &error)))
}

/// Objects of a line that consists of several objects.
fn several_objects<'a, const N: usize>(
    text: &'a str,
    names: &[&str; N],
) -> Option<Vec<(&'a str, RawFields<'a, N>)>> {
    let mut objects = Vec::new();
    for value in serde_json::Deserializer::from_str(text).into_iter::<&RawValue>() {
        let object = value.ok()?.get();
        objects.push((object, pick(object, names).ok()?));
    }
    (objects.len() > 1).then_some(objects)
}

fn problem_of(text: &str, error: &serde_json::Error) -> LineProblem {
    if text.as_bytes().contains(&0) {
        LineProblem::NulBytes
    } else if error.is_eof() {
        LineProblem::Truncated
    } else if serde_json::from_str::<&RawValue>(text).is_ok() {
        LineProblem::NotAnObject
    } else {
        LineProblem::NotJson(error.to_string())
    }
}

/// True if brackets outside strings nest deeper than [`DEPTH_MAX`].
pub(crate) fn is_too_deep(json: &[u8]) -> bool {
    if opening_brackets(json) <= DEPTH_MAX {
        return false;
    }
    let mut depth = 0usize;
    let mut at = 0;
    while let Some(&byte) = json.get(at) {
        at += 1;
        match byte {
            b'"' => at = end_of_string(json, at),
            b'[' | b'{' => {
                depth += 1;
                if depth > DEPTH_MAX {
                    return true;
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

/// Counts opening brackets, including those in strings; most lines have few and need no closer look. Both
/// differ in one bit only, and chunks are short enough for a byte counter, so the comparison vectorises.
fn opening_brackets(json: &[u8]) -> usize {
    let of_chunk = |chunk: &[u8]| chunk.iter().map(|byte| u8::from(*byte | 0x20 == b'{')).sum::<u8>();
    json.chunks(128).map(|chunk| usize::from(of_chunk(chunk))).sum()
}

/// Position after the quote that ends the string starting at `at`.
fn end_of_string(json: &[u8], mut at: usize) -> usize {
    while let Some(found) = json.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += found;
        if json[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    json.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &[u8], expected: &[&str]) {
        let mut seen = Vec::new();
        read(source, &["a"], |number, line| -> Result<(), ()> {
            seen.push(match line {
                SourceLine::Record { fields: [a], mended, .. } => {
                    let mark = if mended.is_some() { "+" } else { "" };
                    format!("{number}{mark}: {}", a.unwrap_or("-"))
                }
                SourceLine::Bad(_, problem) => format!("{number}! {problem}"),
            });
            Ok(())
        })
        .unwrap();
        assert_eq!(seen, expected);
    }

    #[test]
    fn lines_of_every_kind_are_read() {
        check(b"\xef\xbb\xbf{\"a\":1}\r\n\n  {\"b\":2}", &["1: 1", "3: -"]);
        check(b"{\"a\":1}{\"a\":2} {}\n", &["1+: 1", "1+: 2", "1+: -"]);
        check(b"{\"a\":1}{\"a\":", &["1! not JSON: trailing characters at line 1 column 8"]);
        check(b"{\"a\":\"x", &["1! the JSON ends early (a truncated line)"]);
        check(b"\0\0{\"a\":1}", &["1! NUL bytes in the line"]);
        check(b"{\"a\":\"\xff\"}\n{}", &["1! not UTF-8 from byte 6 of the line on", "2: -"]);
        check(b"[1]\n7", &["1! JSON, but no object", "2! JSON, but no object"]);
        check(b"nonsense", &["1! not JSON: expected ident at line 1 column 2"]);
        check("[".repeat(100_000).as_bytes(), &["1! nested deeper than 120 levels"]);
    }

    #[test]
    fn depth_ignores_strings() {
        let flat = format!(r#"{{"a":"{}\"{}"}}"#, "[".repeat(500), "{".repeat(500));
        assert!(!is_too_deep(flat.as_bytes()));
        let nested = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(!is_too_deep(nested(DEPTH_MAX).as_bytes()));
        assert!(is_too_deep(nested(DEPTH_MAX + 1).as_bytes()));
        assert!(!is_too_deep(b"\"\\"));
    }
}
