//! Values next to keywords: `password: …`, `API_KEY=…`, `<secret>…</secret>`, "the password for staging is
//! …".

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};
use regex::Regex;

use crate::SecretMatch;
use crate::value_checks::{NEAR_CHARACTERS, is_explicit_password, is_key, is_key_nearby, is_password};

/// Bytes after a keyword that are searched.
const WINDOW: usize = 400;
/// Maximum characters between a keyword and a random value.
const NEAR_DISTANCE: usize = 40;

/// Keywords for passwords, in lower case and in several languages.
const PASSWORD_WORDS: &[&str] = &[
    "password",
    "passwd",
    "pwd",
    "passphrase",
    "passcode",
    "pass_phrase",
    "passwort",
    "kennwort",
    "mot de passe",
    "mdp",
    "contraseña",
    "contrasena",
    "senha",
    "parola",
    "wachtwoord",
    "lösenord",
    "adgangskode",
    "passord",
    "salasana",
    "hasło",
    "heslo",
    "jelszó",
    "şifre",
    "Şifre",
    "пароль",
    "Пароль",
    "كلمة المرور",
    "पासवर्ड",
    "密码",
    "密碼",
    "口令",
    "パスワード",
    "暗証番号",
    "비밀번호",
    "암호",
];

/// Short keywords for passwords, which count only as a whole name or after `_`.
const SHORT_PASSWORD_WORDS: &[&str] = &["pass", "passw", "pw", "psk"];

/// Keywords for keys and tokens.
const KEY_WORDS: &[&str] = &[
    "secret",
    "token",
    "credential",
    "apikey",
    "api key",
    "api_key",
    "api-key",
    "access key",
    "access_key",
    "access-key",
    "accesskey",
    "private key",
    "private_key",
    "private-key",
    "privatekey",
    "signing key",
    "signing_key",
    "signing-key",
    "signingkey",
    "encryption key",
    "encryption_key",
    "encryption-key",
    "encryptionkey",
    "master key",
    "master_key",
    "master-key",
    "masterkey",
    "auth key",
    "auth_key",
    "auth-key",
    "authkey",
    "app key",
    "app_key",
    "app-key",
    "appkey",
    "application key",
    "application_key",
    "service key",
    "service_key",
    "service-key",
    "account key",
    "account_key",
    "accountkey",
    "shared key",
    "shared_key",
    "sharedkey",
    "preshared key",
    "preshared_key",
    "presharedkey",
    "session key",
    "session_key",
    "webhook key",
    "webhook_key",
    "subscription key",
    "subscription_key",
    "subscriptionkey",
    "storage key",
    "storage_key",
    "deploy key",
    "deploy_key",
    "license key",
    "license_key",
    "licensekey",
    "admin key",
    "admin_key",
    "hmac key",
    "hmac_key",
    "sas key",
    "_pat",
    "dsn",
    "connection string",
    "connection_string",
    "connectionstring",
    "geheimnis",
    "api-schlüssel",
    "zugangsschlüssel",
    "jeton",
    "clé secrète",
    "clé api",
    "clave secreta",
    "clave api",
    "secreto",
    "chave secreta",
    "chave api",
    "chiave segreta",
    "chiave api",
    "sleutel",
    "klucz",
    "секрет",
    "ключ",
    "токен",
    "Секрет",
    "Ключ",
    "Токен",
    "密钥",
    "密鑰",
    "令牌",
    "秘密鍵",
    "トークン",
    "토큰",
    "비밀키",
];

/// Text between a keyword and its value. The keyword may continue (`passwordHash`), be closed by quotes or
/// brackets, be an attribute (`key="Password" value="…"`), or name its purpose ("password for staging is …").
const JOIN: &str = r#"\A[A-Za-z0-9_-]{0,12}(?:\\?["'`*\])])*(?:\s(?:for|of|to|on|at|in|für|pour|para|de|von)\s[^\n:=]{1,40}?)?(?:\s*(?:=>|:=|==?|[:：])|\s*\b(?:is|are|was|ist|lautet|est|es|é|è|är|jest)\b:?|は|是|为|為|\\?["']\s*value\s*=|\\?["']?\s*\n\s*(?:value|Value)\s*:)\s*(?:\\?["'`*])*"#;

/// Text between the name of an element and its content.
const ELEMENT: &str =
    r#"\A[A-Za-z0-9_.-]{0,12}(?:\s[^<>]{0,80})?>\s*(?:<!\[CDATA\[)?([^<\s\]]{3,})(?:\]\]>)?\s*</"#;

/// A flag of a command and its value: `--db-password hunter2!`.
const FLAG: &str = r#"\A[A-Za-z0-9-]{0,12}(?:=|\s+)["']?"#;

/// Pattern of an unquoted password.
const PASSWORD_VALUE: &str = r#"([^\s"'`,;]{6,})"#;
const KEY_VALUE: &str = r"([A-Za-z0-9_~+/=.:!@#$%^&*|-]{16,})";

static AFTER_PASSWORD: LazyLock<Option<Regex>> =
    LazyLock::new(|| compile(&format!("{JOIN}{PASSWORD_VALUE}")));
static AFTER_KEY: LazyLock<Option<Regex>> = LazyLock::new(|| compile(&format!("{JOIN}{KEY_VALUE}")));
static IN_ELEMENT: LazyLock<Option<Regex>> = LazyLock::new(|| compile(ELEMENT));
static PASSWORD_FLAG: LazyLock<Option<Regex>> = LazyLock::new(|| compile(&format!("{FLAG}{PASSWORD_VALUE}")));
static KEY_FLAG: LazyLock<Option<Regex>> = LazyLock::new(|| compile(&format!("{FLAG}{KEY_VALUE}")));

fn compile(pattern: &str) -> Option<Regex> {
    Regex::new(&format!("(?i){}", pattern.replace(r"\b", r"(?-u:\b)"))).ok()
}

/// All keywords, those for passwords first.
static WORDS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let words = PASSWORD_WORDS.iter().chain(SHORT_PASSWORD_WORDS).chain(KEY_WORDS);
    AhoCorasick::builder().ascii_case_insensitive(true).match_kind(MatchKind::Standard).build(words).ok()
});

/// Keyword in a text.
struct Keyword {
    range: Range<usize>,
    is_password: bool,
}

/// Returns whether a name contains a keyword.
pub(crate) fn has_keyword(name: &str) -> bool {
    keywords(name).next().is_some()
}

fn keywords(text: &str) -> impl Iterator<Item = Keyword> + '_ {
    let hits = WORDS.iter().flat_map(move |words| words.find_overlapping_iter(text));
    hits.filter_map(move |hit| {
        let (at, range) = (hit.pattern().as_usize(), hit.range());
        let short = PASSWORD_WORDS.len()..PASSWORD_WORDS.len() + SHORT_PASSWORD_WORDS.len();
        if short.contains(&at) && !stands_alone(text.as_bytes(), &range) {
            return None;
        }
        Some(Keyword { range, is_password: at < short.end })
    })
}

/// Returns whether a short keyword is a name or its last component: `DB_PASS=`, `"pass":`, but not `bypass`,
/// `pass_through` or the `PASS: TestAll` of a test run.
fn stands_alone(text: &[u8], range: &Range<usize>) -> bool {
    let before = range.start.checked_sub(1).map(|at| text[at]);
    let is_open = before.is_none_or(|byte| !byte.is_ascii_alphanumeric());
    let is_part = before.is_some_and(|byte| matches!(byte, b'_' | b'"' | b'\'' | b'<'));
    let is_verdict = text[range.clone()].eq_ignore_ascii_case(b"pass") && !is_part;
    let behind = text.get(range.end).copied();
    is_open
        && behind.is_some_and(|byte| match byte {
            b'=' | b'"' | b'\'' | b'>' => true,
            b':' | b' ' | b'\\' => !is_verdict,
            _ => false,
        })
}

/// Finds values next to keywords. `markers` are the markers of an earlier masking.
pub(crate) fn find(text: &str, markers: &[Range<usize>], found: &mut Vec<SecretMatch>) {
    for keyword in keywords(text) {
        let next_marker = markers.partition_point(|marker| marker.end <= keyword.range.start);
        let marker = markers.get(next_marker);
        if marker.is_some_and(|marker| marker.start < keyword.range.end) {
            continue;
        }
        let from = keyword.range.end;
        let limit = marker.map_or(text.len(), |marker| marker.start).min(from + WINDOW);
        let window = &text[from..text.floor_char_boundary(limit)];
        let mut take = |value: regex::Match<'_>, accepts: fn(&str) -> bool| {
            let value_text = value.as_str();
            // After `&` comes the next URL parameter.
            let parameter = value_text.find('&').filter(|at| value_text[*at..].contains('='));
            // An escaped line end ends a value.
            let escape = ["\\n", "\\r", "\\t"].iter().filter_map(|escape| value_text.find(escape)).min();
            let end = parameter.into_iter().chain(escape).min().unwrap_or(value_text.len());
            let value_text = &value_text[..end];
            let length = value_text.trim_end_matches(['.', ',', ')', ':', ']', '\\', '>']).len();
            let is_taken = accepts(&value_text[..length]);
            if is_taken {
                let start = from + value.start();
                let kind = if keyword.is_password { "password" } else { "key" };
                found.push(SecretMatch { kind, range: start..start + length });
            }
            is_taken
        };
        let (beside, flag): (_, _) = match keyword.is_password {
            true => (&AFTER_PASSWORD, &PASSWORD_FLAG),
            false => (&AFTER_KEY, &KEY_FLAG),
        };
        let accepts = if keyword.is_password { is_password } else { is_key };
        if take_first(beside, window, accepts, &mut take) {
            continue;
        }
        let opening = opening_of(text.as_bytes(), keyword.range.start);
        if opening == Some(b'<') {
            let accepts = if keyword.is_password { is_explicit_password } else { is_key };
            if take_first(&IN_ELEMENT, window, accepts, &mut take) {
                continue;
            }
        }
        if opening == Some(b'-') && take_first(flag, window, accepts, &mut take) {
            continue;
        }
        if let Some(range) = random_nearby(window) {
            found.push(SecretMatch { kind: "key", range: from + range.start..from + range.end });
        }
    }
}

fn take_first(
    pattern: &LazyLock<Option<Regex>>,
    window: &str,
    accepts: fn(&str) -> bool,
    take: &mut impl FnMut(regex::Match<'_>, fn(&str) -> bool) -> bool,
) -> bool {
    let captures = pattern.as_ref().and_then(|pattern| pattern.captures(window));
    captures.and_then(|captures| captures.get(1)).is_some_and(|value| take(value, accepts))
}

/// Sign before the name that contains a keyword: `<` of an element, `-` of a flag.
fn opening_of(text: &[u8], at: usize) -> Option<u8> {
    let is_name = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b':' | b'-');
    let name = text[..at].iter().rev().take(40).take_while(is_name).count();
    let start = at - name;
    if text[start..at].starts_with(b"--") {
        return Some(b'-');
    }
    start.checked_sub(1).map(|before| text[before]).filter(|byte| *byte == b'<')
}

/// Random value on the same line, shortly after a keyword.
fn random_nearby(window: &str) -> Option<Range<usize>> {
    let line = window.split('\n').next().unwrap_or_default();
    let is_part =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'~' | b'+' | b'/' | b'=' | b'-');
    let bytes = line.as_bytes();
    let mut at = 0;
    let mut opens = false;
    while at < bytes.len() {
        // The next field or statement has a name of its own.
        if matches!(bytes[at], b'{' | b'}' | b',' | b';') {
            return None;
        }
        if !is_part(bytes[at]) {
            // Characters right before a value, including the last byte of `：`.
            opens = matches!(bytes[at], b' ' | b'\t' | b'"' | b'\'' | b'`' | b'(' | b'=' | b':' | 0x9a);
            at += 1;
            continue;
        }
        let length = bytes[at..].iter().take_while(|byte| is_part(**byte)).count();
        // `=` opens a value, and belongs to base 64 as well.
        let skipped = if opens {
            0
        } else {
            bytes[at..at + length].iter().position(|byte| *byte == b'=').map_or(length, |sign| sign + 1)
        };
        let (start, rest) = (at + skipped, length - skipped);
        if line[..start].chars().count() > NEAR_DISTANCE {
            return None;
        }
        if rest >= NEAR_CHARACTERS {
            let value = &line[start..start + rest];
            return is_key_nearby(value).then_some(start..start + rest);
        }
        at += length;
        opens = false;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        for pattern in [&AFTER_PASSWORD, &AFTER_KEY, &IN_ELEMENT, &PASSWORD_FLAG, &KEY_FLAG] {
            assert!(pattern.is_some());
        }
        assert!(WORDS.is_some());
    }

    #[test]
    fn short_words_count_only_as_names() {
        assert!(has_keyword("DB_PASS=") && has_keyword("\"pass\":"));
        assert!(!has_keyword("bypass=1") && !has_keyword("pass_through=1") && !has_keyword("compass: 1"));
    }
}
