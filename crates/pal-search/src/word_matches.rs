//! Positions of query words in a text, for highlighting.
//!
//! The index knows which documents match, but not where, and does not expose its stems. Here two words match
//! if they differ only in their ending.

use std::ops::Range;

use crate::query_terms::{is_unspaced_script, parts, question_words, runs, split_words};

/// Maximum length of the endings in which two words of one stem may differ, and of the ending that one word
/// may add to the other.
const ENDING_CHARS_MAX: usize = 3;
const ADDED_ENDING_CHARS_MAX: usize = 4;
/// Minimum length of a stem, in characters.
const STEM_CHARS_MIN: usize = 3;

/// An occurrence of a query word.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WordMatch {
    /// Byte range in the text.
    pub range: Range<usize>,
    /// Index of the query word.
    pub word: usize,
}

/// Finds the words of a query in texts.
pub struct WordMatcher {
    words: Vec<String>,
}

impl WordMatcher {
    /// Creates a matcher for a query.
    pub fn new(question: &str) -> WordMatcher {
        let mut words: Vec<String> =
            question_words(question).iter().map(|word| word.to_lowercase()).collect();
        let mut seen = std::collections::HashSet::new();
        words.retain(|word| seen.insert(word.clone()));
        WordMatcher { words }
    }

    /// Finds the query words in a text, in text order.
    pub fn find_words(&self, text: &str) -> Vec<WordMatch> {
        let mut marks = Vec::new();
        for word in split_words(text) {
            let from = offset(text, word);
            match self.matching_query_word(word) {
                Some(asked) => marks.push(WordMatch { range: from..from + word.len(), word: asked }),
                None => self.match_parts(word, from, &mut marks),
            }
        }
        marks
    }

    /// Matches parts of an identifier, and runs of text without spaces.
    fn match_parts(&self, word: &str, from: usize, marks: &mut Vec<WordMatch>) {
        for run in runs(word) {
            let at = from + offset(word, run);
            if run.chars().next().is_some_and(is_unspaced_script) {
                for (asked, wanted) in self.words.iter().enumerate() {
                    let found = run.match_indices(wanted.as_str());
                    marks.extend(found.map(|(start, hit)| WordMatch {
                        range: at + start..at + start + hit.len(),
                        word: asked,
                    }));
                }
                continue;
            }
            for part in parts(run) {
                let start = at + offset(run, part);
                if let Some(asked) = self.matching_query_word(part) {
                    marks.push(WordMatch { range: start..start + part.len(), word: asked });
                }
            }
        }
    }

    fn matching_query_word(&self, word: &str) -> Option<usize> {
        let word = word.to_lowercase();
        let exact = self.words.iter().position(|asked| *asked == word);
        exact.or_else(|| self.words.iter().position(|asked| is_same_stem(asked, &word)))
    }
}

/// Byte offset of a subslice.
fn offset(text: &str, part: &str) -> usize {
    part.as_ptr() as usize - text.as_ptr() as usize
}

/// Reports whether two words differ only in their ending.
fn is_same_stem(one: &str, other: &str) -> bool {
    let shared: usize = one
        .chars()
        .zip(other.chars())
        .take_while(|(one, other)| one == other)
        .map(|(letter, _)| letter.len_utf8())
        .sum();
    if one[..shared].chars().count() < STEM_CHARS_MIN || one.starts_with(|letter: char| letter.is_numeric()) {
        return false;
    }
    let (left, right) = (one[shared..].chars().count(), other[shared..].chars().count());
    match left.min(right) {
        0 => left.max(right) <= ADDED_ENDING_CHARS_MAX,
        _ => left.max(right) <= ENDING_CHARS_MAX && one[..shared].chars().count() > STEM_CHARS_MIN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked<'a>(question: &str, text: &'a str) -> Vec<&'a str> {
        WordMatcher::new(question).find_words(text).into_iter().map(|mark| &text[mark.range]).collect()
    }

    #[test]
    fn words_match_across_endings_and_parts() {
        for (question, text, found) in [
            (
                "how are releases made",
                "Releasing is hard; a release was made.",
                vec!["Releasing", "release", "made"],
            ),
            ("running", "run it, run; ruin", vec!["run", "run"]),
            ("token", "readToken(tokens, Tokenization)", vec!["Token", "tokens"]),
            ("tests", "a testament", vec![]),
            ("記憶", "長い記憶を検索", vec!["記憶"]),
            ("error 404", "Error 4040, error 404", vec!["Error", "error", "404"]),
            ("to be", "or not to be", vec!["to", "be"]),
            ("!?", "what!?", vec![]),
        ] {
            assert_eq!(marked(question, text), found, "{question}");
        }
    }
}
