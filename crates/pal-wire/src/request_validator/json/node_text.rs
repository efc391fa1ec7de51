//! Raw JSON strings, still escaped. The scanner has checked the escapes.

use std::borrow::Cow;
use std::str::Chars;

/// The inside of a JSON string, without its quotes.
#[derive(Clone, Copy, Debug)]
pub struct NodeText<'t> {
    raw: &'t str,
}

impl<'t> NodeText<'t> {
    pub(crate) fn new(raw: &'t str) -> NodeText<'t> {
        NodeText { raw }
    }

    /// Returns the unescaped string; borrowed if it has no escapes.
    pub fn decoded(self) -> Cow<'t, str> {
        if self.raw.contains('\\') { Cow::Owned(self.chars().collect()) } else { Cow::Borrowed(self.raw) }
    }

    /// Returns true if the string equals `word`. An escaped form is at most six times as long, so long text is not scanned
    /// for escapes.
    pub fn is(self, word: &str) -> bool {
        let could_be_escaped = self.raw.len() > word.len() && self.raw.len() <= 6 * word.len();
        self.raw == word || could_be_escaped && self.raw.contains('\\') && self.chars().eq(word.chars())
    }

    /// Returns the word that the string equals, if any.
    pub fn one_of<'w>(self, words: &[&'w str]) -> Option<&'w str> {
        words.iter().copied().find(|word| self.is(word))
    }

    /// Returns true if the string is empty.
    pub fn is_empty(self) -> bool {
        self.raw.is_empty()
    }

    /// Returns true if the string has only white space.
    pub fn is_blank(self) -> bool {
        self.chars().all(char::is_whitespace)
    }

    /// Returns true if the last character is white space.
    pub(crate) fn ends_in_whitespace(self) -> bool {
        self.chars().last().is_some_and(char::is_whitespace)
    }

    /// Iterates over the unescaped characters.
    pub(crate) fn chars(self) -> DecodedChars<'t> {
        DecodedChars { rest: self.raw.chars() }
    }
}

/// An iterator over the characters of a [`NodeText`].
pub(crate) struct DecodedChars<'t> {
    rest: Chars<'t>,
}

impl DecodedChars<'_> {
    fn unit(&mut self) -> u32 {
        (0..4).fold(0, |unit, _| unit * 16 + self.rest.next().and_then(|c| c.to_digit(16)).unwrap_or(0))
    }

    fn escaped(&mut self) -> Option<char> {
        Some(match self.rest.next()? {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let high = self.unit();
                if !(0xd800..0xdc00).contains(&high) {
                    return Some(char::from_u32(high).unwrap_or(char::REPLACEMENT_CHARACTER));
                }
                self.rest.next();
                self.rest.next();
                let low = self.unit();
                let code = 0x10000 + ((high - 0xd800) << 10) + (low & 0x3ff);
                char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
            }
            itself => itself,
        })
    }
}

impl Iterator for DecodedChars<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        match self.rest.next()? {
            '\\' => self.escaped(),
            plain => Some(plain),
        }
    }
}
