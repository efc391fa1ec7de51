//! Terms that are indexed for a text, and queries made from a question.
//!
//! The tokenizer of the index folds case and accents and stems English. This module adds the parts of
//! identifiers, and overlapping character pairs for languages without spaces.

/// Maximum length of an indexed word in bytes; longer ones are keys, hashes or data.
const WORD_BYTES_MAX: usize = 64;

/// Maximum number of query terms.
const QUERY_TERMS_MAX: usize = 32;

/// Stop words: articles, pronouns, prepositions, conjunctions, auxiliary verbs and question words.
const STOP_WORDS: &[&str] = &[
    "a",
    "about",
    "also",
    "am",
    "an",
    "and",
    "any",
    "are",
    "aren",
    "as",
    "at",
    "be",
    "been",
    "before",
    "being",
    "between",
    "both",
    "but",
    "by",
    "can",
    "could",
    "couldn",
    "did",
    "didn",
    "do",
    "does",
    "doesn",
    "doing",
    "don",
    "during",
    "each",
    "for",
    "from",
    "had",
    "has",
    "hasn",
    "have",
    "haven",
    "having",
    "he",
    "her",
    "hers",
    "herself",
    "him",
    "himself",
    "his",
    "how",
    "i",
    "if",
    "in",
    "into",
    "is",
    "isn",
    "it",
    "its",
    "itself",
    "just",
    "me",
    "my",
    "myself",
    "no",
    "not",
    "of",
    "on",
    "or",
    "our",
    "ours",
    "ourselves",
    "please",
    "she",
    "should",
    "shouldn",
    "so",
    "some",
    "such",
    "than",
    "that",
    "the",
    "their",
    "them",
    "themselves",
    "then",
    "there",
    "these",
    "they",
    "this",
    "to",
    "too",
    "us",
    "very",
    "was",
    "wasn",
    "we",
    "were",
    "weren",
    "what",
    "when",
    "where",
    "which",
    "while",
    "who",
    "whom",
    "whose",
    "why",
    "will",
    "with",
    "would",
    "wouldn",
    "you",
    "your",
    "yours",
    "yourself",
];

/// Endings after an apostrophe: Caroline's, they're, don't.
const CONTRACTION_TAILS: &[&str] = &["d", "ll", "m", "re", "s", "t", "ve"];

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

/// Terms of the significant words of a query, each once.
pub(crate) fn query_terms(text: &str) -> Vec<String> {
    let mut terms: Vec<String> = Vec::new();
    for word in question_words(text) {
        each_term(word, &mut |term| {
            let term = term.to_lowercase();
            if terms.len() < QUERY_TERMS_MAX && !terms.contains(&term) {
                terms.push(term);
            }
        });
    }
    terms
}

/// Builds an FTS5 query for texts with any of the significant words; none if there are none.
pub(crate) fn any_word_query(text: &str) -> Option<String> {
    if significant_words(text).is_empty() {
        return None;
    }
    // A quoted term is never an operator; no term contains a quotation mark.
    let quoted: Vec<String> = query_terms(text).iter().map(|term| format!("\"{term}\"")).collect();
    (!quoted.is_empty()).then(|| quoted.join(" OR "))
}

/// Significant words of a query; all words if every one is a stop word.
pub(crate) fn question_words(text: &str) -> Vec<&str> {
    let telling = significant_words(text);
    if telling.is_empty() { split_words(text).collect() } else { telling }
}

/// Words that are neither stop words nor what is left of a contraction.
fn significant_words(text: &str) -> Vec<&str> {
    let is_tail = |word: &str| {
        let before = word.as_ptr() as usize - text.as_ptr() as usize;
        text[..before].ends_with(['\'', '’']) && CONTRACTION_TAILS.contains(&word.to_lowercase().as_str())
    };
    let is_significant = |word: &&str| !STOP_WORDS.contains(&word.to_lowercase().as_str()) && !is_tail(word);
    split_words(text).filter(is_significant).collect()
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
        assert_eq!(any_word_query("How do I run the tests?").as_deref(), Some("\"run\" OR \"tests\""));
        assert_eq!(any_word_query("\"AND\" OR (NEAR) -x *"), Some("\"near\" OR \"x\"".to_owned()));
        assert_eq!((any_word_query("the of a"), any_word_query("!?")), (None, None));
        assert_eq!(query_terms("Caroline's dog, and what they don’t like"), ["caroline", "dog", "like"]);
        assert_eq!(query_terms("ls -s"), ["ls", "s"], "a letter of its own is a word");
        assert_eq!(query_terms("the readToken"), ["readtoken", "read", "token"]);
        assert_eq!(query_terms("to be"), ["to", "be"]);
    }
}
