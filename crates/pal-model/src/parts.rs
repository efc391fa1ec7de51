//! A long text as a list of shared parts: how a request travels from the view to the socket without being put
//! together in one buffer.

use std::sync::Arc;

use crate::Text;

/// One part of a long text.
#[derive(Clone, Debug)]
pub enum Part {
    /// Punctuation between the others.
    Fixed(&'static str),
    /// A slice of something that others hold, too.
    Shared(Text),
}

impl Part {
    /// Its characters.
    pub fn as_str(&self) -> &str {
        match self {
            Part::Fixed(text) => text,
            Part::Shared(text) => text.as_str(),
        }
    }
}

/// A long text in parts. Clones share everything.
#[derive(Clone, Debug, Default)]
pub struct Parts {
    list: Arc<[Part]>,
    bytes: usize,
}

impl Parts {
    /// The parts, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Part> {
        self.list.iter()
    }

    /// The part at a position.
    pub fn get(&self, at: usize) -> Option<&Part> {
        self.list.get(at)
    }

    /// How many bytes all parts have together.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The whole text in one buffer.
    pub fn joined(&self) -> String {
        let mut text = String::with_capacity(self.bytes);
        text.extend(self.iter().map(Part::as_str));
        text
    }
}

impl FromIterator<Part> for Parts {
    fn from_iter<I: IntoIterator<Item = Part>>(parts: I) -> Parts {
        parts.into_iter().collect::<Vec<Part>>().into()
    }
}

impl From<Vec<Part>> for Parts {
    fn from(mut list: Vec<Part>) -> Parts {
        let mut bytes = 0;
        list.retain(|part| {
            bytes += part.as_str().len();
            !part.as_str().is_empty()
        });
        Parts { bytes, list: list.into() }
    }
}

impl From<String> for Parts {
    fn from(text: String) -> Parts {
        std::iter::once(Part::Shared(Text::from(text))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_join_and_count() {
        let parts: Parts =
            [Part::Fixed("["), Part::Shared(Text::from("é")), Part::Fixed(""), Part::Fixed("]")]
                .into_iter()
                .collect();
        assert_eq!((parts.joined().as_str(), parts.bytes(), parts.iter().count()), ("[é]", 4, 3));
    }
}
