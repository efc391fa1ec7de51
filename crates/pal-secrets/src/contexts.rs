//! Values in telling contexts: key blocks, URLs, headers, configuration files, shell commands.
//!
//! A context is a literal and a pattern that begins with it. The literals go into one automaton; a pattern is tried only
//! where its literal stands, on a bounded window.

use std::sync::{LazyLock, OnceLock};

use aho_corasick::{AhoCorasick, MatchKind};
use regex::Regex;

use crate::SecretMatch;
use crate::value_checks::{is_explicit_password, is_key, is_password, is_placeholder};

/// Bytes after a literal that its pattern reads.
const WINDOW: usize = 600;
/// The same for key blocks.
const BLOCK_WINDOW: usize = 64 * 1024;

/// Additional check of a matched value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ValueCheck {
    /// No check.
    Any,
    /// No variable, path or word to be replaced.
    NotPlaceholder,
    /// No placeholder, with a digit.
    HasDigit,
    /// Plausible password in an unambiguous position.
    Explicit,
    /// Letters and digits, or signs.
    Password,
    /// Random-looking value.
    Random,
}

struct SecretContext {
    kind: &'static str,
    /// Literal in lower case; matching ignores case.
    literal: &'static str,
    /// Pattern from the literal on. Its first group is the secret; without one, the whole match.
    pattern: &'static str,
    check: ValueCheck,
}

const fn context(
    kind: &'static str,
    literal: &'static str,
    pattern: &'static str,
    check: ValueCheck,
) -> SecretContext {
    SecretContext { kind, literal, pattern, check }
}

const PRIVATE_KEY: &str = "private key";
const API_KEY: &str = "api key";
const AUTHORIZATION: &str = "authorization";
const PASSWORD: &str = "password";
const SIGNATURE: &str = "signed address";
const WEBHOOK: &str = "webhook address";
const SESSION: &str = "session cookie";

/// Text between the name of a header or field and its value: optional quotes and sign, possibly escaped.
const HEADER: &str = r#"\\?["']?\s*[:=]\s*\\?["']?([A-Za-z0-9._~+/=|%-]{12,})"#;

/// Text between the name of a cookie and its value.
const COOKIE: &str = r#"=([A-Za-z0-9._~+/%:-]{16,})"#;

const CONTEXTS: &[SecretContext] = &[
    context(
        PRIVATE_KEY,
        "-----begin ",
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?s:.*?)-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----",
        ValueCheck::Any,
    ),
    context(
        PRIVATE_KEY,
        "-----begin ",
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:\s|\\n|>|[A-Za-z0-9-]+: [^\n]*\n)*(?:[A-Za-z0-9+/=]{16,}(?:\s|\\n|>)*)+",
        ValueCheck::Any,
    ),
    context(
        PRIVATE_KEY,
        "-----begin ",
        r"-----BEGIN OpenVPN Static key V1-----(?s:.*?)-----END OpenVPN Static key V1-----",
        ValueCheck::Any,
    ),
    context(
        PRIVATE_KEY,
        "private-lines:",
        r"(?i)private-lines: \d+\r?\n(?:[A-Za-z0-9+/=]{16,}\r?\n?)+",
        ValueCheck::Any,
    ),
    context(
        "password in an address",
        "://",
        r#"://[^\s/:@"'<>`]*:([^\s/"'<>`]{3,})@"#,
        ValueCheck::NotPlaceholder,
    ),
    context("token in an address", "://", r#"://([A-Za-z0-9_-]{20,})@"#, ValueCheck::Random),
    context(
        AUTHORIZATION,
        "authorization",
        r#"(?i)authorization\\?["']?\s*[:=,]\s*\\?["']?(?:bearer|basic|token|digest|apikey|api-key|bot|key|sso-key|genie?key)[\s:=]+([A-Za-z0-9._~+/=|:-]{8,})"#,
        ValueCheck::NotPlaceholder,
    ),
    context(
        AUTHORIZATION,
        "authorization",
        r#"(?i)authorization\\?["']?\s*[:=]\s*\\?["']?([A-Za-z0-9._~+/=-]{20,})"#,
        ValueCheck::Random,
    ),
    context(
        "bearer token",
        "bearer",
        r"(?i)bearer\s+([A-Za-z0-9_~+/-][A-Za-z0-9._~+/-]{19,}=*)",
        ValueCheck::HasDigit,
    ),
    // Headers and fields with telling names.
    context(API_KEY, "x-api-key", HEADER, ValueCheck::NotPlaceholder),
    context(API_KEY, "x-auth-token", HEADER, ValueCheck::NotPlaceholder),
    context(API_KEY, "x-auth-key", HEADER, ValueCheck::NotPlaceholder),
    context(API_KEY, "x-access-token", HEADER, ValueCheck::NotPlaceholder),
    context(API_KEY, "x-goog-api-key", HEADER, ValueCheck::NotPlaceholder),
    context(API_KEY, "x-goog-apikey", HEADER, ValueCheck::NotPlaceholder),
    context(API_KEY, "x-rapidapi-key", HEADER, ValueCheck::NotPlaceholder),
    context(API_KEY, "x-functions-key", HEADER, ValueCheck::NotPlaceholder),
    context(API_KEY, "x-vault-token", HEADER, ValueCheck::NotPlaceholder),
    context(API_KEY, "x-figma-token", HEADER, ValueCheck::NotPlaceholder),
    context(API_KEY, "x-shopify-access-token", HEADER, ValueCheck::NotPlaceholder),
    context(API_KEY, "x-postmark-server-token", HEADER, ValueCheck::NotPlaceholder),
    context(API_KEY, "x-subscription-token", HEADER, ValueCheck::NotPlaceholder),
    context(API_KEY, "x-honeycomb-team", HEADER, ValueCheck::NotPlaceholder),
    context(API_KEY, "x-mbx-apikey", HEADER, ValueCheck::NotPlaceholder),
    context(API_KEY, "x-algolia-api-key", HEADER, ValueCheck::NotPlaceholder),
    context(API_KEY, "x-typesense-api-key", HEADER, ValueCheck::NotPlaceholder),
    context(API_KEY, "x-plex-token", HEADER, ValueCheck::NotPlaceholder),
    context(API_KEY, "x-redmine-api-key", HEADER, ValueCheck::NotPlaceholder),
    context(API_KEY, "x-parse-master-key", HEADER, ValueCheck::NotPlaceholder),
    context(API_KEY, "x-amz-security-token", HEADER, ValueCheck::NotPlaceholder),
    context(API_KEY, "private-token", HEADER, ValueCheck::HasDigit),
    context(API_KEY, "job-token", HEADER, ValueCheck::HasDigit),
    context(API_KEY, "circle-token", HEADER, ValueCheck::HasDigit),
    context(API_KEY, "dd-api-key", HEADER, ValueCheck::NotPlaceholder),
    context(API_KEY, "dd-application-key", HEADER, ValueCheck::NotPlaceholder),
    context(API_KEY, "fastly-key", HEADER, ValueCheck::HasDigit),
    context(API_KEY, "ocp-apim-subscription-key", HEADER, ValueCheck::NotPlaceholder),
    context(API_KEY, "client-key-data", HEADER, ValueCheck::NotPlaceholder),
    context(API_KEY, "\"auth\"", r#"(?i)"auth"\s*:\s*"([A-Za-z0-9+/]{12,}={0,2})""#, ValueCheck::Random),
    context(API_KEY, "_auth", r"(?i)_auth\s*=\s*([A-Za-z0-9+/]{12,}={0,2})", ValueCheck::Random),
    context("json web key", "\"d\"", r#""d"\s*:\s*"([A-Za-z0-9_-]{43,})""#, ValueCheck::Random),
    // Cloud providers.
    context(
        "aws secret",
        "aws",
        r#"(?i)aws[a-z_ .-]{0,20}(?:secret|key)[a-z_ .-]{0,20}\\?["']?\s*(?:=>|[:=])\s*\\?["']?([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+=]|$)"#,
        ValueCheck::Any,
    ),
    context("azure key", "accountkey=", r"(?i)accountkey=([A-Za-z0-9+/]{40,}={0,2})", ValueCheck::Any),
    context(
        "azure key",
        "sharedaccesskey=",
        r"(?i)sharedaccesskey=([A-Za-z0-9+/]{40,}={0,2})",
        ValueCheck::Any,
    ),
    context(SIGNATURE, "x-amz-signature=", r"(?i)x-amz-signature=([0-9a-f]{64})", ValueCheck::Any),
    context(SIGNATURE, "x-goog-signature=", r"(?i)x-goog-signature=([0-9a-f]{64,})", ValueCheck::Any),
    context("azure signature", "sig=", r"(?i)sig=([A-Za-z0-9%+/]{40,}(?:%3D|=))", ValueCheck::Any),
    // URLs that are secrets themselves.
    context(
        "slack webhook",
        "hooks.slack.com/",
        r"(?i)hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9/_-]{20,})",
        ValueCheck::Any,
    ),
    context(
        "discord webhook",
        "/api/webhooks/",
        r"(?i)/api/webhooks/(\d+/[A-Za-z0-9_-]{40,})",
        ValueCheck::Any,
    ),
    context(
        WEBHOOK,
        "webhook.office.com/",
        r"(?i)webhook\.office\.com/webhookb2/([0-9A-Za-z@/-]{40,})",
        ValueCheck::Any,
    ),
    context(
        WEBHOOK,
        "hooks.zapier.com/",
        r"(?i)hooks\.zapier\.com/hooks/catch/(\d+/[A-Za-z0-9]{5,})",
        ValueCheck::Any,
    ),
    context(
        WEBHOOK,
        "maker.ifttt.com/",
        r"(?i)maker\.ifttt\.com/trigger/[^/\s]+/(?:json/)?with/key/([A-Za-z0-9_-]{20,})",
        ValueCheck::Any,
    ),
    context(
        WEBHOOK,
        "chat.googleapis.com/",
        r"(?i)chat\.googleapis\.com/v1/spaces/([^\s\x22'<>]{40,})",
        ValueCheck::Any,
    ),
    context(API_KEY, "?key=", r"(?i)\?key=([A-Za-z0-9_-]{20,})", ValueCheck::Random),
    context(API_KEY, "&key=", r"(?i)&key=([A-Za-z0-9_-]{20,})", ValueCheck::Random),
    context(API_KEY, "?auth=", r"(?i)\?auth=([A-Za-z0-9_.-]{20,})", ValueCheck::Random),
    context(API_KEY, "&auth=", r"(?i)&auth=([A-Za-z0-9_.-]{20,})", ValueCheck::Random),
    context("authorization code", "?code=", r"(?i)\?code=([A-Za-z0-9_./-]{20,})", ValueCheck::Random),
    context("authorization code", "&code=", r"(?i)&code=([A-Za-z0-9_./-]{20,})", ValueCheck::Random),
    // Session cookies.
    context(SESSION, "sessionid=", COOKIE, ValueCheck::NotPlaceholder),
    context(SESSION, "phpsessid=", COOKIE, ValueCheck::NotPlaceholder),
    context(SESSION, "jsessionid=", COOKIE, ValueCheck::NotPlaceholder),
    context(SESSION, "connect.sid=", COOKIE, ValueCheck::NotPlaceholder),
    context(SESSION, "_session=", COOKIE, ValueCheck::Random),
    context(SESSION, "remember_token=", COOKIE, ValueCheck::NotPlaceholder),
    context(SESSION, "user_session=", COOKIE, ValueCheck::NotPlaceholder),
    context(SESSION, "laravel_session=", COOKIE, ValueCheck::NotPlaceholder),
    context(SESSION, "asp.net_sessionid=", COOKIE, ValueCheck::NotPlaceholder),
    // Password files.
    context(PASSWORD, "machine", r"(?i)machine\s+\S+\s+login\s+\S+\s+password\s+(\S+)", ValueCheck::Explicit),
    context(PASSWORD, "default", r"(?i)default\s+login\s+\S+\s+password\s+(\S+)", ValueCheck::Explicit),
    context(PASSWORD, ":5432:", r":5432:[^:\s]+:[^:\s]+:([^\s:]{4,})", ValueCheck::Explicit),
    context(
        PASSWORD,
        "define(",
        r#"(?i)define\(\s*['"][A-Z_]*(?:password|secret|_key|_salt)[A-Z_]*['"]\s*,\s*['"]([^'"\n]{4,})['"]"#,
        ValueCheck::Explicit,
    ),
    // Shell commands.
    context(
        PASSWORD,
        "curl",
        r#"(?i)curl\b[^\n]{0,200}?\s(?:-u|--user)[\s=]*["']?[^\s:"']+:([^\s"']{4,})"#,
        ValueCheck::NotPlaceholder,
    ),
    context(PASSWORD, "sshpass", r#"(?i)sshpass\s+-p\s*["']?([^\s"']{4,})"#, ValueCheck::Explicit),
    context(
        PASSWORD,
        "mysql",
        r#"(?i)mysql(?:dump|admin|sh|import)?\s[^\n|;]{0,200}?\s?-p["']?([^\s"'-][^\s"']{3,})"#,
        ValueCheck::Password,
    ),
    context(
        PASSWORD,
        "redis-cli",
        r#"(?i)redis-cli\b[^\n|;]{0,120}?\s-a\s+["']?([^\s"']{4,})"#,
        ValueCheck::Explicit,
    ),
    context(
        PASSWORD,
        " login",
        r#"(?i) login\b[^\n|;]{0,200}?\s(?:-p|--password)[\s=]+["']?([^\s"']{4,})"#,
        ValueCheck::Explicit,
    ),
    context(
        PASSWORD,
        "htpasswd",
        r#"(?i)htpasswd\s+-[a-z]*b[a-z]*\s+\S+\s+\S+\s+["']?([^\s"']{4,})"#,
        ValueCheck::Explicit,
    ),
    context(PASSWORD, "-pass", r#"(?i)-pass(?:in|out)?\s+["']?pass:([^\s"']{4,})"#, ValueCheck::Explicit),
    context(
        PASSWORD,
        "smbclient",
        r#"(?i)smbclient\b[^\n]{0,120}?\s-U\s*["']?[^\s%"']+%([^\s"']{4,})"#,
        ValueCheck::Explicit,
    ),
    context(PASSWORD, "net user", r"(?i)net user\s+\S+\s+(\S{4,})\s+/add", ValueCheck::Explicit),
    context(PASSWORD, "unzip", r#"(?i)unzip\s+[^\n]{0,60}?-P\s*["']?([^\s"']{4,})"#, ValueCheck::Explicit),
    context(
        PASSWORD,
        "echo",
        r#"(?i)echo\s+(?:-n\s+)?["']?([^\s"'|]{4,})["']?\s*\|\s*sudo\s+(?:-\S+\s+)*-S"#,
        ValueCheck::Explicit,
    ),
    context(
        PASSWORD,
        "echo",
        r#"(?i)echo\s+["']?[^\s:"'|]+:([^\s"'|]{4,})["']?\s*\|\s*(?:sudo\s+)?chpasswd"#,
        ValueCheck::Explicit,
    ),
    context(
        PASSWORD,
        "identified",
        r#"(?i)identified\s+(?:with\s+\S+\s+)?by\s+(?:password\s+)?['"]([^'"\n]{3,})['"]"#,
        ValueCheck::Explicit,
    ),
    context(
        PASSWORD,
        "password '",
        r"(?i)password '([^'\n]{3,})'\s*(?:;|$|\n|valid|login|createdb|superuser|in role|\))",
        ValueCheck::Explicit,
    ),
    // Names and passwords in prose.
    context(
        PASSWORD,
        "cred",
        r#"(?i)cred(?:ential)?s?\b[^\n:=]{0,30}?(?:\bare\b|\bis\b|:|=)\s*["'`]?[A-Za-z0-9._@+-]{2,40}\s*[/:|]\s*["'`]?([^\s"'`,;]{6,})"#,
        ValueCheck::Password,
    ),
    context(
        PASSWORD,
        "log in with",
        r#"(?i)log in with\s+["'`]?[A-Za-z0-9._@+-]{2,40}["'`]?\s*(?:/|:|\||and)\s*["'`]?([^\s"'`,;]{6,})"#,
        ValueCheck::Password,
    ),
    context(
        "recovery phrase",
        "phrase",
        r#"(?i)phrase\b[^\n:=]{0,20}(?:\bis\b|:|=)\s*["'`]?((?:[a-z]{3,8}[ \t]+){11,23}[a-z]{3,8})\b"#,
        ValueCheck::Any,
    ),
    context(
        "recovery phrase",
        "mnemonic",
        r#"(?i)mnemonic\b[^\n:=]{0,20}(?:\bis\b|:|=)\s*["'`]?((?:[a-z]{3,8}[ \t]+){11,23}[a-z]{3,8})\b"#,
        ValueCheck::Any,
    ),
];

/// Patterns, compiled when their literal is first found: few texts contain many of them.
static PATTERNS: [OnceLock<Option<Regex>>; CONTEXTS.len()] = [const { OnceLock::new() }; CONTEXTS.len()];

fn compile(context: &SecretContext) -> Option<Regex> {
    // Shared tail patterns start after the literal.
    let literal = if context.pattern == HEADER || context.pattern == COOKIE {
        let name = context.literal.trim_end_matches('=');
        format!("(?i){}", regex::escape(name))
    } else {
        String::new()
    };
    // Word boundaries are ASCII: text without spaces may precede a key.
    Regex::new(&format!(r"\A{literal}{}", context.pattern).replace(r"\b", r"(?-u:\b)")).ok()
}

static LITERALS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let literals = CONTEXTS.iter().map(|context| context.literal);
    AhoCorasick::builder().ascii_case_insensitive(true).match_kind(MatchKind::Standard).build(literals).ok()
});

/// Finds values in telling contexts.
pub(crate) fn find(text: &str, found: &mut Vec<SecretMatch>) {
    let Some(literals) = &*LITERALS else { return };
    for hit in literals.find_overlapping_iter(text) {
        let at = hit.pattern().as_usize();
        let (Some(context), Some(pattern)) = (CONTEXTS.get(at), PATTERNS.get(at)) else { continue };
        if !context.may_begin(text, hit.start()) {
            continue;
        }
        let bytes = if context.kind == PRIVATE_KEY { BLOCK_WINDOW } else { WINDOW };
        let window = &text[hit.start()..text.floor_char_boundary(hit.start() + bytes)];
        let Some(captures) =
            pattern.get_or_init(|| compile(context)).as_ref().and_then(|pattern| pattern.captures(window))
        else {
            continue;
        };
        let Some(value) = captures.get(1).or_else(|| captures.get(0)) else { continue };
        let behind = &window[value.end()..];
        let end = value.as_str().trim_end_matches(['.', ',', ')', ';', '\\']).len();
        let end = if context.kind == PRIVATE_KEY { value.len() } else { end };
        if context.accepts(&value.as_str()[..end], behind) {
            let start = hit.start() + value.start();
            found.push(SecretMatch { kind: context.kind, range: start..start + end });
        }
    }
}

impl SecretContext {
    /// Returns whether the literal may start here: not inside a word, unless it starts with a sign.
    fn may_begin(&self, text: &str, at: usize) -> bool {
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let opens = self.literal.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
        let before = at.checked_sub(1).map(|before| text.as_bytes()[before]);
        match self.literal {
            // A URL has a scheme.
            "://" => before.is_some_and(|byte| byte.is_ascii_alphanumeric()),
            "sig=" => before.is_some_and(|byte| matches!(byte, b'?' | b'&' | b';')),
            "aws" => !before.is_some_and(|byte| byte.is_ascii_alphanumeric()),
            _ => !opens || !before.is_some_and(is_word),
        }
    }

    fn accepts(&self, value: &str, behind: &str) -> bool {
        // `docker://alpine:3.18@sha256:…` pins an image.
        if self.literal == "://" && behind.starts_with("@sha256:") {
            return false;
        }
        match self.check {
            ValueCheck::Any => true,
            ValueCheck::NotPlaceholder => !is_placeholder(value),
            ValueCheck::HasDigit => {
                value.contains(|letter: char| letter.is_ascii_digit()) && !is_placeholder(value)
            }
            ValueCheck::Explicit => is_explicit_password(value),
            ValueCheck::Password => is_password(value),
            ValueCheck::Random => is_key(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles_and_begins_with_its_literal() {
        for context in CONTEXTS {
            assert!(compile(context).is_some(), "{}", context.pattern);
            assert_eq!(context.literal, context.literal.to_lowercase());
        }
        assert!(LITERALS.is_some());
    }
}
