//! Recovers entries from a line that lost a line end.

use memchr::memmem;
use pal_model::SharedText;

use crate::located_entry::{LocatedEntry, read_entry};

/// Start of every line of a log.
const BEGINNING: &[u8] = b"{\"v\":";
/// Failed attempts before the search is given up, to bound the time per line.
const FAILURES_MAX: usize = 1_000;

/// Finds whole entries in the bytes of an unreadable line that starts at `offset`.
pub(crate) fn salvage(offset: u64, line: &[u8]) -> Vec<LocatedEntry> {
    let mut found = Vec::new();
    let mut failures = 0;
    let mut from = 0;
    while failures < FAILURES_MAX
        && let Some(rest) = line.get(from..)
        && let Some(next) = memmem::find(rest, BEGINNING)
    {
        let start = from + next;
        match entry_at(line, start, offset) {
            Some((located, bytes)) => {
                found.push(located);
                from = start + bytes;
            }
            None => {
                failures += 1;
                from = start + BEGINNING.len();
            }
        }
    }
    found
}

fn entry_at(line: &[u8], start: usize, offset: u64) -> Option<(LocatedEntry, usize)> {
    // A value inside another object is not an entry.
    if start > 0 && matches!(line[start - 1], b':' | b',' | b'[' | b' ') {
        return None;
    }
    let bytes = object_length(&line[start..])?;
    let text = std::str::from_utf8(&line[start..start + bytes]).ok()?;
    let located = read_entry(offset + start as u64, &SharedText::from(text)).ok()?;
    (!located.is_altered).then_some((LocatedEntry { is_salvaged: true, ..located }, bytes))
}

/// Length of the JSON object at the start of `bytes`, by its braces and strings.
fn object_length(bytes: &[u8]) -> Option<usize> {
    let mut depth = 0_usize;
    let mut in_string = false;
    let mut is_escaped = false;
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            b'{' if !in_string => depth += 1,
            b'}' if !in_string => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(number: u32) -> String {
        format!(
            r#"{{"v":1,"id":"01890000-0000-7000-8000-{number:012}","parent":null,"at":"2026-11-15T09:00:00.000Z","kind":"user","content":"a }} and {{"}}"#
        )
    }

    #[test]
    fn entries_around_a_lost_line_end_are_recovered() {
        let (one, two) = (entry(1), entry(2));
        let line = format!("{one}\u{b}{two}");
        let found = salvage(100, line.as_bytes());
        let places: Vec<u64> = found.iter().map(|located| located.offset).collect();
        assert_eq!(places, [100, 101 + one.len() as u64]);
        assert_eq!(salvage(0, format!("\0\0{two}").as_bytes()).len(), 1, "behind what is no text");
        assert_eq!(salvage(0, [b"\xff", one.as_bytes()].concat().as_slice()).len(), 1);
        assert!(salvage(0, format!(r#"{{"v":1,"raw":{one},"#).as_bytes()).is_empty(), "a value is no entry");
        assert!(salvage(0, "{\"v\":".repeat(5_000).as_bytes()).is_empty());
    }
}
