//! JSON writer with shared chunks: long parts are shared, short ones copied.

use pal_model::{SharedText, TextChunk, escape_into};

/// Minimum length of a shared chunk; shorter text is copied.
const SHARED_BYTES_MIN: usize = 512;

/// Writes JSON into chunks.
#[derive(Debug, Default)]
pub(crate) struct ChunkWriter {
    parts: Vec<TextChunk>,
    /// Text since the last shared chunk.
    loose: String,
}

impl ChunkWriter {
    /// Writes raw JSON.
    pub(crate) fn raw(&mut self, json: &str) {
        self.loose.push_str(json);
    }

    /// Writes text as a string literal.
    pub(crate) fn quoted(&mut self, words: &str) {
        escape_into(&mut self.loose, words);
    }

    /// Writes text inside an open string literal.
    pub(crate) fn inside(&mut self, words: &str) {
        let from = self.loose.len();
        escape_into(&mut self.loose, words);
        self.loose.pop();
        self.loose.remove(from);
    }

    /// Writes raw JSON `part`, sharing the allocation of `whole` if it is long enough.
    pub(crate) fn shared(&mut self, whole: &SharedText, part: &str) {
        if part.len() < SHARED_BYTES_MIN {
            self.loose.push_str(part);
            return;
        }
        self.flush();
        self.parts.push(TextChunk::Shared(whole.slice_of(part)));
    }

    /// Returns the chunks.
    pub(crate) fn finish(mut self) -> Vec<TextChunk> {
        self.flush();
        self.parts
    }

    fn flush(&mut self) {
        if !self.loose.is_empty() {
            self.parts.push(TextChunk::Shared(SharedText::from(std::mem::take(&mut self.loose))));
        }
    }
}

/// Returns the inside of a string literal, still escaped; empty if it is not one.
pub(crate) fn literal_inner(literal: &str) -> &str {
    literal.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or_default()
}

/// Separator state of a list: no comma before the first item.
#[derive(Debug, Default)]
pub(crate) struct CommaSeparator {
    begun: bool,
}

impl CommaSeparator {
    /// Returns true before the first item.
    pub(crate) fn is_first(&self) -> bool {
        !self.begun
    }

    /// Writes the comma before the next item, except for the first.
    pub(crate) fn next(&mut self, writer: &mut ChunkWriter) {
        if std::mem::replace(&mut self.begun, true) {
            writer.raw(",");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pal_model::ChunkedText;

    #[test]
    fn long_text_is_shared_and_short_text_is_copied() {
        let long = SharedText::from("x".repeat(SHARED_BYTES_MIN));
        let mut writer = ChunkWriter::default();
        writer.raw("[\"");
        writer.inside("a\"\n");
        writer.raw("\",");
        writer.shared(&long, &long);
        writer.shared(&long, &long[..3]);
        writer.quoted("é");
        let parts = writer.finish();
        let TextChunk::Shared(middle) = &parts[1] else { panic!("not shared") };
        assert_eq!(middle.as_ptr(), long.as_ptr());
        assert_eq!(
            parts.into_iter().collect::<ChunkedText>().to_joined_string(),
            format!("[\"a\\\"\\n\",{long}xxx\"é\"")
        );
    }
}
