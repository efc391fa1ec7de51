//! Tokens with a published format: a literal with its surroundings.
//!
//! A format is data. Its literal goes into one automaton over all formats; every hit is checked against the parts of the
//! format, which are runs of an alphabet with a length, or literals. A run takes all characters of its alphabet, so a
//! run of a fixed length inside a longer word is no token.

mod format_table;

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};

use crate::SecretMatch;
use crate::alphabet::Alphabet;
use format_table::{INFIX_FORMATS, PREFIX_FORMATS};

/// Fewest characters of a body that must look random: a shorter one may lack digits by chance.
const CHECKED_CHARACTERS_MIN: usize = 16;

/// Longer literals that identifiers may start with, too.
const WEAK_PREFIXES: [&str; 6] = ["live_", "test_", "secret_", "secret-", "dose", "AAAAAAAAAAAAAAAAAAAAA"];

/// Part of a token format.
#[derive(Clone, Copy, Debug)]
enum TokenPart {
    /// Run of characters of an alphabet, with minimum and maximum length.
    Run(Alphabet, usize, usize),
    /// Literal text.
    Lit(&'static str),
}

/// Format of a token that starts with a literal.
struct PrefixFormat {
    kind: &'static str,
    prefix: &'static str,
    parts: &'static [TokenPart],
}

/// Format of a token with a literal inside.
struct InfixFormat {
    kind: &'static str,
    before: (Alphabet, usize, usize),
    infix: &'static str,
    parts: &'static [TokenPart],
}

/// Literals of all formats, prefixes first. `None` only for a malformed literal, which a test rules out.
static LITERALS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let prefixes = PREFIX_FORMATS.iter().map(|format| format.prefix);
    let infixes = INFIX_FORMATS.iter().map(|format| format.infix);
    AhoCorasick::builder().match_kind(MatchKind::Standard).build(prefixes.chain(infixes)).ok()
});

/// Finds the tokens of a text.
pub(crate) fn find(text: &str) -> Vec<SecretMatch> {
    let mut found = Vec::new();
    let Some(literals) = &*LITERALS else { return found };
    let bytes = text.as_bytes();
    for hit in literals.find_overlapping_iter(text) {
        let at = hit.pattern().as_usize();
        let secret = match PREFIX_FORMATS.get(at) {
            Some(format) => format.matched(bytes, hit.start()),
            None => INFIX_FORMATS
                .get(at - PREFIX_FORMATS.len())
                .and_then(|format| format.matched(bytes, hit.start())),
        };
        found.extend(secret);
    }
    found
}

impl PrefixFormat {
    fn matched(&self, text: &[u8], start: usize) -> Option<SecretMatch> {
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let opens = self.prefix.bytes().next().is_some_and(is_word);
        if opens && start.checked_sub(1).is_some_and(|before| is_word(text[before])) {
            return None;
        }
        let body = start + self.prefix.len();
        let end = match_parts(text, body, self.parts)?;
        let is_token = longest_run(text, body, end, self.parts).is_none_or(|(run, alphabet)| {
            looks_random(run, alphabet) && (!self.is_weak() || alternates(run, alphabet))
        });
        is_token.then_some(SecretMatch { kind: self.kind, range: start..end })
    }

    /// Returns whether the literal is weak evidence, so that an identifier may start with it.
    fn is_weak(&self) -> bool {
        let is_short = self.prefix.len() <= 3 && !matches!(self.prefix, "hf_" | "re_");
        is_short || WEAK_PREFIXES.contains(&self.prefix)
    }
}

impl InfixFormat {
    fn matched(&self, text: &[u8], at: usize) -> Option<SecretMatch> {
        let (alphabet, min, max) = self.before;
        let length = text[..at].iter().rev().take(max + 1).take_while(|byte| alphabet.has(**byte)).count();
        if !(min..=max).contains(&length) {
            return None;
        }
        let end = match_parts(text, at + self.infix.len(), self.parts)?;
        let start = at - length;
        looks_random(&text[start..at], alphabet).then_some(SecretMatch { kind: self.kind, range: start..end })
    }
}

/// End of the parts that start at `from`, if all match.
fn match_parts(text: &[u8], from: usize, parts: &[TokenPart]) -> Option<usize> {
    let Some((part, rest)) = parts.split_first() else { return Some(from) };
    match *part {
        TokenPart::Lit(literal) => {
            text[from..].starts_with(literal.as_bytes()).then_some(())?;
            match_parts(text, from + literal.len(), rest)
        }
        TokenPart::Run(alphabet, min, max) => {
            let run = text[from..].iter().take(max.saturating_add(1));
            let length = run.take_while(|byte| alphabet.has(**byte)).count();
            let next = rest.first().and_then(|part| match part {
                TokenPart::Lit(literal) => literal.bytes().next(),
                TokenPart::Run(..) => None,
            });
            match next {
                // The literal may start with a character of the run.
                Some(byte) if alphabet.has(byte) => (min..=length.min(max))
                    .rev()
                    .filter(|length| text.get(from + length) == Some(&byte))
                    .find_map(|length| match_parts(text, from + length, rest)),
                _ if length > max => None,
                Some(_) => (length >= min).then(|| match_parts(text, from + length, rest))?,
                None => {
                    // Trailing punctuation is not part of a token.
                    let is_end = |byte: &&u8| matches!(byte, b'.' | b'-' | b'/');
                    let ending = text[from..from + length].iter().rev().take_while(is_end).count();
                    let length = length - ending;
                    (length >= min).then_some(from + length)
                }
            }
        }
    }
}

/// Longest stretch between literals of a token, and the alphabet of the longest run.
fn longest_run<'a>(
    text: &'a [u8],
    from: usize,
    end: usize,
    parts: &[TokenPart],
) -> Option<(&'a [u8], Alphabet)> {
    let runs = parts.iter().filter_map(|part| match *part {
        TokenPart::Run(alphabet, min, _) => Some((min, alphabet)),
        TokenPart::Lit(_) => None,
    });
    let (_, alphabet) = runs.max_by_key(|(min, _)| *min)?;
    let stretches = text[from..end].split(|byte| !alphabet.has(*byte));
    Some((stretches.max_by_key(|stretch| stretch.len())?, alphabet))
}

/// Returns whether a run is more than words: a random one of this length has digits, or letters of both cases.
fn looks_random(run: &[u8], alphabet: Alphabet) -> bool {
    if run.len() < CHECKED_CHARACTERS_MIN {
        return true;
    }
    let has = |is: fn(&u8) -> bool| run.iter().any(is);
    match alphabet {
        Alphabet::Digit | Alphabet::Base32 => true,
        Alphabet::LowerHex | Alphabet::LowerAlnum | Alphabet::UpperAlnum => {
            has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic)
        }
        _ => {
            let is_varied = run.iter().any(|byte| *byte != run[0]);
            is_varied
                && (has(u8::is_ascii_digit) || (has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase)))
        }
    }
}

/// Returns whether the classes of characters alternate as in random text and not as in `camelCaseNames`: random letters
/// and digits change class at six of ten characters, identifiers at three.
fn alternates(run: &[u8], alphabet: Alphabet) -> bool {
    if matches!(
        alphabet,
        Alphabet::Digit
            | Alphabet::Base32
            | Alphabet::LowerHex
            | Alphabet::Hex
            | Alphabet::LowerAlnum
            | Alphabet::UpperAlnum
    ) {
        return true;
    }
    let class = |byte: u8| match byte {
        b'0'..=b'9' => 0,
        b'a'..=b'z' => 1,
        b'A'..=b'Z' => 2,
        _ => 3,
    };
    let changes = run.windows(2).filter(|pair| class(pair[0]) != class(pair[1])).count();
    run.iter().any(u8::is_ascii_digit) && changes * 100 >= run.len() * 42
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_literal_is_in_the_automaton() {
        let automaton = LITERALS.as_ref().unwrap();
        assert_eq!(automaton.patterns_len(), PREFIX_FORMATS.len() + INFIX_FORMATS.len());
    }

    #[test]
    fn the_table_covers_at_least_160_formats() {
        let prefixes = PREFIX_FORMATS.iter().map(|format| format.prefix);
        let all: BTreeSet<&str> = prefixes.chain(INFIX_FORMATS.iter().map(|format| format.infix)).collect();
        let kinds: BTreeSet<&str> = PREFIX_FORMATS
            .iter()
            .map(|format| format.kind)
            .chain(INFIX_FORMATS.iter().map(|format| format.kind))
            .collect();
        println!("{} formats by literal, of {} kinds", all.len(), kinds.len());
        assert!(all.len() >= 160, "{}", all.len());
    }

    #[test]
    fn a_run_is_whole_or_none() {
        assert!(find("AKIAIOSFODNN7EXAMPLE").len() == 1);
        assert!(find("AKIAIOSFODNN7EXAMPLEX").is_empty(), "one more character is another word");
        assert!(find("XAKIAIOSFODNN7EXAMPLE").is_empty(), "in the middle of a word");
        assert!(find("npm_configuration_directory_of_the_user_here").is_empty(), "words");
    }
}
