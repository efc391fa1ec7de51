//! Replacing a piece of a file by another piece: where it is, how it may be spelled, and why it is not found.

use std::ops::Range;

use memchr::memmem;
use pal_model::restore;

use crate::quoted::meant;

mod nearby;

/// One replacement, as the model wants it.
#[derive(Clone, Debug)]
pub(crate) struct Replacement {
    /// What is there.
    pub(crate) old: String,
    /// What shall be there.
    pub(crate) new: String,
    /// Whether it is meant everywhere.
    pub(crate) is_everywhere: bool,
}

/// What comes of a replacement.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Replaced {
    /// All of the file.
    pub(crate) bytes: Vec<u8>,
    /// How many places were changed.
    pub(crate) places: usize,
}

impl Replacement {
    /// Makes the replacement. Works on bytes, so that what is no UTF-8 stays as it is.
    pub(crate) fn apply(&self, bytes: &[u8]) -> Result<Replaced, String> {
        if self.old.is_empty() {
            return Err(String::from("`old_string` is empty, and the file is not: say what to replace."));
        }
        if self.old == self.new {
            return Err(String::from(
                "`old_string` and `new_string` are the same: there is nothing to change.",
            ));
        }
        for (old, new) in self.spellings() {
            let places = places(bytes, &old);
            let Some(first) = places.first() else { continue };
            if places.len() > 1 && !self.is_everywhere {
                return Err(several(bytes, &places));
            }
            let has_returns = match old.contains('\n') {
                true => !old.contains('\r') && memmem::find(&bytes[first.clone()], b"\r\n").is_some(),
                false => is_mostly_crlf(bytes),
            };
            let new = if has_returns { with_crlf(&new) } else { new };
            return Ok(Replaced { bytes: spliced(bytes, &places, new.as_bytes()), places: places.len() });
        }
        Err(nearby::explained(bytes, &self.old))
    }

    /// The ways in which the pieces may stand in the file, the likeliest first: the model copies the program's own tags as
    /// they were shown, defused; it may mean what it wrote literally; and it may have taken only a part of a tag.
    fn spellings(&self) -> Vec<(String, String)> {
        let mut spellings = vec![
            (meant(&self.old), meant(&self.new)),
            (self.old.clone(), self.new.clone()),
            (restore(&self.old).into_owned(), restore(&self.new).into_owned()),
        ];
        // What differs only in the new piece would never be looked for.
        spellings.dedup_by(|later, earlier| later.0 == earlier.0);
        spellings
    }
}

/// Where a piece is: as it is, or else as Read shows it, without the carriage returns at the ends of lines.
fn places(bytes: &[u8], old: &str) -> Vec<Range<usize>> {
    let exact: Vec<Range<usize>> =
        memmem::find_iter(bytes, old.as_bytes()).map(|at| at..at + old.len()).collect();
    if !exact.is_empty() || memmem::find(bytes, b"\r\n").is_none() {
        return exact;
    }
    let (shown, dropped) = without_returns(bytes);
    let old = old.replace("\r\n", "\n");
    // A place in what is shown, plus the returns that were dropped before it.
    let original = |at: usize| at + dropped.partition_point(|dropped| *dropped < at);
    let found = memmem::find_iter(&shown, old.as_bytes());
    found.map(|at| original(at)..original(at + old.len())).collect()
}

/// The bytes without the carriage returns before line ends, and where in them those line ends are.
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

/// Whether most lines end with a carriage return as well.
pub(crate) fn is_mostly_crlf(bytes: &[u8]) -> bool {
    let all = memchr::memchr_iter(b'\n', bytes).count();
    let with_return = memmem::find_iter(bytes, b"\r\n").count();
    with_return * 2 > all
}

/// The text with a carriage return before every line end that has none.
pub(crate) fn with_crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

/// The bytes with something else in these places.
fn spliced(bytes: &[u8], places: &[Range<usize>], new: &[u8]) -> Vec<u8> {
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

fn several(bytes: &[u8], places: &[Range<usize>]) -> String {
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
