//! Patterns of commands: the leading words of a command.

use super::RuleError;
use crate::shell::ShellWord;

/// Pattern of commands: leading words, or the exact command.
#[derive(Clone, Debug)]
pub(crate) struct CommandPattern {
    /// As written, for comparison with a whole command line.
    text: String,
    words: Vec<String>,
    is_prefix: bool,
}

/// Match of a command against a restrictive rule.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum PatternMatch {
    No,
    /// Unknown until the command runs.
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
        Ok(CommandPattern {
            text: String::from(crate::shell::trimmed(inside)),
            words,
            is_prefix: start.is_some(),
        })
    }

    /// Returns whether a command line equals the rule's text.
    pub(crate) fn is_text(&self, command: &str) -> bool {
        self.text == crate::shell::trimmed(command)
    }

    /// Number of words that it names, if it covers the command. Every named word must be known before the
    /// command runs.
    pub(crate) fn covers(&self, words: &[ShellWord]) -> Option<usize> {
        let n_named = self.words.len();
        let is_long_enough = if self.is_prefix { words.len() >= n_named } else { words.len() == n_named };
        let fits =
            |(pattern, word): (&String, &ShellWord)| word.text().is_some_and(|text| is_like(pattern, text));
        (is_long_enough && self.words.iter().zip(words).all(fits)).then_some(n_named)
    }

    /// Matches restrictively: by the program's file name in any folder, ignoring case, with options in
    /// between.
    pub(crate) fn match_restrictively(&self, words: &[ShellWord]) -> PatternMatch {
        let Some((name, rest)) = words.split_first() else { return PatternMatch::No };
        let Some((pattern, patterns)) = self.words.split_first() else { return PatternMatch::No };
        let Some(name) = name.text() else { return PatternMatch::Maybe };
        let file = name.rsplit('/').next().unwrap_or(name);
        if !is_like_loosely(pattern, file) && !is_like_loosely(pattern, name) {
            return PatternMatch::No;
        }
        self.match_rest_restrictively(patterns, rest)
    }

    fn match_rest_restrictively(&self, patterns: &[String], words: &[ShellWord]) -> PatternMatch {
        let Some((pattern, later)) = patterns.split_first() else {
            return if self.is_prefix || words.is_empty() { PatternMatch::Yes } else { PatternMatch::No };
        };
        let mut is_skippable = true;
        let mut best = PatternMatch::No;
        for (idx, word) in words.iter().enumerate() {
            if !is_skippable {
                break;
            }
            match word.text() {
                None => return best.max(PatternMatch::Maybe),
                Some(text) if is_like_loosely(pattern, text) => {
                    best = best.max(self.match_rest_restrictively(later, &words[idx + 1..]));
                }
                Some(_) => {}
            }
            // An option may come in between, and the next word may be its value.
            let is_option = |word: &ShellWord| word.text().is_some_and(|text| text.starts_with('-'));
            is_skippable = is_option(word) || (idx > 0 && is_option(&words[idx - 1]));
        }
        best
    }
}

/// Returns whether a word matches a pattern with `*` as a wildcard.
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
