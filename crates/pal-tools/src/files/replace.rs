//! Replacing a piece of a file by another piece: where it is, how it may be spelled, and why it is not found.

use std::borrow::Cow;

use memchr::memmem;
use pal_model::restore;

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
        for (old, new) in self.spellings(bytes) {
            let places: Vec<usize> = memmem::find_iter(bytes, old.as_bytes()).collect();
            if places.is_empty() {
                continue;
            }
            if places.len() > 1 && !self.is_everywhere {
                return Err(several(bytes, &places));
            }
            let bytes = spliced(bytes, &places, old.len(), new.as_bytes());
            return Ok(Replaced { bytes, places: places.len() });
        }
        Err(nearby::explained(bytes, &self.old))
    }

    /// The ways in which the pieces may stand in the file, the likeliest first. The model saw the program's own tags
    /// defused, so what it quotes is mapped back first; and it saw lines without their carriage returns.
    fn spellings(&self, bytes: &[u8]) -> Vec<(String, String)> {
        let quoted = (restore(&self.old), restore(&self.new));
        let mut spellings = Vec::new();
        for (old, new) in [quoted, (Cow::Borrowed(&*self.old), Cow::Borrowed(&*self.new))] {
            let plain = (old.clone().into_owned(), new.clone().into_owned());
            let returned = (with_crlf(&old), with_crlf(&new));
            if is_mostly_crlf(bytes) {
                spellings.extend([returned, plain]);
            } else {
                spellings.extend([plain, returned]);
            }
        }
        spellings.dedup();
        spellings
    }
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
fn spliced(bytes: &[u8], places: &[usize], length: usize, new: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + new.len());
    let mut from = 0;
    for place in places {
        out.extend_from_slice(&bytes[from..*place]);
        out.extend_from_slice(new);
        from = place + length;
    }
    out.extend_from_slice(&bytes[from..]);
    out
}

fn several(bytes: &[u8], places: &[usize]) -> String {
    const NAMED_MAX: usize = 10;
    let line = |place: &usize| (memchr::memchr_iter(b'\n', &bytes[..*place]).count() + 1).to_string();
    let named: Vec<String> = places.iter().take(NAMED_MAX).map(line).collect();
    let more = if places.len() > NAMED_MAX { ", …" } else { "" };
    format!(
        "`old_string` is in the file {} times, at lines {}{more}. Take more of the lines around the one you mean, or set \
         `replace_all`.",
        places.len(),
        named.join(", ")
    )
}
