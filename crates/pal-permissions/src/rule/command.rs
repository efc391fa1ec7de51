//! Patterns of commands: the words that one begins with.

use super::RuleError;
use crate::shell::Word;

/// A pattern of commands.
#[derive(Clone, Debug)]
pub(crate) struct CommandPattern {
    /// As it is written, to be compared with a whole command line.
    text: String,
    words: Vec<String>,
    is_prefix: bool,
}

/// Whether a command is meant by a rule that denies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Match {
    No,
    /// It cannot be told before the command runs.
    Maybe,
    Yes,
}

impl CommandPattern {
    pub(super) fn parse(rule: &str, inside: &str) -> Result<CommandPattern, RuleError> {
        let start = inside.strip_suffix(":*").or_else(|| inside.strip_suffix(" *"));
        let words = crate::shell::split(start.unwrap_or(inside));
        if words.is_empty() {
            return Err(RuleError::command(rule));
        }
        Ok(CommandPattern { text: String::from(inside.trim()), words, is_prefix: start.is_some() })
    }

    /// Whether a whole command line is written as this rule is.
    pub(crate) fn is_text(&self, command: &str) -> bool {
        self.text == command.trim()
    }

    /// How many words of a command it names, if it is about the command. Every one of them has to be known.
    pub(crate) fn covers(&self, words: &[Word]) -> Option<usize> {
        let n_named = self.words.len();
        let is_long_enough = if self.is_prefix { words.len() >= n_named } else { words.len() == n_named };
        let fits = |(pattern, word): (&String, &Word)| word.text().is_some_and(|text| is_like(pattern, text));
        (is_long_enough && self.words.iter().zip(words).all(fits)).then_some(n_named)
    }

    /// Whether a command may be meant, on the safe side: by the program's name wherever it lies, whatever the capital
    /// letters, with options in between.
    pub(crate) fn suspects(&self, words: &[Word]) -> Match {
        let Some((name, rest)) = words.split_first() else { return Match::No };
        let Some((pattern, patterns)) = self.words.split_first() else { return Match::No };
        let Some(name) = name.text() else { return Match::Maybe };
        let file = name.rsplit('/').next().unwrap_or(name);
        if !is_like_loosely(pattern, file) && !is_like_loosely(pattern, name) {
            return Match::No;
        }
        self.suspects_rest(patterns, rest)
    }

    fn suspects_rest(&self, patterns: &[String], words: &[Word]) -> Match {
        let Some((pattern, later)) = patterns.split_first() else {
            return if self.is_prefix || words.is_empty() { Match::Yes } else { Match::No };
        };
        let mut is_skippable = true;
        let mut best = Match::No;
        for (idx, word) in words.iter().enumerate() {
            if !is_skippable {
                break;
            }
            match word.text() {
                None => return best.max(Match::Maybe),
                Some(text) if is_like_loosely(pattern, text) => {
                    best = best.max(self.suspects_rest(later, &words[idx + 1..]));
                }
                Some(_) => {}
            }
            // An option may stand in between, and the word behind it may be its value.
            let is_option = |word: &Word| word.text().is_some_and(|text| text.starts_with('-'));
            is_skippable = is_option(word) || (idx > 0 && is_option(&words[idx - 1]));
        }
        best
    }
}

/// Whether a word is like a pattern in which a star stands for any characters.
fn is_like(pattern: &str, word: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == word };
    let Some(mut left) = word.strip_prefix(start) else { return false };
    let mut pieces = rest.split('*').peekable();
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            return left.ends_with(piece);
        }
        let Some(at) = left.find(piece) else { return false };
        left = &left[at + piece.len()..];
    }
    true
}

fn is_like_loosely(pattern: &str, word: &str) -> bool {
    is_like(&pattern.to_lowercase(), &word.to_lowercase())
}
