//! Request body sent in the parts it was built from.
//!
//! Small parts are gathered into buffers of at most [`BUFFER_BYTES`] to avoid tiny packets; large parts are
//! sent by reference, in windows of the same size, so that lower layers never copy them whole. The length is
//! known from the start, and sending cannot fail.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use pal_model::{ChunkedText, SharedText, TextChunk};
use tokio::time::Instant;

/// Maximum bytes of one frame.
const BUFFER_BYTES: usize = 64 * 1024;

/// Minimum size in bytes of parts that are not copied.
const LARGE_BYTES: usize = 8 * 1024;

/// Body of one attempt. Another attempt starts with a clone of the same parts.
pub(crate) struct PartsBody {
    parts: ChunkedText,
    next: usize,
    /// Rest of a large part.
    window: Bytes,
    bytes_left: u64,
    progress: Arc<SendProgress>,
}

/// Progress of sending a body, for its time limit.
#[derive(Debug, Default)]
pub(crate) struct SendProgress(Mutex<SendState>);

/// Sending state of a body.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SendState {
    /// Time at which the connection accepted the last piece; `None` before the first.
    pub(crate) last: Option<Instant>,
    /// True if the whole body was accepted.
    pub(crate) is_done: bool,
}

impl SendProgress {
    pub(crate) fn state(&self) -> SendState {
        *self.lock()
    }

    fn note(&self, is_done: bool) {
        *self.lock() = SendState { last: Some(Instant::now()), is_done };
    }

    fn lock(&self) -> MutexGuard<'_, SendState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PartsBody {
    /// Creates an unsent body.
    pub(crate) fn new(parts: ChunkedText) -> PartsBody {
        let bytes_left = parts.byte_len() as u64;
        PartsBody { bytes_left, parts, next: 0, window: Bytes::new(), progress: Arc::default() }
    }

    /// Records in `progress` when each piece is accepted.
    pub(crate) fn with_progress(self, progress: Arc<SendProgress>) -> PartsBody {
        PartsBody { progress, ..self }
    }

    /// Next bytes, never empty; `None` at the end.
    fn next_bytes(&mut self) -> Option<Bytes> {
        if !self.window.is_empty() {
            return Some(self.window.split_to(self.window.len().min(BUFFER_BYTES)));
        }
        let mut buffer = BytesMut::new();
        while let Some(part) = self.parts.get(self.next) {
            let text = part.as_str();
            if text.len() >= LARGE_BYTES {
                if buffer.is_empty() {
                    self.window = by_reference(part);
                    self.next += 1;
                    return Some(self.window.split_to(self.window.len().min(BUFFER_BYTES)));
                }
                break;
            }
            if buffer.len() + text.len() > BUFFER_BYTES {
                break;
            }
            if buffer.is_empty() {
                buffer.reserve(self.gathered_bytes());
            }
            buffer.extend_from_slice(text.as_bytes());
            self.next += 1;
        }
        (!buffer.is_empty()).then(|| buffer.freeze())
    }

    /// Total bytes of the next small parts that fit one buffer.
    fn gathered_bytes(&self) -> usize {
        let mut bytes = 0;
        for at in self.next.. {
            match self.parts.get(at).map(|part| part.as_str().len()) {
                Some(more) if more < LARGE_BYTES && bytes + more <= BUFFER_BYTES => bytes += more,
                _ => break,
            }
        }
        bytes
    }
}

impl Body for PartsBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = self.next_bytes();
        self.bytes_left -= bytes.as_ref().map_or(0, |bytes| bytes.len() as u64);
        self.progress.note(self.bytes_left == 0);
        Poll::Ready(bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes_left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes_left)
    }
}

/// Bytes of a part, without copying.
fn by_reference(part: &TextChunk) -> Bytes {
    match part {
        TextChunk::Fixed(text) => Bytes::from_static(text.as_bytes()),
        TextChunk::Shared(text) => Bytes::from_owner(TextBytes(text.clone())),
    }
}

/// Shared text as the owner of `Bytes`.
struct TextBytes(SharedText);

impl AsRef<[u8]> for TextBytes {
    fn as_ref(&self) -> &[u8] {
        self.0.as_str().as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(parts: &ChunkedText) -> Vec<Bytes> {
        let mut rope = PartsBody::new(parts.clone());
        std::iter::from_fn(|| rope.next_bytes()).collect()
    }

    fn shared(letter: &str, bytes: usize) -> TextChunk {
        TextChunk::Shared(SharedText::from(letter.repeat(bytes)))
    }

    /// True if the bytes point into the part, that is, were not copied.
    fn stand_in(bytes: &Bytes, part: &TextChunk) -> bool {
        let whole = part.as_str().as_bytes().as_ptr_range();
        whole.contains(&bytes.as_ptr()) && bytes.as_ptr_range().end <= whole.end
    }

    #[test]
    fn large_parts_are_not_copied_and_small_ones_are_gathered() {
        let parts: ChunkedText = [
            TextChunk::Fixed("{"),
            shared("a", 300),
            TextChunk::Fixed(","),
            shared("b", 5 * BUFFER_BYTES + 1),
            TextChunk::Fixed("}"),
        ]
        .into_iter()
        .collect();
        let frames = frames(&parts);
        let sizes: Vec<usize> = frames.iter().map(Bytes::len).collect();
        let full = BUFFER_BYTES;
        assert_eq!(sizes, [302, full, full, full, full, full, 1, 1]);
        let large = parts.get(3).unwrap();
        for window in &frames[1..7] {
            assert!(stand_in(window, large), "a window of the large part was copied");
        }
        assert_eq!(frames.concat(), parts.to_joined_string().as_bytes());
    }

    #[test]
    fn small_parts_fill_buffers_up_to_the_limit() {
        let parts: ChunkedText = (0..100_000).map(|at| shared("x", at % 40)).collect();
        let frames = frames(&parts);
        assert!(frames.iter().all(|frame| !frame.is_empty() && frame.len() <= BUFFER_BYTES));
        assert!(frames.len() <= parts.byte_len() / (BUFFER_BYTES - 40) + 1, "{} frames", frames.len());
        assert_eq!(frames.concat(), parts.to_joined_string().as_bytes());
    }

    #[test]
    fn any_mixture_of_sizes_arrives_whole_and_the_length_is_exact() {
        let edges = [0, 1, LARGE_BYTES - 1, LARGE_BYTES, BUFFER_BYTES - 1, BUFFER_BYTES, BUFFER_BYTES + 1];
        for first in edges {
            for second in edges {
                for third in edges {
                    let parts: ChunkedText =
                        [shared("é", first / 2), shared("b", second), shared("c", third)]
                            .into_iter()
                            .collect();
                    let mut rope = PartsBody::new(parts.clone());
                    assert_eq!(rope.size_hint().exact(), Some(parts.byte_len() as u64));
                    let mut received = Vec::new();
                    while let Some(bytes) = rope.next_bytes() {
                        received.extend_from_slice(&bytes);
                    }
                    assert_eq!(received, parts.to_joined_string().as_bytes());
                }
            }
        }
    }
}
