//! Secrets in a text: found before anything is written, and masked. Pure.
//!
//! Two readers look: one knows what keys of providers, tokens, private keys and addresses with passwords look like
//! (`known.rs`), the other takes what looks random and stands beside a word that tells (`guess.rs`). Hashes, ids and pictures
//! look random, too; without such a word they are left alone.

mod guess;
mod known;
#[cfg(test)]
mod tests;

use std::ops::Range;

use serde::Serialize;

/// A secret that was masked.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Masked {
    /// What it was.
    pub what: &'static str,
    /// The line that it stood in, counted from 1.
    pub line: usize,
}

/// A secret in a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Secret {
    /// What it is.
    pub what: &'static str,
    /// Where it stands, in bytes.
    pub place: Range<usize>,
}

/// All secrets of a text, in order.
pub fn secrets(text: &str) -> Vec<Secret> {
    let mut found = known::secrets(text);
    found.extend(guess::secrets(text));
    // What is known first where two begin together, so that it gives its name.
    found.sort_by_key(|secret| secret.place.start);
    let mut kept: Vec<Secret> = Vec::new();
    for secret in found {
        match kept.last_mut() {
            Some(last) if secret.place.start < last.place.end => {
                last.place.end = last.place.end.max(secret.place.end);
            }
            _ => kept.push(secret),
        }
    }
    kept
}

/// The text without its secrets, and which there were.
pub fn masked(text: &str) -> (String, Vec<Masked>) {
    let mut clean = String::with_capacity(text.len());
    let mut found = Vec::new();
    let mut from = 0;
    for Secret { what, place } in secrets(text) {
        clean.push_str(&text[from..place.start]);
        clean.push_str(&format!("[secret: {what}]"));
        found.push(Masked { what, line: text[..place.start].matches('\n').count() + 1 });
        from = place.end;
    }
    clean.push_str(&text[from..]);
    (clean, found)
}
