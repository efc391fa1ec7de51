//! Chunked text: a list of shared chunks, so that a request goes from the view to the socket without being copied into
//! one buffer.

use std::sync::Arc;

use crate::SharedText;

/// One chunk of a chunked text.
#[derive(Clone, Debug)]
pub enum TextChunk {
    /// Constant punctuation.
    Fixed(&'static str),
    /// Slice of a shared allocation.
    Shared(SharedText),
}

impl TextChunk {
    /// Returns the chunk as a string.
    pub fn as_str(&self) -> &str {
        match self {
            TextChunk::Fixed(text) => text,
            TextChunk::Shared(text) => text.as_str(),
        }
    }
}

/// A long text in chunks; empty chunks are dropped. Clones share the chunks.
#[derive(Clone, Debug, Default)]
pub struct ChunkedText {
    list: Arc<[TextChunk]>,
    bytes: usize,
}

impl ChunkedText {
    /// Iterates over the chunks in order.
    pub fn iter(&self) -> impl Iterator<Item = &TextChunk> {
        self.list.iter()
    }

    /// Returns the chunk at an index.
    pub fn get(&self, at: usize) -> Option<&TextChunk> {
        self.list.get(at)
    }

    /// Returns the total length in bytes.
    pub fn byte_len(&self) -> usize {
        self.bytes
    }

    /// Returns the whole text in one buffer.
    pub fn to_joined_string(&self) -> String {
        let mut text = String::with_capacity(self.bytes);
        text.extend(self.iter().map(TextChunk::as_str));
        text
    }
}

impl FromIterator<TextChunk> for ChunkedText {
    fn from_iter<I: IntoIterator<Item = TextChunk>>(parts: I) -> ChunkedText {
        parts.into_iter().collect::<Vec<TextChunk>>().into()
    }
}

impl From<Vec<TextChunk>> for ChunkedText {
    fn from(mut list: Vec<TextChunk>) -> ChunkedText {
        let mut bytes = 0;
        list.retain(|part| {
            bytes += part.as_str().len();
            !part.as_str().is_empty()
        });
        ChunkedText { bytes, list: list.into() }
    }
}

impl From<String> for ChunkedText {
    fn from(text: String) -> ChunkedText {
        std::iter::once(TextChunk::Shared(SharedText::from(text))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_join_and_sum_their_lengths() {
        let parts: ChunkedText = [
            TextChunk::Fixed("["),
            TextChunk::Shared(SharedText::from("é")),
            TextChunk::Fixed(""),
            TextChunk::Fixed("]"),
        ]
        .into_iter()
        .collect();
        assert_eq!(
            (parts.to_joined_string().as_str(), parts.byte_len(), parts.iter().count()),
            ("[é]", 4, 3)
        );
    }
}
