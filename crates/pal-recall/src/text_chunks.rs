//! Splits long texts into chunks, so that a search finds the exact part.

use std::ops::Range;

/// Maximum bytes of a chunk; it ends at a line end if there is one in its second half.
pub(crate) const CHUNK: usize = 600;
/// Bytes that adjacent chunks share, so that text at a boundary is found as well.
const SHARED: usize = 60;

/// Byte ranges of the chunks. They cover the text and depend on it alone.
pub(crate) fn chunks(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut from = 0;
    loop {
        if text.len() - from <= CHUNK {
            found.push(from..text.len());
            return found;
        }
        let to = text.floor_char_boundary(from + CHUNK);
        let middle = text.floor_char_boundary(from + CHUNK / 2);
        let to = text[middle..to].rfind('\n').map_or(to, |at| middle + at + 1);
        found.push(from..to);
        // Start the next chunk at a line start within the shared part, if there is one.
        let shared = text.ceil_char_boundary(to.saturating_sub(SHARED).max(from + 1));
        from = text[shared..to].find('\n').map_or(to, |at| shared + at + 1);
    }
}

/// Text of a file with every invalid byte replaced by `?`, so that offsets stay the same.
pub(crate) fn text_of(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| '?'));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_cover_a_text_and_end_at_lines() {
        assert_eq!(chunks("short"), vec![Range { start: 0, end: 5 }]);
        assert_eq!(chunks(""), vec![Range { start: 0, end: 0 }]);
        for text in [
            "a line of words\n".repeat(1_000),
            "ä".repeat(10_000),
            format!("{}\n", "x".repeat(2_990)).repeat(3),
        ] {
            let chunks = chunks(&text);
            assert_eq!((chunks[0].start, chunks.last().unwrap().end), (0, text.len()));
            for pair in chunks.windows(2) {
                assert!(pair[1].start <= pair[0].end && pair[1].start > pair[0].start, "{pair:?}");
            }
            assert!(chunks.iter().all(|chunk| chunk.len() <= CHUNK && text.get(chunk.clone()).is_some()));
        }
        let lines = "a line of words\n".repeat(1_000);
        let chunks = chunks(&lines);
        assert!(chunks.iter().all(|chunk| chunk.start % 16 == 0 && chunk.end % 16 == 0), "{chunks:?}");
        assert!(chunks[1].start < chunks[0].end, "they share lines");
    }
}
