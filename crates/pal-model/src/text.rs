//! Shared text: a slice of a larger, immutable string, cheap to clone and to cut.
//!
//! A log file is read once into one allocation; entries, blocks and rendered requests are slices of it.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// An immutable slice of a shared string. Two are equal if their characters are.
#[derive(Clone)]
pub struct Text {
    whole: Arc<str>,
    start: usize,
    end: usize,
}

impl Text {
    /// The characters of this slice.
    pub fn as_str(&self) -> &str {
        &self.whole[self.start..self.end]
    }

    /// The part of this text that `part` points at. `part` must have been borrowed from this text; anything
    /// else is copied, so the answer is right either way.
    pub fn slice_of(&self, part: &str) -> Text {
        let base = self.whole.as_ptr() as usize;
        let start = (part.as_ptr() as usize).wrapping_sub(base);
        match start.checked_add(part.len()) {
            Some(end) if start >= self.start && end <= self.end => {
                Text { whole: Arc::clone(&self.whole), start, end }
            }
            _ => Text::from(part),
        }
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Text {
        Text { whole: Arc::from(text), start: 0, end: text.len() }
    }
}

impl From<String> for Text {
    fn from(text: String) -> Text {
        Text { end: text.len(), whole: Arc::from(text), start: 0 }
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for Text {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Text) -> bool {
        // One slice of one allocation is equal without a look at its characters.
        let is_one =
            Arc::ptr_eq(&self.whole, &other.whole) && (self.start, self.end) == (other.start, other.end);
        is_one || self.as_str() == other.as_str()
    }
}

impl Eq for Text {}

impl fmt::Debug for Text {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), formatter)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_shares_and_a_stranger_is_copied() {
        let text = Text::from("one two three");
        let two = text.slice_of(&text.as_str()[4..7]);
        assert_eq!(two.as_str(), "two");
        assert!(Arc::ptr_eq(&two.whole, &text.whole));
        let stranger = String::from("four");
        assert_eq!(text.slice_of(&stranger).as_str(), "four");
        // A slice may not reach outside of the slice that it is cut from.
        let outside = two.slice_of(&text.as_str()[8..13]);
        assert_eq!(outside.as_str(), "three");
        assert!(!Arc::ptr_eq(&outside.whole, &text.whole));
    }
}
