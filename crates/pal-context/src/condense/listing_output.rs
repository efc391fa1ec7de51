//! Listings: files, directories and search hits. Each group keeps its first entries, as far as there is room.

use super::gap_marker::LineReport;
use super::line_selection::{LineRank, RankedLine};
use super::severity;

/// Kind of a listing line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ListingLine<'a> {
    /// Entry in the named directory, or hit in the named file.
    In(&'a str),
    /// Line of a drawn tree, with the width before the name.
    Branch(usize),
    /// Entry in the directory or file named last.
    Here,
    /// Separator between parts of one file.
    Break,
    /// Heading: name of a directory or file whose entries follow.
    Head,
    /// Any other line.
    Other,
}

/// Ranks the lines of a listing; `None` if the text is no listing.
pub(super) fn lines<'a>(texts: &[&'a str]) -> Option<Vec<RankedLine<'a>>> {
    let entries: Vec<ListingLine<'a>> = texts.iter().map(|text| entry(text)).collect();
    let said = texts.iter().filter(|text| !text.trim().is_empty()).count();
    let listed = entries.iter().filter(|entry| **entry != ListingLine::Other).count();
    if said < 20 || listed * 100 < said * 85 {
        return None;
    }
    let (mut group, mut in_group) = (ListingLine::Other, 0);
    let rank = |(text, entry): (&&'a str, &ListingLine<'a>)| {
        let rank = match entry {
            ListingLine::Head => {
                (group, in_group) = (ListingLine::Other, 0);
                LineRank::HEAD
            }
            ListingLine::Break => LineRank::near(step(in_group)),
            ListingLine::Other if text.trim().is_empty() => LineRank::PLAIN,
            ListingLine::Other => {
                let report = severity::classify_line(text);
                let rank = if report == LineReport::Nothing { LineRank::SUMMARY } else { LineRank::ERROR };
                return RankedLine { report, ..RankedLine::new(text, rank) };
            }
            _ => {
                in_group = if *entry == group { in_group + 1 } else { 0 };
                group = *entry;
                LineRank::near(step(in_group))
            }
        };
        RankedLine::new(text, rank)
    };
    Some(texts.iter().zip(&entries).map(rank).collect())
}

/// Rank step of an entry in its group: the first eight have their own, later steps get wider, so that large
/// groups shrink together.
fn step(in_group: usize) -> usize {
    match in_group {
        0..8 => in_group,
        _ => {
            let power = in_group.ilog2();
            2 + 2 * power as usize + ((in_group >> (power - 1)) & 1)
        }
    }
}

fn entry(text: &str) -> ListingLine<'_> {
    let line = text.trim_end();
    if line.is_empty() {
        return ListingLine::Other;
    }
    if is_long_entry(line) || line.strip_prefix("total ").is_some_and(|rest| rest.parse::<u64>().is_ok()) {
        return ListingLine::Here;
    }
    if let Some(width) = branch(line) {
        return ListingLine::Branch(width);
    }
    if let Some(hit) = hit(line) {
        return hit;
    }
    path(line)
}

/// Width of the drawn part of a tree line: `│   ├── name`, `|   |-- name`.
fn branch(line: &str) -> Option<usize> {
    if line.is_ascii() {
        memchr::memchr2(b'|', b'`', line.as_bytes())?;
        return line.find("-- ").filter(|at| line[..*at].ends_with(['|', '`']));
    }
    line.find("── ")
}

/// `-rw-r--r--  1 me me 12 Nov 16 name`.
fn is_long_entry(line: &str) -> bool {
    let bytes = line.as_bytes();
    bytes.len() > 12
        && b"-dlbcps".contains(&bytes[0])
        && bytes[1..10].iter().all(|byte| b"rwxsStT-".contains(byte))
        && b" +@.".contains(&bytes[10])
}

/// `src/a.rs:12:text`, `src/a.rs-12-text`, `src/a.rs:text`, and `12:text` under the name of a file.
fn hit(line: &str) -> Option<ListingLine<'_>> {
    let bytes = line.as_bytes();
    let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits > 0 && digits < 8 && matches!(bytes.get(digits), Some(b':' | b'-')) {
        return Some(ListingLine::Here);
    }
    if line == "--" {
        return Some(ListingLine::Break);
    }
    if let Some(end) = memchr::memchr_iter(b':', bytes).find(|at| *at > 1)
        && is_path(&line[..end])
        && bytes.get(end + 1).is_some_and(|byte| *byte != b'/')
    {
        return Some(ListingLine::In(&line[..end]));
    }
    // A line of context: the number stands between dashes.
    memchr::memchr_iter(b'-', bytes).take(12).find_map(|at| {
        let number = bytes[at + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let is_context = number > 0 && bytes.get(at + 1 + number) == Some(&b'-') && is_path(&line[..at]);
        is_context.then_some(ListingLine::In(&line[..at]))
    })
}

fn path(line: &str) -> ListingLine<'_> {
    if let Some(folder) = line.strip_suffix(':')
        && (is_path(folder) || folder == ".")
    {
        return ListingLine::Head;
    }
    if !is_path(line) {
        return ListingLine::Other;
    }
    let trimmed = line.trim_end_matches('/');
    ListingLine::In(trimmed.rfind('/').map_or("", |end| &trimmed[..end]))
}

/// Returns true if a text can be a file name: no white space or quotes, and a slash or an extension.
fn is_path(text: &str) -> bool {
    let bytes = text.as_bytes();
    let has_name = memchr::memchr2(b'/', b'\\', bytes).is_some()
        || text.rsplit_once('.').is_some_and(|(stem, end)| {
            !stem.is_empty()
                && (1..=10).contains(&end.len())
                && end.bytes().all(|byte| byte.is_ascii_alphanumeric())
        });
    (2..400).contains(&bytes.len())
        && has_name
        && !bytes.iter().any(|byte| byte.is_ascii_whitespace() || b"\"'`<>{}()=;,*|".contains(byte))
        && !text.contains("://")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_listings() {
        let table = [
            ("src/a/b.rs", ListingLine::In("src/a")),
            ("./Cargo.toml", ListingLine::In(".")),
            ("README.md", ListingLine::In("")),
            ("drwxr-xr-x  2 me me 4096 Nov 16 09:00 src", ListingLine::Here),
            ("total 12", ListingLine::Here),
            ("./src:", ListingLine::Head),
            ("├── lib.rs", ListingLine::Branch(3)),
            ("│   └── a.rs", ListingLine::Branch(9)),
            ("src/a.rs:12:    let x = 1;", ListingLine::In("src/a.rs")),
            ("src/a.rs-13-    let y = 1;", ListingLine::In("src/a.rs")),
            ("src/a.rs:let x", ListingLine::In("src/a.rs")),
            ("12:let x", ListingLine::Here),
            ("some words here", ListingLine::Other),
            ("https://a.b/c", ListingLine::Other),
            ("", ListingLine::Other),
        ];
        for (text, expected) in table {
            assert_eq!(entry(text), expected, "{text}");
        }
    }
}
