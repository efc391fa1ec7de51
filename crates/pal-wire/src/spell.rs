//! JSON under construction, in shared parts: what is long is borrowed from whoever holds it, what is short is copied.

use pal_model::{Part, Text, escape_into};

/// Below this length copying is cheaper than another part.
const SHARED_LEAST: usize = 512;

/// Writes JSON piece by piece.
#[derive(Debug, Default)]
pub(crate) struct Speller {
    parts: Vec<Part>,
    /// What was written since the last shared part.
    loose: String,
}

impl Speller {
    /// Writes punctuation and names.
    pub(crate) fn raw(&mut self, json: &str) {
        self.loose.push_str(json);
    }

    /// Writes words as a string literal.
    pub(crate) fn quoted(&mut self, words: &str) {
        escape_into(&mut self.loose, words);
    }

    /// Writes words as a part of a string literal that is already open.
    pub(crate) fn inside(&mut self, words: &str) {
        let from = self.loose.len();
        escape_into(&mut self.loose, words);
        self.loose.pop();
        self.loose.remove(from);
    }

    /// Writes a part of a text that others hold, too.
    pub(crate) fn shared(&mut self, whole: &Text, part: &str) {
        if part.len() < SHARED_LEAST {
            self.loose.push_str(part);
            return;
        }
        self.flush();
        self.parts.push(Part::Shared(whole.slice_of(part)));
    }

    /// The parts.
    pub(crate) fn finish(mut self) -> Vec<Part> {
        self.flush();
        self.parts
    }

    fn flush(&mut self) {
        if !self.loose.is_empty() {
            self.parts.push(Part::Shared(Text::from(std::mem::take(&mut self.loose))));
        }
    }
}

/// What stands between the quotes of a string literal.
pub(crate) fn unquoted(literal: &str) -> &str {
    literal.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or_default()
}

/// A list under construction: the first item gets no comma.
#[derive(Debug, Default)]
pub(crate) struct Commas {
    begun: bool,
}

impl Commas {
    /// Whether no item was written yet.
    pub(crate) fn is_first(&self) -> bool {
        !self.begun
    }

    /// Writes what separates the next item from the one before, if there is one.
    pub(crate) fn next(&mut self, speller: &mut Speller) {
        if std::mem::replace(&mut self.begun, true) {
            speller.raw(",");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pal_model::Parts;

    #[test]
    fn long_text_is_shared_and_short_text_is_copied() {
        let long = Text::from("x".repeat(SHARED_LEAST));
        let mut speller = Speller::default();
        speller.raw("[\"");
        speller.inside("a\"\n");
        speller.raw("\",");
        speller.shared(&long, &long);
        speller.shared(&long, &long[..3]);
        speller.quoted("é");
        let parts = speller.finish();
        let Part::Shared(middle) = &parts[1] else { panic!("not shared") };
        assert_eq!(middle.as_ptr(), long.as_ptr());
        assert_eq!(parts.into_iter().collect::<Parts>().joined(), format!("[\"a\\\"\\n\",{long}xxx\"é\""));
    }
}
