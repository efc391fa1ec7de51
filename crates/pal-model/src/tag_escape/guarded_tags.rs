//! Guarded tag names, and matching of text after a bracket against them.

use super::lookalikes::{TagAlphabet, fold_letter, is_bar, is_closer, is_invisible, is_mark, is_opener};

/// Words of the reminder tag.
const REMINDER: &[&str] = &["system", "reminder"];

/// Words of the program's own tags.
const OWN_TAGS: [&[&str]; 4] =
    [REMINDER, &["git", "snapshot"], &["instruction", "file"], &["memory", "note"]];

/// Words of chat-template tags for turns, calls and results. Like the program's own, all have several words, so that none
/// is a word of ordinary markup.
const TEMPLATE_TAGS: [&[&str]; 11] = [
    &["im", "start"],
    &["im", "end"],
    &["start", "of", "turn"],
    &["end", "of", "turn"],
    &["start", "header", "id"],
    &["end", "header", "id"],
    &["eot", "id"],
    &["begin", "of", "text"],
    &["end", "of", "text"],
    &["function", "calls"],
    &["function", "results"],
];

/// Maximum length of a control token's name.
const TOKEN_NAME_CHARS_MAX: usize = 64;

/// Returns true if the text after an opening bracket and its backslashes is a guarded tag, or the beginning of one that
/// is cut off by the end of the text.
pub(super) fn is_guarded(tag: &str, alphabet: TagAlphabet) -> bool {
    is_token(tag, alphabet)
        || is_system_block(tag)
        || match match_tag(&OWN_TAGS, tag, alphabet) {
            TagMatch::Whole | TagMatch::CutOff => true,
            TagMatch::Other => match_tag(&TEMPLATE_TAGS, tag, alphabet) == TagMatch::Whole,
        }
}

/// Like [`is_guarded`], for the reminder tag only.
pub(super) fn is_reminder(tag: &str, alphabet: TagAlphabet) -> bool {
    match_tag(&[REMINDER], tag, alphabet) != TagMatch::Other
}

/// Result of matching a text against tag names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum TagMatch {
    /// The text begins with a name.
    Whole,
    /// The text ends inside a name.
    CutOff,
    Other,
}

fn match_tag(names: &[&[&str]], tag: &str, alphabet: TagAlphabet) -> TagMatch {
    let mut rest = tag.chars();
    let mut name = rest.as_str();
    let mut has_space = false;
    // Skips a slash, white space, marks and invisible characters before the name.
    while let Some(letter) = rest.next().map(|letter| alphabet.read(letter)) {
        if is_opener(letter) || is_closer(letter) {
            return TagMatch::Other;
        }
        if fold_letter(letter).is_some() {
            let readings = names.iter().map(|words| match_words(name, words, alphabet));
            let found = readings.into_iter().find(|reading| *reading != TagMatch::Other);
            // A comparison such as `a < b` is not a tag that is cut off.
            let is_one_letter = || rest.as_str().chars().all(|letter| fold_letter(letter).is_none());
            return match found {
                Some(TagMatch::CutOff) if has_space && is_one_letter() => TagMatch::Other,
                found => found.unwrap_or(TagMatch::Other),
            };
        }
        has_space |= letter.is_whitespace();
        name = rest.as_str();
    }
    TagMatch::CutOff
}

/// Matches a text against a name of these words, with separators between and possibly inside them.
fn match_words(text: &str, words: &[&str], alphabet: TagAlphabet) -> TagMatch {
    let mut letters = text.chars().map(|letter| alphabet.read(letter));
    for (at, word) in words.iter().enumerate() {
        let mut is_apart = at == 0;
        for wanted in word.chars() {
            loop {
                let Some(letter) = letters.next() else { return TagMatch::CutOff };
                if is_opener(letter) || is_closer(letter) {
                    return TagMatch::Other;
                }
                match fold_letter(letter) {
                    Some(letter) if letter == wanted && is_apart => break,
                    Some(_) => return TagMatch::Other,
                    None => is_apart = true,
                }
            }
            is_apart = true;
        }
    }
    TagMatch::Whole
}

/// Returns true for a control token: a name between bars. Operators of some languages look like its ends, but have
/// spaces around them.
fn is_token(tag: &str, alphabet: TagAlphabet) -> bool {
    // A bracket ends the token, visible or not: it opens another tag.
    let is_read = |letter: &char| is_opener(*letter) || !is_invisible(*letter) && !is_mark(*letter);
    let mut letters = tag.chars().map(|letter| alphabet.read(letter)).filter(is_read);
    if !letters.next().is_some_and(is_bar) {
        return false;
    }
    let mut length = 0;
    while let Some(letter) = letters.next() {
        if is_bar(letter) {
            return length > 0 && letters.next().is_none_or(is_closer);
        }
        let is_of_name = letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.' | ':' | '/' | '▁');
        if !is_of_name || length == TOKEN_NAME_CHARS_MAX {
            return false;
        }
        length += 1;
    }
    true
}

/// Returns true for `<<SYS>>` and `<</SYS>>`, given the text after the first bracket.
fn is_system_block(tag: &str) -> bool {
    let name = tag.strip_prefix('<').map(|tag| tag.strip_prefix('/').unwrap_or(tag));
    name.and_then(|name| name.as_bytes().get(..5)).is_some_and(|name| name.eq_ignore_ascii_case(b"SYS>>"))
}
