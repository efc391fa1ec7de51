//! Searching what is not indexed yet: the lines of logs that hold the words are found by their bytes, and only these are
//! read and ranked. So the first search of long sessions need not wait until all of them are indexed.

use std::collections::VecDeque;
use std::ops::Range;

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
const LINES_BYTES_MAX: u64 = 4 << 20;
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
                let matches: Vec<_> = behind
                    .iter()
                    .map(|(source, from)| (source, matching_lines(source, *from, &words, needs_all)))
                    .collect();
                // Lines that hold the very words leave none to those that hold others which begin like them.
                for is_exact in [true, false] {
                    let mut found = Index::in_memory(FIELDS)?;
                    copy_abouts(index, &mut found)?;
                    for (source, matching) in &matches {
                        let lines = if is_exact { &matching.exact } else { &matching.similar };
                        let lines = read_lines(source, lines);
                        found.change(|changing| {
                            lines.iter().try_for_each(|line| index_entry(changing, source, line))
                        })?;
                    }
                    let places = search_index(&found, sessions, wanted)?;
                    let is_found = if is_exact { !places.is_loose } else { true };
                    if is_found && !places.places.is_empty() {
                        return Ok(places);
                    }
                }
            }
            Ok(Found::default())
        })
    }
}

/// A word of a question as it is looked for, in small letters.
struct WordFinder {
    /// All of it.
    whole: Finder<'static>,
    /// Without what may be an ending.
    stem: Finder<'static>,
}

/// Where the newest lines of a log begin and end that hold words.
#[derive(Default)]
struct Matching {
    /// Those that hold all words as they are.
    exact: LineRanges,
    /// Others, that hold words which begin alike.
    similar: LineRanges,
}

/// Ranges of lines, of which the first ones are dropped when they are too many bytes.
#[derive(Default)]
struct LineRanges {
    ranges: VecDeque<Range<u64>>,
    bytes: u64,
}

impl LineRanges {
    fn push(&mut self, range: Range<u64>) {
        self.bytes += range.end - range.start;
        self.ranges.push_back(range);
        while self.bytes > LINES_BYTES_MAX && self.ranges.len() > 1 {
            self.bytes -= self.ranges.pop_front().map_or(0, |range| range.end - range.start);
        }
    }
}

/// The words of a question as they are looked for, the longest first: it stands in the fewest places.
fn words(query: &str) -> Vec<WordFinder> {
    let words = query.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    let mut words: Vec<String> = words.map(str::to_lowercase).collect();
    words.sort_by_key(|word| std::cmp::Reverse(word.len()));
    words.dedup();
    words.truncate(WORDS_MAX);
    words.iter().map(|word| WordFinder::new(word)).collect()
}

impl WordFinder {
    fn new(word: &str) -> WordFinder {
        let most = word.char_indices().nth(STEM_MOST).map_or(word.len(), |(at, _)| at);
        let finder = |text: &str| Finder::new(text.as_bytes()).into_owned();
        WordFinder { whole: finder(word), stem: finder(&word[..most]) }
    }

    /// Whether a text holds the word as it is, and not only as a part of others.
    fn stands_in(&self, text: &[u8]) -> bool {
        let is_letter =
            |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte >= 0x80);
        let length = self.whole.needle().len();
        self.whole.find_iter(text).any(|at| {
            let before = at.checked_sub(1).and_then(|before| text.get(before));
            !is_letter(before) && !is_letter(text.get(at + length))
        })
    }
}

/// The newest lines of a log from an offset on that hold all of the words, or any of them. What cannot be read is passed
/// over: whoever brings the index up to date tells of it.
fn matching_lines(source: &Source, from: u64, words: &[WordFinder], needs_all: bool) -> Matching {
    let mut matching = Matching::default();
    let Ok(reader) = Reader::open(&source.path) else { return matching };
    let mut at = from;
    let mut size = CHUNK;
    while at < reader.length() {
        let Ok(mut bytes) = reader.bytes(at, at + size) else { break };
        let is_last = at + bytes.len() as u64 >= reader.length();
        let whole = match memchr::memrchr(b'\n', &bytes) {
            Some(newline) => newline + 1,
            None if is_last => break,
            None => {
                size *= 2;
                continue;
            }
        };
        bytes.truncate(whole);
        bytes.make_ascii_lowercase();
        for line in hits(&bytes, words, needs_all) {
            let text = &bytes[line.clone()];
            let is_exact = needs_all && words.iter().all(|word| word.stands_in(text));
            let range = at + line.start as u64..at + line.end as u64;
            if is_exact { matching.exact.push(range) } else { matching.similar.push(range) }
        }
        at += whole as u64;
        size = CHUNK;
    }
    matching
}

/// The entries of lines.
fn read_lines(source: &Source, lines: &LineRanges) -> Vec<Line> {
    let Ok(reader) = Reader::open(&source.path) else { return Vec::new() };
    let line = |range: &Range<u64>| {
        let bytes = reader.bytes(range.start, range.end).ok()?;
        let entry = Entry::parse(Text::from(std::str::from_utf8(&bytes).ok()?.trim_end())).ok()?;
        Some(Line { number: 0, offset: range.start, next: range.end, entry, is_altered: false })
    };
    lines.ranges.iter().filter_map(line).collect()
}

/// Where lines begin and end that hold the words, or others that begin alike.
fn hits(text: &[u8], words: &[WordFinder], needs_all: bool) -> Vec<Range<usize>> {
    let (first, others) = match words.split_first() {
        Some((first, others)) if needs_all => (std::slice::from_ref(first), others),
        _ => (words, &[][..]),
    };
    let mut found = Vec::new();
    for word in first {
        let mut from = 0;
        while let Some(hit) = text.get(from..).and_then(|rest| word.stem.find(rest)).map(|hit| from + hit) {
            let start = memchr::memrchr(b'\n', &text[..hit]).map_or(0, |newline| newline + 1);
            let end = memchr::memchr(b'\n', &text[hit..]).map_or(text.len(), |newline| hit + newline + 1);
            if others.iter().all(|other| other.stem.find(&text[start..end]).is_some()) {
                found.push(start..end);
            }
            from = end;
        }
    }
    found.sort_unstable_by_key(|line| line.start);
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
        let looked_for = |finder: &Finder<'_>| String::from_utf8(finder.needle().to_vec()).unwrap();
        let stems: Vec<String> = words.iter().map(|word| looked_for(&word.stem)).collect();
        assert_eq!(stems, ["heron", "walru"]);
        assert_eq!(looked_for(&words[0].whole), "herons");
        let lines = |needs_all| -> Vec<&str> {
            hits(text, &words, needs_all)
                .into_iter()
                .map(|line| std::str::from_utf8(&text[line]).unwrap().trim_end())
                .collect()
        };
        assert_eq!(lines(true), ["the walrus and the heron"]);
        assert_eq!(lines(false), ["the walrus and the heron", "only a walrus", "a heron"]);
    }
}
