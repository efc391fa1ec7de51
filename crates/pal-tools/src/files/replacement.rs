//! Replacement of a piece of a file, with tolerant matching and error hints.

use std::ops::Range;

use memchr::memmem;
use pal_model::unescape_tags;

use crate::restored_tags::restore_tags;

mod mismatch_hint;

/// Replacement requested by the model.
#[derive(Clone, Debug)]
pub(crate) struct Replacement {
    /// Piece to be replaced.
    pub(crate) old: String,
    /// New piece.
    pub(crate) new: String,
    /// True to replace all occurrences.
    pub(crate) is_everywhere: bool,
}

/// Result of a replacement.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ReplacedText {
    /// New content of the file.
    pub(crate) bytes: Vec<u8>,
    /// Number of changed places.
    pub(crate) places: usize,
}

impl Replacement {
    /// Applies the replacement on bytes, so that invalid UTF-8 is preserved.
    pub(crate) fn apply(&self, bytes: &[u8]) -> Result<ReplacedText, String> {
        if self.old.is_empty() {
            return Err(String::from("`old_string` is empty, and the file is not: say what to replace."));
        }
        if self.old == self.new {
            return Err(String::from(
                "`old_string` and `new_string` are the same: there is nothing to change.",
            ));
        }
        for (old, new) in self.spellings() {
            let places = find_places(bytes, &old);
            let Some(first) = places.first() else { continue };
            if places.len() > 1 && !self.is_everywhere {
                return Err(describe_ambiguity(bytes, &places));
            }
            let has_returns = match old.contains('\n') {
                true => !old.contains('\r') && memmem::find(&bytes[first.clone()], b"\r\n").is_some(),
                false => is_mostly_crlf(bytes),
            };
            let new = if has_returns { with_crlf(&new) } else { new };
            return Ok(ReplacedText { bytes: splice(bytes, &places, new.as_bytes()), places: places.len() });
        }
        Err(mismatch_hint::explain_mismatch(bytes, &self.old))
    }

    /// Possible spellings of the pieces, most likely first: with the program's own tags restored, since the
    /// model copies them as shown, defused; literal; and with partial tags restored.
    fn spellings(&self) -> Vec<(String, String)> {
        let mut spellings = vec![
            (restore_tags(&self.old), restore_tags(&self.new)),
            (self.old.clone(), self.new.clone()),
            (unescape_tags(&self.old).into_owned(), unescape_tags(&self.new).into_owned()),
        ];
        // A spelling that differs only in the new piece would never be tried.
        spellings.dedup_by(|later, earlier| later.0 == earlier.0);
        spellings
    }
}

/// Occurrences of a piece: exact, or else ignoring carriage returns at line ends, as Read shows it.
fn find_places(bytes: &[u8], old: &str) -> Vec<Range<usize>> {
    let exact: Vec<Range<usize>> =
        memmem::find_iter(bytes, old.as_bytes()).map(|at| at..at + old.len()).collect();
    if !exact.is_empty() || memmem::find(bytes, b"\r\n").is_none() {
        return exact;
    }
    let (shown, dropped) = without_returns(bytes);
    let old = old.replace("\r\n", "\n");
    // Position in the displayed text plus the returns dropped before it.
    let original = |at: usize| at + dropped.partition_point(|dropped| *dropped < at);
    let found = memmem::find_iter(&shown, old.as_bytes());
    found.map(|at| original(at)..original(at + old.len())).collect()
}

/// Bytes without carriage returns before line ends, and the positions of those line ends.
fn without_returns(bytes: &[u8]) -> (Vec<u8>, Vec<usize>) {
    let (mut shown, mut dropped) = (Vec::with_capacity(bytes.len()), Vec::new());
    let mut from = 0;
    for at in memmem::find_iter(bytes, b"\r\n") {
        shown.extend_from_slice(&bytes[from..at]);
        dropped.push(shown.len());
        from = at + 1;
    }
    shown.extend_from_slice(&bytes[from..]);
    (shown, dropped)
}

/// Returns whether most lines end with CR LF.
pub(crate) fn is_mostly_crlf(bytes: &[u8]) -> bool {
    let all = memchr::memchr_iter(b'\n', bytes).count();
    let with_return = memmem::find_iter(bytes, b"\r\n").count();
    with_return * 2 > all
}

/// Converts all line ends to CR LF.
pub(crate) fn with_crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

/// Replaces these ranges.
fn splice(bytes: &[u8], places: &[Range<usize>], new: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + new.len());
    let mut from = 0;
    for place in places {
        out.extend_from_slice(&bytes[from..place.start]);
        out.extend_from_slice(new);
        from = place.end;
    }
    out.extend_from_slice(&bytes[from..]);
    out
}

fn describe_ambiguity(bytes: &[u8], places: &[Range<usize>]) -> String {
    const NAMED_MAX: usize = 10;
    let line =
        |place: &Range<usize>| (memchr::memchr_iter(b'\n', &bytes[..place.start]).count() + 1).to_string();
    let named: Vec<String> = places.iter().take(NAMED_MAX).map(line).collect();
    let more = if places.len() > NAMED_MAX { ", …" } else { "" };
    format!(
        "`old_string` is in the file {} times, at lines {}{more}. Take more of the lines around the one you mean, or set \
         `replace_all`.",
        places.len(),
        named.join(", ")
    )
}
