//! Which names are guarded, and whether what follows a bracket spells one of them.

use super::letters::{Alphabet, folded, is_bar, is_closer, is_mark, is_opener, is_unseen};

/// The tag of reminders, in words.
const REMINDER: &[&str] = &["system", "reminder"];

/// Tags of the program.
const OURS: [&[&str]; 4] = [REMINDER, &["git", "snapshot"], &["instruction", "file"], &["memory", "note"]];

/// What chat templates and models have for turns, calls and results. All have several words, as ours do, so that none
/// of them is a word of ordinary markup.
const OTHERS: [&[&str]; 11] = [
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

/// Longest name of a control token.
const TOKEN_MAX: usize = 64;

/// Whether what follows an opening bracket, and backslashes, is a guarded tag, or may be the beginning of one that the
/// end of the text cuts off.
pub(super) fn is_guarded(tag: &str, alphabet: Alphabet) -> bool {
    is_token(tag, alphabet)
        || is_system_block(tag)
        || match reading(&OURS, tag, alphabet) {
            Reading::Whole | Reading::CutOff => true,
            Reading::Other => reading(&OTHERS, tag, alphabet) == Reading::Whole,
        }
}

/// The same for the tag of reminders alone.
pub(super) fn is_reminder(tag: &str, alphabet: Alphabet) -> bool {
    reading(&[REMINDER], tag, alphabet) != Reading::Other
}

/// How a text reads beside names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reading {
    /// It begins with one.
    Whole,
    /// It ends before it could.
    CutOff,
    Other,
}

fn reading(names: &[&[&str]], tag: &str, alphabet: Alphabet) -> Reading {
    let mut rest = tag.chars();
    let mut name = rest.as_str();
    let mut has_space = false;
    // Whatever stands before the name: a slash, white space, marks, what nobody sees.
    while let Some(letter) = rest.next().map(|letter| alphabet.read(letter)) {
        if is_opener(letter) || is_closer(letter) {
            return Reading::Other;
        }
        if folded(letter).is_some() {
            let readings = names.iter().map(|words| beside(name, words, alphabet));
            let found = readings.into_iter().find(|reading| *reading != Reading::Other);
            // That one number is less than another is no tag that was cut off.
            let is_one_letter = || rest.as_str().chars().all(|letter| folded(letter).is_none());
            return match found {
                Some(Reading::CutOff) if has_space && is_one_letter() => Reading::Other,
                found => found.unwrap_or(Reading::Other),
            };
        }
        has_space |= letter.is_whitespace();
        name = rest.as_str();
    }
    Reading::CutOff
}

/// How a text reads beside a name of these words, with something between them and perhaps inside of them.
fn beside(text: &str, words: &[&str], alphabet: Alphabet) -> Reading {
    let mut letters = text.chars().map(|letter| alphabet.read(letter));
    for (at, word) in words.iter().enumerate() {
        let mut is_apart = at == 0;
        for wanted in word.chars() {
            loop {
                let Some(letter) = letters.next() else { return Reading::CutOff };
                if is_opener(letter) || is_closer(letter) {
                    return Reading::Other;
                }
                match folded(letter) {
                    Some(letter) if letter == wanted && is_apart => break,
                    Some(_) => return Reading::Other,
                    None => is_apart = true,
                }
            }
            is_apart = true;
        }
    }
    Reading::Whole
}

/// A control token: a name between bars. Operators of some languages look like its ends, but have spaces around them.
fn is_token(tag: &str, alphabet: Alphabet) -> bool {
    // A bracket ends the look-out, seen or not: what follows it is another tag's.
    let is_read = |letter: &char| is_opener(*letter) || !is_unseen(*letter) && !is_mark(*letter);
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
        if !is_of_name || length == TOKEN_MAX {
            return false;
        }
        length += 1;
    }
    true
}

/// `<<SYS>>` and its end, seen from the first bracket.
fn is_system_block(tag: &str) -> bool {
    let name = tag.strip_prefix('<').map(|tag| tag.strip_prefix('/').unwrap_or(tag));
    name.and_then(|name| name.as_bytes().get(..5)).is_some_and(|name| name.eq_ignore_ascii_case(b"SYS>>"))
}
