//! What of a text is indexed, and how a question becomes a query.
//!
//! The tokenizer of the index folds case and accents and stems English. What it cannot know is done here: identifiers are
//! given by their parts, too, and runs of characters of languages without spaces as overlapping pairs.

/// Longer words are no words: keys, hashes, data.
const WORD_MOST: usize = 64;

/// Most words of a question that count.
const QUERY_MOST: usize = 32;

/// Words that say nothing about what somebody looks for.
const EMPTY: &[&str] = &[
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "can", "could", "did", "do", "does", "for",
    "from", "had", "has", "have", "how", "i", "if", "in", "into", "is", "it", "its", "me", "my", "no", "not",
    "of", "on", "or", "our", "please", "should", "so", "some", "that", "the", "their", "them", "then",
    "there", "these", "they", "this", "to", "us", "was", "we", "were", "what", "when", "where", "which",
    "who", "why", "will", "with", "would", "you", "your",
];

/// A text as it is indexed.
pub(crate) fn indexed(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 4);
    for word in words(text) {
        each_term(word, &mut |term| {
            out.push_str(term);
            out.push(' ');
        });
    }
    out
}

/// How much of a question a document must hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fit {
    /// Any of its telling words, the rare ones weighing most.
    Any,
    /// All of its words.
    All,
    /// Words that begin as all of its words do.
    Beginnings,
}

/// A question as a query of the index; none if nothing in it can be found.
pub(crate) fn query(text: &str, fit: Fit) -> Option<String> {
    let words = match fit {
        Fit::Any => telling(text),
        Fit::All | Fit::Beginnings => question_words(text),
    };
    let mut groups: Vec<Vec<String>> =
        words.into_iter().map(terms).filter(|group| !group.is_empty()).collect();
    groups.truncate(QUERY_MOST);
    // Quoted, a term is never read as an operator; no term holds a quotation mark.
    let quoted = |term: &String| format!("\"{term}\"");
    let joined = |terms: &[String], by: &str| terms.iter().map(quoted).collect::<Vec<_>>().join(by);
    let clauses: Vec<String> = match fit {
        Fit::Any => {
            let mut all: Vec<String> = Vec::new();
            for term in groups.into_iter().flatten() {
                if all.len() < QUERY_MOST && !all.contains(&term) {
                    all.push(term);
                }
            }
            return (!all.is_empty()).then(|| joined(&all, " OR "));
        }
        // What a word is indexed as stands in one place: its terms are a phrase.
        Fit::All => groups.iter().map(|group| joined(group, " + ")).collect(),
        Fit::Beginnings => groups.iter().map(|group| format!("{} *", joined(group, " + "))).collect(),
    };
    (!clauses.is_empty()).then(|| clauses.join(" AND "))
}

/// The words that a question asks for. Whoever asks for words that say nothing wants just these.
pub(crate) fn question_words(text: &str) -> Vec<&str> {
    let telling = telling(text);
    if telling.is_empty() { words(text).collect() } else { telling }
}

/// The words of a question that say something.
fn telling(text: &str) -> Vec<&str> {
    words(text).filter(|word| !EMPTY.contains(&word.to_lowercase().as_str())).collect()
}

fn terms(word: &str) -> Vec<String> {
    let mut terms = Vec::new();
    each_term(word, &mut |term| terms.push(term.to_owned()));
    terms
}

/// Runs of letters and digits.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |letter: char| letter.is_alphanumeric() || is_joined(letter);
    text.split(move |letter: char| !is_part(letter)).filter(|word| !word.is_empty())
}

/// The terms of a word: itself, the parts of an identifier, pairs of characters where words are not parted by spaces.
fn each_term(word: &str, tell: &mut dyn FnMut(&str)) {
    for run in runs(word) {
        if run.chars().next().is_some_and(is_joined) {
            pairs(run, tell);
            continue;
        }
        if run.len() > WORD_MOST {
            continue;
        }
        tell(run);
        let parts = parts(run);
        if parts.len() > 1 {
            parts.iter().for_each(|part| tell(part));
        }
    }
}

/// Parts of a word that are written alike: with spaces between words, or without.
pub(crate) fn runs(word: &str) -> Vec<&str> {
    let mut runs = Vec::new();
    let mut from = 0;
    let mut before = None;
    for (at, letter) in word.char_indices() {
        let joined = is_joined(letter);
        if before.is_some_and(|before| before != joined) {
            runs.push(&word[from..at]);
            from = at;
        }
        before = Some(joined);
    }
    runs.push(&word[from..]);
    runs
}

/// The parts of an identifier by its capitals and digits: `readToken2` is read, Token, 2.
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

/// Overlapping pairs of characters; a single one is itself.
fn pairs(run: &str, tell: &mut dyn FnMut(&str)) {
    let bounds: Vec<usize> = run.char_indices().map(|(at, _)| at).chain([run.len()]).collect();
    if bounds.len() <= 2 {
        return tell(run);
    }
    bounds.windows(3).for_each(|pair| tell(&run[pair[0]..pair[2]]));
}

/// Whether a character belongs to a writing without spaces between words.
pub(crate) fn is_joined(letter: char) -> bool {
    matches!(u32::from(letter),
        0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1780..=0x17FF | 0x3040..=0x30FF | 0x3400..=0x4DBF | 0x4E00..=0x9FFF
        | 0xAC00..=0xD7AF | 0xF900..=0xFAFF | 0x20000..=0x3FFFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_found_by_their_parts_and_joined_writing_by_pairs() {
        for (text, terms) in [
            ("readToken", "readToken read Token "),
            ("HTTPServer2x", "HTTPServer2x HTTP Server 2 x "),
            ("snake_case.rs", "snake case rs "),
            ("記憶を検索", "記憶 憶を を検 検索 "),
            ("漢", "漢 "),
            ("Rust言語の記憶", "Rust 言語 語の の記 記憶 "),
            ("", ""),
        ] {
            assert_eq!(indexed(text), terms, "{text}");
        }
        assert_eq!(indexed(&"x".repeat(100)), "", "data is no word");
    }

    #[test]
    fn a_question_is_its_telling_words() {
        let any = |text: &str| query(text, Fit::Any);
        assert_eq!(any("How do I run the tests?").as_deref(), Some("\"run\" OR \"tests\""));
        assert_eq!(any("\"AND\" OR (NEAR) -x *"), Some("\"NEAR\" OR \"x\"".to_owned()));
        assert_eq!((any("the of a"), any("!?")), (None, None));
        let all = |text: &str| query(text, Fit::All);
        assert_eq!(all("the readToken").as_deref(), Some("\"readToken\" + \"read\" + \"Token\""));
        assert_eq!(all("to be").as_deref(), Some("\"to\" AND \"be\""));
        assert_eq!(
            query("tok 記憶を", Fit::Beginnings).as_deref(),
            Some("\"tok\" * AND \"記憶\" + \"憶を\" *")
        );
        assert_eq!(all("!?"), None);
    }
}
