//! Searching what is not indexed yet: the lines of logs that hold the words are found by their bytes, and only these are
//! read and ranked. So the first search of long sessions need not wait until all of them are indexed.

use std::collections::VecDeque;

use memchr::memmem::Finder;
use pal_model::{Entry, Text};
use pal_search::{Index, SearchError};
use pal_store::{Line, Reader};

use crate::finding::{Found, Wanted, search_index};
use crate::places::{Source, sources};
use crate::updating::{copy_abouts, index_entry, indexed_to};
use crate::{FIELDS, Recall};

/// Bytes that are read at a time, or one line where a line is longer.
const CHUNK: u64 = 8 << 20;
/// Bytes of lines that are read and ranked, the newest of each log: words that stand everywhere are found in these.
const LINES_BYTES_MAX: usize = 4 << 20;
/// A longer beginning of a word is what its other forms share: `releasing` and `released`.
const STEM_MOST: usize = 5;
/// Most words that are looked for.
const WORDS_MAX: usize = 16;

impl Recall {
    /// Searches the logs as far as [`Recall::update`] has not come yet.
    pub fn search_unindexed(&mut self, wanted: &Wanted<'_>) -> Result<Found, SearchError> {
        let only = self.only.clone();
        self.with_index(|index, sessions| {
            let words = words(wanted.query);
            if words.is_empty() {
                return Ok(Found::default());
            }
            let mut behind = Vec::new();
            for source in sources(sessions, only.as_ref()) {
                let is_asked = wanted.session.is_none_or(|id| source.name.starts_with(&format!("{id}/")));
                if !source.is_log || !is_asked {
                    continue;
                }
                let to = indexed_to(index, &source)?;
                if to < source.bytes {
                    behind.push((source, to));
                }
            }
            for needs_all in [true, false] {
                let mut found = Index::in_memory(FIELDS)?;
                copy_abouts(index, &mut found)?;
                for (source, from) in &behind {
                    let lines = matching_lines(source, *from, &words, needs_all);
                    found.change(|changing| {
                        lines.iter().try_for_each(|line| index_entry(changing, source, line))
                    })?;
                }
                let places = search_index(&found, sessions, wanted)?;
                if !places.places.is_empty() {
                    return Ok(places);
                }
            }
            Ok(Found::default())
        })
    }
}

/// The words of a question as they are looked for: in small letters, and long ones without what may be an ending.
fn words(query: &str) -> Vec<String> {
    let words = query.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    let mut words: Vec<String> = words
        .map(|word| {
            let word = word.to_lowercase();
            let most = word.char_indices().nth(STEM_MOST).map_or(word.len(), |(at, _)| at);
            word[..most].to_owned()
        })
        .collect();
    // The longest stands in the fewest places.
    words.sort_by_key(|word| std::cmp::Reverse(word.len()));
    words.dedup();
    words.truncate(WORDS_MAX);
    words
}

/// The newest lines of a log from an offset on that hold all of the words, or any of them. What cannot be read is passed
/// over: whoever brings the index up to date tells of it.
fn matching_lines(source: &Source, from: u64, words: &[String], needs_all: bool) -> Vec<Line> {
    let finders: Vec<Finder<'_>> = words.iter().map(|word| Finder::new(word.as_bytes())).collect();
    let mut kept: VecDeque<(u64, Vec<u8>)> = VecDeque::new();
    let mut kept_bytes = 0;
    let Ok(reader) = Reader::open(&source.path) else { return Vec::new() };
    let mut at = from;
    let mut size = CHUNK;
    while at < reader.length() {
        let Ok(bytes) = reader.bytes(at, at + size) else { break };
        let is_last = at + bytes.len() as u64 >= reader.length();
        let whole = match memchr::memrchr(b'\n', &bytes) {
            Some(newline) => newline + 1,
            None if is_last => break,
            None => {
                size *= 2;
                continue;
            }
        };
        let small = bytes[..whole].to_ascii_lowercase();
        for (start, end) in hits(&small, &finders, needs_all) {
            kept_bytes += end - start;
            kept.push_back((at + start as u64, bytes[start..end].to_vec()));
            while kept_bytes > LINES_BYTES_MAX && kept.len() > 1 {
                kept_bytes -= kept.pop_front().map_or(0, |(_, line)| line.len());
            }
        }
        at += whole as u64;
        size = CHUNK;
    }
    let line = |(offset, bytes): (u64, Vec<u8>)| {
        let entry = Entry::parse(Text::from(std::str::from_utf8(&bytes).ok()?.trim_end())).ok()?;
        Some(Line { number: 0, offset, next: offset + bytes.len() as u64, entry, is_altered: false })
    };
    kept.into_iter().filter_map(line).collect()
}

/// Where lines begin and end that hold the words.
fn hits(text: &[u8], finders: &[Finder<'_>], needs_all: bool) -> Vec<(usize, usize)> {
    let (first, others) = match finders.split_first() {
        Some((first, others)) if needs_all => (std::slice::from_ref(first), others),
        _ => (finders, &[][..]),
    };
    let mut found = Vec::new();
    for finder in first {
        let mut from = 0;
        while let Some(hit) = text.get(from..).and_then(|rest| finder.find(rest)).map(|hit| from + hit) {
            let start = memchr::memrchr(b'\n', &text[..hit]).map_or(0, |newline| newline + 1);
            let end = memchr::memchr(b'\n', &text[hit..]).map_or(text.len(), |newline| hit + newline + 1);
            if others.iter().all(|other| other.find(&text[start..end]).is_some()) {
                found.push((start, end));
            }
            from = end;
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_by_all_words_or_by_any() {
        let text = b"the walrus and the heron\nonly a walrus\nnothing\na heron";
        let words = words("Herons WALRUS");
        assert_eq!(words, ["heron", "walru"]);
        let finders: Vec<Finder<'_>> = words.iter().map(|word| Finder::new(word.as_bytes())).collect();
        let lines = |needs_all| -> Vec<&str> {
            hits(text, &finders, needs_all)
                .into_iter()
                .map(|(start, end)| std::str::from_utf8(&text[start..end]).unwrap().trim_end())
                .collect()
        };
        assert_eq!(lines(true), ["the walrus and the heron"]);
        assert_eq!(lines(false), ["the walrus and the heron", "only a walrus", "a heron"]);
    }
}
