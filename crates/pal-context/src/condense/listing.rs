//! Listings: files, folders and hits of a search. Every folder or file that has entries keeps its first ones, as far
//! as there is room.

use super::alarm;
use super::assemble::{Line, Rank};
use super::mark::Says;

/// What a line of a listing is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Entry<'a> {
    /// Something in a folder, or a hit in a file, whose name this is.
    In(&'a str),
    /// A line of a drawn tree, with the width of what stands before the name.
    Branch(usize),
    /// Something in the folder or file that was named last.
    Here,
    /// Parts what belongs to different places of one file.
    Break,
    /// The name of a folder or file whose entries follow.
    Head,
    /// Something else.
    Other,
}

/// The lines of a listing, ranked; none if the text is no listing.
pub(super) fn lines<'a>(texts: &[&'a str]) -> Option<Vec<Line<'a>>> {
    let entries: Vec<Entry<'a>> = texts.iter().map(|text| entry(text)).collect();
    let said = texts.iter().filter(|text| !text.trim().is_empty()).count();
    let listed = entries.iter().filter(|entry| **entry != Entry::Other).count();
    if said < 20 || listed * 100 < said * 85 {
        return None;
    }
    let (mut group, mut in_group) = (Entry::Other, 0);
    let rank = |(text, entry): (&&'a str, &Entry<'a>)| {
        let rank = match entry {
            Entry::Head => {
                (group, in_group) = (Entry::Other, 0);
                Rank::HEAD
            }
            Entry::Break => Rank::near(step(in_group)),
            Entry::Other if text.trim().is_empty() => Rank::PLAIN,
            Entry::Other => {
                let says = alarm::says(text);
                let rank = if says == Says::Nothing { Rank::SUMMARY } else { Rank::ERROR };
                return Line { says, ..Line::new(text, rank) };
            }
            _ => {
                in_group = if *entry == group { in_group + 1 } else { 0 };
                group = *entry;
                Rank::near(step(in_group))
            }
        };
        Line::new(text, rank)
    };
    Some(texts.iter().zip(&entries).map(rank).collect())
}

/// The step of an entry in its group: the first eight have their own, later steps are ever wider, so that large
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

fn entry(text: &str) -> Entry<'_> {
    let line = text.trim_end();
    if line.is_empty() {
        return Entry::Other;
    }
    if is_long_entry(line) || line.strip_prefix("total ").is_some_and(|rest| rest.parse::<u64>().is_ok()) {
        return Entry::Here;
    }
    if let Some(width) = branch(line) {
        return Entry::Branch(width);
    }
    if let Some(hit) = hit(line) {
        return hit;
    }
    path(line)
}

/// Where the drawn part of a tree's line ends: `│   ├── name`, `|   |-- name`.
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
fn hit(line: &str) -> Option<Entry<'_>> {
    let bytes = line.as_bytes();
    let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits > 0 && digits < 8 && matches!(bytes.get(digits), Some(b':' | b'-')) {
        return Some(Entry::Here);
    }
    if line == "--" {
        return Some(Entry::Break);
    }
    if let Some(end) = memchr::memchr_iter(b':', bytes).find(|at| *at > 1)
        && is_path(&line[..end])
        && bytes.get(end + 1).is_some_and(|byte| *byte != b'/')
    {
        return Some(Entry::In(&line[..end]));
    }
    // A line of context: the number stands between dashes.
    memchr::memchr_iter(b'-', bytes).take(12).find_map(|at| {
        let number = bytes[at + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let is_context = number > 0 && bytes.get(at + 1 + number) == Some(&b'-') && is_path(&line[..at]);
        is_context.then_some(Entry::In(&line[..at]))
    })
}

fn path(line: &str) -> Entry<'_> {
    if let Some(folder) = line.strip_suffix(':')
        && (is_path(folder) || folder == ".")
    {
        return Entry::Head;
    }
    if !is_path(line) {
        return Entry::Other;
    }
    let trimmed = line.trim_end_matches('/');
    Entry::In(trimmed.rfind('/').map_or("", |end| &trimmed[..end]))
}

/// Whether a text can be the name of a file: no white space or quotes, and a slash or an ending.
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
            ("src/a/b.rs", Entry::In("src/a")),
            ("./Cargo.toml", Entry::In(".")),
            ("README.md", Entry::In("")),
            ("drwxr-xr-x  2 me me 4096 Nov 16 09:00 src", Entry::Here),
            ("total 12", Entry::Here),
            ("./src:", Entry::Head),
            ("├── lib.rs", Entry::Branch(3)),
            ("│   └── a.rs", Entry::Branch(9)),
            ("src/a.rs:12:    let x = 1;", Entry::In("src/a.rs")),
            ("src/a.rs-13-    let y = 1;", Entry::In("src/a.rs")),
            ("src/a.rs:let x", Entry::In("src/a.rs")),
            ("12:let x", Entry::Here),
            ("some words here", Entry::Other),
            ("https://a.b/c", Entry::Other),
            ("", Entry::Other),
        ];
        for (text, expected) in table {
            assert_eq!(entry(text), expected, "{text}");
        }
    }
}
