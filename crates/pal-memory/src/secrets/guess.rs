//! Secrets without a form of their own: what looks random beside a word that tells.

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::Regex;

use super::Secret;

/// Bits a character from which on a value with letters and digits looks random.
const RANDOM_BITS: f64 = 3.0;
/// The same where the word only stands near.
const RANDOM_BITS_NEAR: f64 = 3.6;
/// Characters that a value must have beside `token`, `secret`, `key` …
const VALUE_CHARACTERS: usize = 16;
/// Characters that a value must have where the word only stands near.
const NEAR_CHARACTERS: usize = 20;
/// Characters of a part of an identifier that need be no word: `o200k`, `v2`.
const SHORT_PART: usize = 5;
/// Characters of a password.
const PASSWORD_CHARACTERS: usize = 6;

/// Words for what a person types to get in.
const PASSWORD: &str = "password|passwd|pwd|passphrase|passcode|passwort|kennwort|mot de passe|mdp|contraseña|senha|parola|\
                        wachtwoord|lösenord|adgangskode|passord|salasana|hasło|heslo|jelszó|şifre|пароль|كلمة المرور|पासवर्ड|\
                        密码|密碼|口令|パスワード|暗証番号|비밀번호|암호";

/// Words for what a program shows to get in.
const KEY: &str = "secret|token|api[ _-]?keys?|apikeys?|access[ _-]?keys?|private[ _-]?keys?|signing[ _-]?keys?|\
                   encryption[ _-]?keys?|master[ _-]?keys?|auth[ _-]?keys?|credentials?|client[ _-]?secret|\
                   geheimnis|api-schlüssel|zugangsschlüssel|jeton|clé secrète|clé api|clave secreta|clave api|secreto|\
                   chave secreta|chave api|chiave segreta|chiave api|sleutel|klucz|секрет|ключ|токен|密钥|密鑰|令牌|秘密鍵|\
                   トークン|토큰|비밀키";

/// Between a word and its value.
const JOINS: &str = r#"["'`*]*\s*(?:=>|:=|==?|[:：]|\b(?:is|are|was|ist|lautet|est|es|é|è|är|jest)\b:?|は|是|为|為)\s*["'`*]*"#;

static BESIDE_PASSWORD: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(&format!(r#"(?i)(?:{PASSWORD})[A-Za-z0-9_-]{{0,12}}{JOINS}([^\s"'`,;]{{6,}})"#)).ok()
});

static BESIDE_KEY: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(&format!(r#"(?i)(?:{KEY})[A-Za-z0-9_-]{{0,12}}{JOINS}([A-Za-z0-9_~+/=.:!@#$%^&*-]{{16,}})"#))
        .ok()
});

static NEAR: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(&format!(
        r#"(?i)(?:{PASSWORD}|{KEY})[^\n]{{0,40}}?(?:^|[\s"'`(=:：])([A-Za-z0-9_~+/=-]{{20,}})"#
    ))
    .ok()
});

/// All secrets that are told by a word beside them.
pub(super) fn secrets(text: &str) -> Vec<Secret> {
    let mut found = Vec::new();
    let mut look = |form: &Option<Regex>, what, is_secret: fn(&str) -> bool| {
        let captures = form.iter().flat_map(|form| form.captures_iter(text));
        for value in captures.filter_map(|captures| captures.get(1)) {
            let end = value.as_str().trim_end_matches(['.', ',', ')', ':']).len();
            if is_secret(&value.as_str()[..end]) {
                found.push(Secret { what, place: value.start()..value.start() + end });
            }
        }
    };
    look(&BESIDE_PASSWORD, "password", is_password);
    look(&BESIDE_KEY, "key", is_key);
    look(&NEAR, "key", is_key_nearby);
    found
}

/// Whether a value stands for another: a variable, a call, a path, a word to be replaced.
pub(super) fn is_placeholder(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let begins = [
        "$", "<", "{", "[", "%", "/", "~/", "./", "../", "@", "&", "*", "…", "env.", "http://", "https://",
        "sha1-", "sha256", "sha512", "sha384",
    ];
    let holds = [
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
    ];
    let words = ["xxxx", "your", "example", "placeholder", "changeme", "redacted", "dummy", "foobar"];
    let plain = [
        "password", "passwd", "pass", "pwd", "secret", "token", "user", "username", "none", "null", "true",
        "false", "string",
    ];
    let is_one_character = value.chars().all(|c| value.starts_with(c));
    begins.iter().any(|begin| lower.starts_with(begin))
        || holds.iter().any(|part| lower.contains(part))
        || words.iter().any(|word| lower.contains(word))
        || plain.contains(&lower.as_str())
        || is_one_character
}

fn is_password(value: &str) -> bool {
    let has = |is: fn(&char) -> bool| value.chars().any(|c| is(&c));
    let [letters, digits] = [has(|c| c.is_alphabetic()), has(|c| c.is_ascii_digit())];
    let signs = has(|c| "!@#$%^&*+?~".contains(*c));
    let count = value.chars().count();
    let is_mixed = (letters && digits && count > PASSWORD_CHARACTERS)
        || (signs && count >= PASSWORD_CHARACTERS && (letters || digits));
    is_mixed && !is_placeholder(value) && !is_path(value) && !is_quantity(value)
}

fn is_key(value: &str) -> bool {
    is_random(value, VALUE_CHARACTERS, RANDOM_BITS)
}

/// A hash or an id near such a word is not yet a secret.
fn is_key_nearby(value: &str) -> bool {
    let is_hash = value.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    is_random(value, NEAR_CHARACTERS, RANDOM_BITS_NEAR) && !is_hash
}

fn is_random(value: &str, characters: usize, bits: f64) -> bool {
    let has = |is: fn(&u8) -> bool| value.bytes().any(|c| is(&c));
    let looks = has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic) && entropy(value) >= bits;
    value.len() >= characters && looks && !is_placeholder(value) && !is_path(value) && !is_identifier(value)
}

/// Words with a number here and there: `max_tokens_per_request_v2`, `claude-opus-5-5`.
fn is_identifier(value: &str) -> bool {
    let parts: Vec<&str> = value.split(['_', '-', '.', ':', '/']).filter(|part| !part.is_empty()).collect();
    let is_word = |part: &&str| {
        let letters = part.trim_end_matches(|c: char| c.is_ascii_digit());
        let longest = letters.split(|c: char| c.is_ascii_uppercase()).map(str::len).max().unwrap_or(0);
        letters.chars().all(char::is_alphabetic)
            && longest < VALUE_CHARACTERS
            && is_cased_like_a_word(letters)
    };
    let letters = |parts: &mut dyn Iterator<Item = &&str>| parts.map(|part| part.len()).sum::<usize>();
    let words = letters(&mut parts.iter().filter(|part| is_word(part)));
    let others_are_short = parts.iter().all(|part| is_word(part) || part.len() <= SHORT_PART);
    others_are_short && words * 3 >= letters(&mut parts.iter()) * 2
}

/// Whether great letters begin words: `readTokenFast` but not `aBcDeFgH`.
fn is_cased_like_a_word(letters: &str) -> bool {
    let great = letters.chars().filter(char::is_ascii_uppercase).count();
    great == letters.len() || great * 3 <= letters.len().max(3)
}

fn is_path(value: &str) -> bool {
    let ending = value.rsplit_once('.').map_or("", |(_, ending)| ending);
    let is_file = (1..=5).contains(&ending.len()) && ending.chars().all(|c| c.is_ascii_lowercase());
    let parts = value.split('/').count();
    (is_file && value.contains('/')) || (parts > 2 && value.split('/').all(is_identifier_or_empty))
}

fn is_identifier_or_empty(part: &str) -> bool {
    part.is_empty() || is_identifier(part)
}

/// `12_000`, `30s`, `8kb`, `v1.2.3`, `2026-11-15T09:00:00Z`.
fn is_quantity(value: &str) -> bool {
    let digits = value.chars().filter(char::is_ascii_digit).count();
    let letters = value.chars().filter(|c| c.is_alphabetic()).count();
    letters <= 3
        && digits * 2 > value.chars().count()
        && !value.contains(['!', '@', '#', '$', '%', '^', '&', '*'])
}

/// Bits a character.
fn entropy(value: &str) -> f64 {
    let mut counts: HashMap<char, f64> = HashMap::new();
    value.chars().for_each(|c| *counts.entry(c).or_default() += 1.0);
    let all: f64 = counts.values().sum();
    counts.values().map(|count| -(count / all) * (count / all).log2()).sum()
}
