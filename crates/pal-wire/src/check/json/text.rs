//! A JSON string as it stands in the body, escapes and all. The scanner has checked the escapes.

use std::borrow::Cow;
use std::str::Chars;

/// The inside of a string, between its quotes.
#[derive(Clone, Copy, Debug)]
pub struct Text<'t> {
    raw: &'t str,
}

impl<'t> Text<'t> {
    pub(crate) fn new(raw: &'t str) -> Text<'t> {
        Text { raw }
    }

    /// The string that is meant; borrowed when nothing is escaped.
    pub fn decoded(self) -> Cow<'t, str> {
        if self.raw.contains('\\') { Cow::Owned(self.chars().collect()) } else { Cow::Borrowed(self.raw) }
    }

    /// Whether it is this word. An escaped form is longer, but at most six times as long, so that hardly any text
    /// is searched for escapes.
    pub fn is(self, word: &str) -> bool {
        let could_be_escaped = self.raw.len() > word.len() && self.raw.len() <= 6 * word.len();
        self.raw == word || could_be_escaped && self.raw.contains('\\') && self.chars().eq(word.chars())
    }

    /// The one of these words that it is.
    pub fn one_of<'w>(self, words: &[&'w str]) -> Option<&'w str> {
        words.iter().copied().find(|word| self.is(word))
    }

    /// Whether it has no characters.
    pub fn is_empty(self) -> bool {
        self.raw.is_empty()
    }

    /// Whether there is nothing but white space.
    pub fn is_blank(self) -> bool {
        self.chars().all(char::is_whitespace)
    }

    /// Whether the last character is white space.
    pub(crate) fn ends_in_whitespace(self) -> bool {
        self.chars().last().is_some_and(char::is_whitespace)
    }

    /// The characters that are meant.
    pub(crate) fn chars(self) -> Decoded<'t> {
        Decoded { rest: self.raw.chars() }
    }
}

/// An iterator over the characters of a [`Text`].
pub(crate) struct Decoded<'t> {
    rest: Chars<'t>,
}

impl Decoded<'_> {
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

impl Iterator for Decoded<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        match self.rest.next()? {
            '\\' => self.escaped(),
            plain => Some(plain),
        }
    }
}
