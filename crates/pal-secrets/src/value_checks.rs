//! Checks of single values: placeholders, random text, passwords.

/// Minimum bits per character of a random value next to a keyword.
const RANDOM_BITS: f64 = 3.0;
/// Minimum bits per character of a random value near a keyword.
const RANDOM_BITS_NEAR: f64 = 3.6;
/// Minimum characters of a value next to `token`, `secret` or `key`.
pub(crate) const VALUE_CHARACTERS: usize = 16;
/// Minimum characters of a value near such a keyword.
pub(crate) const NEAR_CHARACTERS: usize = 20;
/// Maximum characters of an identifier component that need not be a word: `o200k`, `v2`.
const SHORT_PART: usize = 5;
/// Minimum characters of a password with special characters; one more without.
const PASSWORD_CHARACTERS: usize = 6;

/// Prefixes of placeholders: variables, paths, URLs, checksums.
const PLACEHOLDER_STARTS: [&str; 20] = [
    "$", "<", "{", "[", "%", "~/", "./", "../", "@", "&", "*", "…", "env.", "http://", "https://", "sha1-",
    "sha256", "sha512", "sha384", "\\",
];

/// Substrings of expressions and placeholder texts.
const PLACEHOLDER_PARTS: [&str; 23] = [
    "(",
    ")",
    "::",
    "${",
    "{{",
    "}}",
    "<",
    ">",
    "process.env",
    "environ",
    "getenv",
    "...",
    "…",
    "secrets.",
    "****",
    "xxxx",
    "your",
    "example",
    "placeholder",
    "changeme",
    "redacted",
    "dummy",
    "foobar",
];

/// Placeholder words in documents.
const PLACEHOLDER_WORDS: [&str; 13] = [
    "password", "passwd", "pass", "pwd", "secret", "token", "user", "username", "none", "null", "true",
    "false", "string",
];

/// Prefixes of ids from model providers.
const ID_STARTS: [&str; 14] = [
    "toolu_",
    "srvtoolu_",
    "req_",
    "msg_",
    "call_",
    "resp_",
    "chatcmpl-",
    "run_",
    "thread_",
    "asst_",
    "file-",
    "rs_",
    "fc_",
    "container_",
];

/// Returns whether a value is a placeholder: a variable, a call, a path or a placeholder word.
pub(crate) fn is_placeholder(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    // Base64 may start with a slash and often ends with `=`.
    let is_absolute = value.starts_with('/') && !value.ends_with('=');
    is_absolute
        || PLACEHOLDER_STARTS.iter().any(|start| lower.starts_with(start))
        || PLACEHOLDER_PARTS.iter().any(|part| lower.contains(part))
        || PLACEHOLDER_WORDS.contains(&lower.as_str())
        || value.chars().all(|letter| value.starts_with(letter))
}

/// Returns whether a value next to a password keyword may be one: letters and digits, or special characters.
pub(crate) fn is_password(value: &str) -> bool {
    let has = |is: fn(&char) -> bool| value.chars().any(|letter| is(&letter));
    let [letters, digits] = [has(|letter| letter.is_alphabetic()), has(|letter| letter.is_ascii_digit())];
    let signs = has(|letter| "!@#$%^&*+?~".contains(*letter));
    let count = value.chars().count();
    let is_mixed = (letters && digits && count > PASSWORD_CHARACTERS)
        || (signs && count >= PASSWORD_CHARACTERS && (letters || digits));
    is_mixed && !is_placeholder(value) && !is_path(value) && !is_quantity(value)
}

/// Returns whether a value in an unambiguous position is a password.
pub(crate) fn is_explicit_password(value: &str) -> bool {
    value.chars().count() >= 4 && !is_placeholder(value)
}

/// Returns whether a value next to a key keyword looks random.
pub(crate) fn is_key(value: &str) -> bool {
    is_random(value, VALUE_CHARACTERS, RANDOM_BITS)
}

/// Returns whether a value near such a keyword looks random. A hash or id there does not count.
pub(crate) fn is_key_nearby(value: &str) -> bool {
    let is_hash = value.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    !is_hash && is_random(value, NEAR_CHARACTERS, RANDOM_BITS_NEAR)
}

fn is_random(value: &str, characters: usize, bits: f64) -> bool {
    let has = |is: fn(&u8) -> bool| value.bytes().any(|byte| is(&byte));
    value.len() >= characters
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_alphabetic)
        && entropy(value) >= bits
        && !is_placeholder(value)
        && !is_path(value)
        && !is_identifier(value)
        && !ID_STARTS.iter().any(|start| value.starts_with(start))
}

/// Returns whether a value is made of words with some numbers: `max_tokens_per_request_v2`,
/// `claude-opus-5-5`.
fn is_identifier(value: &str) -> bool {
    let parts: Vec<&str> = value.split(['_', '-', '.', ':', '/']).filter(|part| !part.is_empty()).collect();
    let is_word = |part: &&str| {
        let letters = part.trim_end_matches(|letter: char| letter.is_ascii_digit());
        let longest =
            letters.split(|letter: char| letter.is_ascii_uppercase()).map(str::len).max().unwrap_or(0);
        letters.chars().all(char::is_alphabetic)
            && longest < VALUE_CHARACTERS
            && is_cased_like_a_word(letters)
    };
    let letters = |parts: &mut dyn Iterator<Item = &&str>| parts.map(|part| part.len()).sum::<usize>();
    let words = letters(&mut parts.iter().filter(|part| is_word(part)));
    let others_are_short = parts.iter().all(|part| is_word(part) || part.len() <= SHORT_PART);
    others_are_short && words * 3 >= letters(&mut parts.iter()) * 2
}

/// Returns whether capitals start words: `readTokenFast` but not `aBcDeFgH`.
fn is_cased_like_a_word(letters: &str) -> bool {
    let capitals = letters.chars().filter(char::is_ascii_uppercase).count();
    capitals == letters.len() || capitals * 3 <= letters.len().max(3)
}

fn is_path(value: &str) -> bool {
    let ending = value.rsplit_once('.').map_or("", |(_, ending)| ending);
    let is_file = (1..=5).contains(&ending.len()) && ending.chars().all(|letter| letter.is_ascii_lowercase());
    let parts = value.split('/').count();
    let is_identifier_or_empty = |part: &str| part.is_empty() || is_identifier(part);
    (is_file && value.contains('/')) || (parts > 2 && value.split('/').all(is_identifier_or_empty))
}

/// Returns whether a value is a quantity: `12_000`, `30s`, `8kb`, `v1.2.3`, `2026-11-15T09:00:00Z`.
fn is_quantity(value: &str) -> bool {
    let digits = value.chars().filter(char::is_ascii_digit).count();
    let letters = value.chars().filter(|letter| letter.is_alphabetic()).count();
    letters <= 3
        && digits * 2 > value.chars().count()
        && !value.contains(['!', '@', '#', '$', '%', '^', '&', '*'])
}

/// Entropy in bits per byte.
fn entropy(value: &str) -> f64 {
    let mut counts = [0u32; 256];
    value.bytes().for_each(|byte| counts[usize::from(byte)] += 1);
    let all = value.len() as f64;
    let bits = |count: &u32| -(f64::from(*count) / all) * (f64::from(*count) / all).log2();
    counts.iter().filter(|count| **count > 0).map(bits).sum()
}
