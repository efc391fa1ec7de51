//! Where in a text the words of a question stand: for whoever shows what was found.
//!
//! The index knows which documents fit and not where; and its stems are its own. So words count as the same here if they differ
//! only by an ending, which is enough to point at them.

use std::ops::Range;

use crate::words::{is_joined, parts, question_words, runs, words};

/// Endings by which words of one stem differ: that long at most, and at most this long where one word goes on from the other.
const ENDING: usize = 3;
const ENDING_ALONE: usize = 4;
/// Fewer letters are no stem.
const STEM: usize = 3;

/// A word of a text that a question asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mark {
    /// Where it stands.
    pub range: Range<usize>,
    /// Which word of the question it is.
    pub word: usize,
}

/// Finds the words of a question in texts.
pub struct Marker {
    words: Vec<String>,
}

impl Marker {
    /// For a question.
    pub fn new(question: &str) -> Marker {
        let mut words: Vec<String> =
            question_words(question).iter().map(|word| word.to_lowercase()).collect();
        let mut seen = std::collections::HashSet::new();
        words.retain(|word| seen.insert(word.clone()));
        Marker { words }
    }

    /// How many different words the question has.
    pub fn words(&self) -> usize {
        self.words.len()
    }

    /// The words of the question in a text, in the order of the text.
    pub fn marks(&self, text: &str) -> Vec<Mark> {
        let mut marks = Vec::new();
        for word in words(text) {
            let from = offset(text, word);
            match self.asks_for(word) {
                Some(asked) => marks.push(Mark { range: from..from + word.len(), word: asked }),
                None => self.marks_within(word, from, &mut marks),
            }
        }
        marks
    }

    /// Parts of an identifier, and stretches of writing without spaces.
    fn marks_within(&self, word: &str, from: usize, marks: &mut Vec<Mark>) {
        for run in runs(word) {
            let at = from + offset(word, run);
            if run.chars().next().is_some_and(is_joined) {
                for (asked, wanted) in self.words.iter().enumerate() {
                    let found = run.match_indices(wanted.as_str());
                    marks.extend(
                        found.map(|(start, hit)| Mark {
                            range: at + start..at + start + hit.len(),
                            word: asked,
                        }),
                    );
                }
                continue;
            }
            for part in parts(run) {
                let start = at + offset(run, part);
                if let Some(asked) = self.asks_for(part) {
                    marks.push(Mark { range: start..start + part.len(), word: asked });
                }
            }
        }
    }

    fn asks_for(&self, word: &str) -> Option<usize> {
        let word = word.to_lowercase();
        let exact = self.words.iter().position(|asked| *asked == word);
        exact.or_else(|| self.words.iter().position(|asked| is_same_stem(asked, &word)))
    }
}

/// Where a part of a text begins.
fn offset(text: &str, part: &str) -> usize {
    part.as_ptr() as usize - text.as_ptr() as usize
}

/// Whether words differ by an ending only.
fn is_same_stem(one: &str, other: &str) -> bool {
    let shared: usize = one
        .chars()
        .zip(other.chars())
        .take_while(|(one, other)| one == other)
        .map(|(letter, _)| letter.len_utf8())
        .sum();
    if one[..shared].chars().count() < STEM || one.starts_with(|letter: char| letter.is_numeric()) {
        return false;
    }
    let (left, right) = (one[shared..].chars().count(), other[shared..].chars().count());
    match left.min(right) {
        0 => left.max(right) <= ENDING_ALONE,
        _ => left.max(right) <= ENDING && one[..shared].chars().count() > STEM,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked<'a>(question: &str, text: &'a str) -> Vec<&'a str> {
        Marker::new(question).marks(text).into_iter().map(|mark| &text[mark.range]).collect()
    }

    #[test]
    fn words_are_marked_whatever_their_endings_and_parts() {
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
        assert_eq!(Marker::new("parser the parser Parser").words(), 1);
    }
}
