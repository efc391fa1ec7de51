//! Searches what is not indexed yet: scans log bytes for the words and ranks only matching lines. The first
//! search of long sessions therefore need not wait for the index.

use std::collections::VecDeque;
use std::ops::Range;

use memchr::memmem::Finder;
use pal_model::{LogEntry, SharedText};
use pal_search::{SearchError, WindowIndex};
use pal_store::{LogLine, LogReader};

use crate::Recall;
use crate::index_update::{add_texts, copy_descriptions, entry_texts, indexed_to};
use crate::passage_search::{RecallQuery, RecallResults, search_index};
use crate::session_files::{IndexedFile, sources};
use crate::text_chunks::CHUNK;

/// Bytes read at a time, or one longer line.
const READ_BYTES: u64 = 8 << 20;
/// Maximum bytes of matching lines per log, newest first.
const LINES_BYTES_MAX: u64 = 4 << 20;
/// Maximum characters of a stem that other forms of a word share: `releasing` and `released`.
const STEM_CHARS_MAX: usize = 5;
/// Maximum number of words searched for.
const WORDS_MAX: usize = 16;

impl Recall {
    /// Searches the parts of logs that [`Recall::update`] has not reached yet.
    pub fn search_unindexed(&mut self, wanted: &RecallQuery<'_>) -> Result<RecallResults, SearchError> {
        let only = self.filter.clone();
        self.with_index(|index, sessions| {
            let words = word_finders(wanted.query);
            if words.is_empty() {
                return Ok(RecallResults::default());
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
            let bytes: u64 = behind.iter().map(|(source, from)| source.bytes - from).sum();
            // Only lines with the words are indexed, but their rarity is that in all text.
            let population = usize::try_from(bytes).unwrap_or(usize::MAX) / CHUNK;
            for needs_all in [true, false] {
                let matches: Vec<_> = behind
                    .iter()
                    .map(|(source, from)| (source, matching_lines(source, *from, &words, needs_all)))
                    .collect();
                // Search exact matches first, so that similar words do not crowd them out.
                for is_exact in [true, false] {
                    let mut found = WindowIndex::in_memory()?;
                    copy_descriptions(index, &mut found)?;
                    for (source, matching) in &matches {
                        let lines = if is_exact { &matching.exact } else { &matching.similar };
                        let texts: Vec<_> = read_lines(source, lines).iter().flat_map(entry_texts).collect();
                        found.change(|transaction| add_texts(transaction, source, &texts))?;
                    }
                    let places = search_index(&found, sessions, wanted, population)?;
                    let is_found = if is_exact { !places.is_partial } else { true };
                    if is_found && !places.passages.is_empty() {
                        return Ok(places);
                    }
                }
            }
            Ok(RecallResults::default())
        })
    }
}

/// Byte searchers for a lower-case query word.
struct WordFinder {
    /// Whole word.
    whole: Finder<'static>,
    /// Word without a possible ending.
    stem: Finder<'static>,
}

/// Byte ranges of the newest matching lines of a log.
#[derive(Default)]
struct MatchedLines {
    /// Lines that contain all words exactly.
    exact: LineRanges,
    /// Lines that contain words of the same stem.
    similar: LineRanges,
}

/// Line ranges; drops the oldest beyond [`LINES_BYTES_MAX`].
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

/// Query words, longest first, since that is the rarest.
fn word_finders(query: &str) -> Vec<WordFinder> {
    let words = query.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    let mut words: Vec<String> = words.map(str::to_lowercase).collect();
    words.sort_by_key(|word| std::cmp::Reverse(word.len()));
    words.dedup();
    words.truncate(WORDS_MAX);
    words.iter().map(|word| WordFinder::new(word)).collect()
}

impl WordFinder {
    fn new(word: &str) -> WordFinder {
        let most = word.char_indices().nth(STEM_CHARS_MAX).map_or(word.len(), |(at, _)| at);
        let finder = |text: &str| Finder::new(text.as_bytes()).into_owned();
        WordFinder { whole: finder(word), stem: finder(&word[..most]) }
    }

    /// Reports whether a text contains the exact word, not just as part of another.
    fn is_word_in(&self, text: &[u8]) -> bool {
        let is_letter =
            |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte >= 0x80);
        let length = self.whole.needle().len();
        self.whole.find_iter(text).any(|at| {
            let before = at.checked_sub(1).and_then(|before| text.get(before));
            !is_letter(before) && !is_letter(text.get(at + length))
        })
    }
}

/// Newest lines from an offset on that contain all or any of the words. Skips what cannot be read; the index
/// update reports it.
fn matching_lines(source: &IndexedFile, from: u64, words: &[WordFinder], needs_all: bool) -> MatchedLines {
    let mut matching = MatchedLines::default();
    let Ok(reader) = LogReader::open(&source.path) else { return matching };
    let mut at = from;
    let mut size = READ_BYTES;
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
            let is_exact = needs_all && words.iter().all(|word| word.is_word_in(text));
            let range = at + line.start as u64..at + line.end as u64;
            if is_exact { matching.exact.push(range) } else { matching.similar.push(range) }
        }
        at += whole as u64;
        size = READ_BYTES;
    }
    matching
}

/// Parses the entries of lines.
fn read_lines(source: &IndexedFile, lines: &LineRanges) -> Vec<LogLine> {
    let Ok(reader) = LogReader::open(&source.path) else { return Vec::new() };
    let line = |range: &Range<u64>| {
        let bytes = reader.bytes(range.start, range.end).ok()?;
        let entry = LogEntry::parse(SharedText::from(std::str::from_utf8(&bytes).ok()?.trim_end())).ok()?;
        Some(LogLine { number: 0, offset: range.start, next: range.end, entry, is_altered: false })
    };
    lines.ranges.iter().filter_map(line).collect()
}

/// Byte ranges of lines that contain the stems.
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
    fn lines_match_all_words_or_any() {
        let text = b"the walrus and the heron\nonly a walrus\nnothing\na heron";
        let words = word_finders("Herons WALRUS");
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
