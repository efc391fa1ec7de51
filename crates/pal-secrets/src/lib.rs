//! Detection and masking of secrets in text. Pure.
//!
//! Three detectors read the text, each in one Aho-Corasick pass over literals and a cheap check behind every hit:
//!
//! * `token_formats`: tokens with a published shape, found by a literal prefix or infix (`ghp_`, `.atlasv1.`).
//! * `contexts`: values that their surroundings give away: PEM blocks, URLs with passwords, headers, `netrc`, shell flags.
//! * `assignments`: random values beside words such as `password` or `api_key`, in code and in prose.
//!
//! Hashes, ids and images look random, too; without such a word or shape they are left alone.
//!
//! ```
//! let masked = pal_secrets::mask_secrets("db: postgres://app:s3cr3t-Pa55@db.internal/app");
//! assert_eq!(masked.text, "db: postgres://app:[secret: password in an address]@db.internal/app");
//! assert_eq!(masked.secrets[0].line, 1);
//! ```

mod alphabet;
mod assignments;
mod contexts;
mod token_formats;
mod value_checks;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::ops::Range;

use serde::Serialize;

/// Beginning of the marker for a masked secret.
const MARKER: &str = "[secret: ";

/// Maximum bytes of a marker.
const MARKER_BYTES_MAX: usize = 60;

/// Secret found in a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SecretMatch {
    /// Kind such as `github token`.
    pub kind: &'static str,
    /// Byte range in the text.
    pub range: Range<usize>,
}

/// Masked secret.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct MaskedSecret {
    /// Kind of the secret.
    #[serde(rename = "what")]
    pub kind: &'static str,
    /// Line number, counted from 1.
    pub line: usize,
}

/// Text with its secrets masked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MaskedText<'a> {
    /// The text, with `[secret: kind]` in place of each secret; borrowed if there was none.
    pub text: Cow<'a, str>,
    /// The secrets that were masked, in order.
    pub secrets: Vec<MaskedSecret>,
}

/// Finds all secrets of a text, in order and without overlaps. Takes time in proportion to the text.
pub fn find_secrets(text: &str) -> Vec<SecretMatch> {
    let markers = marker_ranges(text);
    let mut found = token_formats::find(text);
    contexts::find(text, &mut found);
    assignments::find(text, &markers, &mut found);
    // A stable sort: where two begin together, the more specific detector names the secret.
    found.sort_by_key(|secret| secret.range.start);
    let mut kept: Vec<SecretMatch> = Vec::with_capacity(found.len());
    for secret in found {
        match kept.last_mut() {
            Some(last) if secret.range.start < last.range.end => {
                last.range.end = last.range.end.max(secret.range.end);
            }
            _ => kept.push(secret),
        }
    }
    kept
}

/// Returns whether a text contains a secret.
pub fn has_secret(text: &str) -> bool {
    !find_secrets(text).is_empty()
}

/// Replaces every secret of a text by `[secret: kind]`. Masking a masked text changes nothing.
pub fn mask_secrets(text: &str) -> MaskedText<'_> {
    let found = find_secrets(text);
    if found.is_empty() {
        return MaskedText { text: Cow::Borrowed(text), secrets: Vec::new() };
    }
    let mut clean = String::with_capacity(text.len());
    let mut secrets = Vec::with_capacity(found.len());
    let (mut copied, mut line) = (0, 1);
    for SecretMatch { kind, range } in found {
        let between = &text[copied..range.start];
        line += between.matches('\n').count();
        clean.push_str(between);
        clean.push_str(MARKER);
        clean.push_str(kind);
        clean.push(']');
        secrets.push(MaskedSecret { kind, line });
        line += text[range.clone()].matches('\n').count();
        copied = range.end;
    }
    clean.push_str(&text[copied..]);
    MaskedText { text: Cow::Owned(clean), secrets }
}

/// Masks a named value, as in a JSON object: the name counts as in `name = "value"`.
pub fn mask_named_value<'a>(name: &str, value: &'a str) -> MaskedText<'a> {
    let masked = mask_secrets(value);
    if !masked.secrets.is_empty()
        || !assignments::has_keyword(&format!("{name}="))
        || value.contains(char::is_whitespace)
    {
        return masked;
    }
    let told = format!("{name}=\"{value}\"");
    let start = name.len() + 2;
    let kind = find_secrets(&told).into_iter().find(|secret| secret.range.start >= start);
    match kind {
        Some(SecretMatch { kind, .. }) => MaskedText {
            text: Cow::Owned(format!("{MARKER}{kind}]")),
            secrets: vec![MaskedSecret { kind, line: 1 }],
        },
        None => masked,
    }
}

/// Ranges of markers from an earlier masking, whose words are ignored.
fn marker_ranges(text: &str) -> Vec<Range<usize>> {
    let end_of = |at: usize| {
        let rest = text.as_bytes()[at..].iter().take(MARKER_BYTES_MAX);
        rest.take_while(|byte| **byte != b'\n').position(|byte| *byte == b']').map(|end| at..at + end + 1)
    };
    text.match_indices(MARKER).filter_map(|(at, _)| end_of(at)).collect()
}
