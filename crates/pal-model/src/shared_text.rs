//! Shared text: a slice of a larger immutable string, cheap to clone and to slice.
//!
//! A log file is read into one allocation; entries, blocks and rendered requests are slices of it.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// An immutable slice of a shared string. Equality compares characters.
#[derive(Clone)]
pub struct SharedText {
    whole: Arc<str>,
    start: usize,
    end: usize,
}

impl SharedText {
    /// Returns the slice as a string.
    pub fn as_str(&self) -> &str {
        &self.whole[self.start..self.end]
    }

    /// Returns `part` as shared text. Shares the allocation if `part` is borrowed from this slice; copies it otherwise.
    pub fn slice_of(&self, part: &str) -> SharedText {
        let base = self.whole.as_ptr() as usize;
        let start = (part.as_ptr() as usize).wrapping_sub(base);
        match start.checked_add(part.len()) {
            Some(end) if start >= self.start && end <= self.end => {
                SharedText { whole: Arc::clone(&self.whole), start, end }
            }
            _ => SharedText::from(part),
        }
    }
}

impl From<&str> for SharedText {
    fn from(text: &str) -> SharedText {
        SharedText { whole: Arc::from(text), start: 0, end: text.len() }
    }
}

impl From<String> for SharedText {
    fn from(text: String) -> SharedText {
        SharedText { end: text.len(), whole: Arc::from(text), start: 0 }
    }
}

impl Deref for SharedText {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for SharedText {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl PartialEq for SharedText {
    fn eq(&self, other: &SharedText) -> bool {
        // Identical slices of one allocation are equal without comparing characters.
        let is_one =
            Arc::ptr_eq(&self.whole, &other.whole) && (self.start, self.end) == (other.start, other.end);
        is_one || self.as_str() == other.as_str()
    }
}

impl Eq for SharedText {}

impl fmt::Debug for SharedText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), formatter)
    }
}

impl fmt::Display for SharedText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slice_of_shares_own_parts_and_copies_others() {
        let text = SharedText::from("one two three");
        let two = text.slice_of(&text.as_str()[4..7]);
        assert_eq!(two.as_str(), "two");
        assert!(Arc::ptr_eq(&two.whole, &text.whole));
        let stranger = String::from("four");
        assert_eq!(text.slice_of(&stranger).as_str(), "four");
        // A slice must not extend beyond the slice that it is taken from.
        let outside = two.slice_of(&text.as_str()[8..13]);
        assert_eq!(outside.as_str(), "three");
        assert!(!Arc::ptr_eq(&outside.whole, &text.whole));
    }
}
