//! Terms that are indexed for a text, and queries made from a question.
//!
//! The tokenizer of the index folds case and accents and stems English. This module adds the parts of
//! identifiers, and overlapping character pairs for languages without spaces.

/// Maximum length of an indexed word in bytes; longer ones are keys, hashes or data.
const WORD_BYTES_MAX: usize = 64;

/// Maximum number of query terms.
const QUERY_TERMS_MAX: usize = 32;

/// Stop words.
const STOP_WORDS: &[&str] = &[
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "can", "could", "did", "do", "does", "for",
    "from", "had", "has", "have", "how", "i", "if", "in", "into", "is", "it", "its", "me", "my", "no", "not",
    "of", "on", "or", "our", "please", "should", "so", "some", "that", "the", "their", "them", "then",
    "there", "these", "they", "this", "to", "us", "was", "we", "were", "what", "when", "where", "which",
    "who", "why", "will", "with", "would", "you", "your",
];

/// Terms of a text, separated by spaces, as they are indexed.
pub(crate) fn index_terms(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 4);
    for word in split_words(text) {
        each_term(word, &mut |term| {
            out.push_str(term);
            out.push(' ');
        });
    }
    out
}

/// Condition on the words of a query.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MatchMode {
    /// At least one of the significant words; rare ones weigh most.
    Any,
    /// All words.
    All,
    /// All words as prefixes.
    Prefixes,
}

/// Builds an FTS5 query; none if the text has no searchable words.
pub(crate) fn query(text: &str, fit: MatchMode) -> Option<String> {
    let words = match fit {
        MatchMode::Any => significant_words(text),
        MatchMode::All | MatchMode::Prefixes => question_words(text),
    };
    let mut groups: Vec<Vec<String>> =
        words.into_iter().map(terms).filter(|group| !group.is_empty()).collect();
    groups.truncate(QUERY_TERMS_MAX);
    // A quoted term is never an operator; no term contains a quotation mark.
    let quoted = |term: &String| format!("\"{term}\"");
    let joined = |terms: &[String], by: &str| terms.iter().map(quoted).collect::<Vec<_>>().join(by);
    let clauses: Vec<String> = match fit {
        MatchMode::Any => {
            let mut all: Vec<String> = Vec::new();
            for term in groups.into_iter().flatten() {
                if all.len() < QUERY_TERMS_MAX && !all.contains(&term) {
                    all.push(term);
                }
            }
            return (!all.is_empty()).then(|| joined(&all, " OR "));
        }
        // The terms of one word are indexed next to each other, so they form a phrase.
        MatchMode::All => groups.iter().map(|group| joined(group, " + ")).collect(),
        MatchMode::Prefixes => groups.iter().map(|group| format!("{} *", joined(group, " + "))).collect(),
    };
    (!clauses.is_empty()).then(|| clauses.join(" AND "))
}

/// Significant words of a query; all words if every one is a stop word.
pub(crate) fn question_words(text: &str) -> Vec<&str> {
    let telling = significant_words(text);
    if telling.is_empty() { split_words(text).collect() } else { telling }
}

/// Words that are not stop words.
fn significant_words(text: &str) -> Vec<&str> {
    split_words(text).filter(|word| !STOP_WORDS.contains(&word.to_lowercase().as_str())).collect()
}

fn terms(word: &str) -> Vec<String> {
    let mut terms = Vec::new();
    each_term(word, &mut |term| terms.push(term.to_owned()));
    terms
}

/// Runs of letters and digits.
pub(crate) fn split_words(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |letter: char| letter.is_alphanumeric() || is_unspaced_script(letter);
    text.split(move |letter: char| !is_part(letter)).filter(|word| !word.is_empty())
}

/// Emits the terms of a word: the word itself, the parts of an identifier, character pairs of text without
/// spaces.
fn each_term(word: &str, tell: &mut dyn FnMut(&str)) {
    for run in runs(word) {
        if run.chars().next().is_some_and(is_unspaced_script) {
            pairs(run, tell);
            continue;
        }
        if run.len() > WORD_BYTES_MAX {
            continue;
        }
        tell(run);
        let parts = parts(run);
        if parts.len() > 1 {
            parts.iter().for_each(|part| tell(part));
        }
    }
}

/// Splits a word where scripts with and without spaces meet.
pub(crate) fn runs(word: &str) -> Vec<&str> {
    let mut runs = Vec::new();
    let mut from = 0;
    let mut before = None;
    for (at, letter) in word.char_indices() {
        let joined = is_unspaced_script(letter);
        if before.is_some_and(|before| before != joined) {
            runs.push(&word[from..at]);
            from = at;
        }
        before = Some(joined);
    }
    runs.push(&word[from..]);
    runs
}

/// Parts of an identifier by capitals and digits: `readToken2` gives read, Token, 2.
pub(crate) fn parts(word: &str) -> Vec<&str> {
    let letters: Vec<(usize, char)> = word.char_indices().collect();
    let mut parts = Vec::new();
    let mut from = 0;
    for pair in 1..letters.len() {
        let (at, letter) = letters[pair];
        let before = letters[pair - 1].1;
        let next = letters.get(pair + 1).map(|(_, next)| *next);
        let begins = (letter.is_uppercase() && !before.is_uppercase())
            || (letter.is_uppercase() && before.is_uppercase() && next.is_some_and(char::is_lowercase))
            || (letter.is_numeric() != before.is_numeric());
        if begins {
            parts.push(&word[from..at]);
            from = at;
        }
    }
    parts.push(&word[from..]);
    parts
}

/// Emits overlapping character pairs; a single character is emitted alone.
fn pairs(run: &str, tell: &mut dyn FnMut(&str)) {
    let bounds: Vec<usize> = run.char_indices().map(|(at, _)| at).chain([run.len()]).collect();
    if bounds.len() <= 2 {
        return tell(run);
    }
    bounds.windows(3).for_each(|pair| tell(&run[pair[0]..pair[2]]));
}

/// Reports whether a character belongs to a script without spaces between words.
pub(crate) fn is_unspaced_script(letter: char) -> bool {
    matches!(u32::from(letter),
        0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1780..=0x17FF | 0x3040..=0x30FF | 0x3400..=0x4DBF | 0x4E00..=0x9FFF
        | 0xAC00..=0xD7AF | 0xF900..=0xFAFF | 0x20000..=0x3FFFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_give_parts_and_scripts_without_spaces_give_pairs() {
        for (text, terms) in [
            ("readToken", "readToken read Token "),
            ("HTTPServer2x", "HTTPServer2x HTTP Server 2 x "),
            ("snake_case.rs", "snake case rs "),
            ("記憶を検索", "記憶 憶を を検 検索 "),
            ("漢", "漢 "),
            ("Rust言語の記憶", "Rust 言語 語の の記 記憶 "),
            ("", ""),
        ] {
            assert_eq!(index_terms(text), terms, "{text}");
        }
        assert_eq!(index_terms(&"x".repeat(100)), "", "data is no word");
    }

    #[test]
    fn stop_words_are_dropped_from_queries() {
        let any = |text: &str| query(text, MatchMode::Any);
        assert_eq!(any("How do I run the tests?").as_deref(), Some("\"run\" OR \"tests\""));
        assert_eq!(any("\"AND\" OR (NEAR) -x *"), Some("\"NEAR\" OR \"x\"".to_owned()));
        assert_eq!((any("the of a"), any("!?")), (None, None));
        let all = |text: &str| query(text, MatchMode::All);
        assert_eq!(all("the readToken").as_deref(), Some("\"readToken\" + \"read\" + \"Token\""));
        assert_eq!(all("to be").as_deref(), Some("\"to\" AND \"be\""));
        assert_eq!(
            query("tok 記憶を", MatchMode::Prefixes).as_deref(),
            Some("\"tok\" * AND \"記憶\" + \"憶を\" *")
        );
        assert_eq!(all("!?"), None);
    }
}
