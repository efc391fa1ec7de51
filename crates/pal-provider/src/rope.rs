//! A request body that leaves in the parts it was made of.
//!
//! Small parts are gathered into buffers of at most [`BUFFER_BYTES`], so that punctuation does not become packets;
//! a large part goes out by reference, in windows of the same size, so that nothing below can pile up a copy of
//! it. The length is known from the start. It refuses to fail: there is nothing to read that could.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use pal_model::{Part, Parts, Text};
use tokio::time::Instant;

/// Most bytes of one frame.
const BUFFER_BYTES: usize = 64 * 1024;

/// A part of at least this many bytes is not copied.
const LARGE_BYTES: usize = 8 * 1024;

/// The body of one attempt. Another attempt begins with a clone of the same parts.
pub(crate) struct Rope {
    parts: Parts,
    next: usize,
    /// What is left of a large part.
    window: Bytes,
    bytes_left: u64,
    progress: Arc<SendProgress>,
}

/// Progress of a body on its way out, for the time limit on sending it.
#[derive(Debug, Default)]
pub(crate) struct SendProgress(Mutex<SendState>);

/// State of a body on its way out.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SendState {
    /// When the connection took the last piece; none before the first.
    pub(crate) last: Option<Instant>,
    /// Whether it took all of it.
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

impl Rope {
    /// A body that has yet to be sent.
    pub(crate) fn new(parts: Parts) -> Rope {
        let bytes_left = parts.bytes() as u64;
        Rope { bytes_left, parts, next: 0, window: Bytes::new(), progress: Arc::default() }
    }

    /// Notes in `progress` when each piece is taken.
    pub(crate) fn watched_by(self, progress: Arc<SendProgress>) -> Rope {
        Rope { progress, ..self }
    }

    /// The next bytes, or nothing at the end. Never empty.
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

    /// How many bytes the small parts from here on have that go into one buffer.
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

impl Body for Rope {
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

/// The bytes of a part, where they stand.
fn by_reference(part: &Part) -> Bytes {
    match part {
        Part::Fixed(text) => Bytes::from_static(text.as_bytes()),
        Part::Shared(text) => Bytes::from_owner(Shared(text.clone())),
    }
}

/// A shared text as the owner of bytes.
struct Shared(Text);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        self.0.as_str().as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(parts: &Parts) -> Vec<Bytes> {
        let mut rope = Rope::new(parts.clone());
        std::iter::from_fn(|| rope.next_bytes()).collect()
    }

    fn shared(letter: &str, bytes: usize) -> Part {
        Part::Shared(Text::from(letter.repeat(bytes)))
    }

    /// Whether the bytes stand inside of a part, that is, were not copied.
    fn stand_in(bytes: &Bytes, part: &Part) -> bool {
        let whole = part.as_str().as_bytes().as_ptr_range();
        whole.contains(&bytes.as_ptr()) && bytes.as_ptr_range().end <= whole.end
    }

    #[test]
    fn large_parts_are_not_copied_and_small_ones_are_gathered() {
        let parts: Parts = [
            Part::Fixed("{"),
            shared("a", 300),
            Part::Fixed(","),
            shared("b", 5 * BUFFER_BYTES + 1),
            Part::Fixed("}"),
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
        assert_eq!(frames.concat(), parts.joined().as_bytes());
    }

    #[test]
    fn many_small_parts_fill_buffers_to_the_brim_and_no_further() {
        let parts: Parts = (0..100_000).map(|at| shared("x", at % 40)).collect();
        let frames = frames(&parts);
        assert!(frames.iter().all(|frame| !frame.is_empty() && frame.len() <= BUFFER_BYTES));
        assert!(frames.len() <= parts.bytes() / (BUFFER_BYTES - 40) + 1, "{} frames", frames.len());
        assert_eq!(frames.concat(), parts.joined().as_bytes());
    }

    #[test]
    fn any_mixture_of_sizes_arrives_whole_and_the_length_is_exact() {
        let edges = [0, 1, LARGE_BYTES - 1, LARGE_BYTES, BUFFER_BYTES - 1, BUFFER_BYTES, BUFFER_BYTES + 1];
        for first in edges {
            for second in edges {
                for third in edges {
                    let parts: Parts = [shared("é", first / 2), shared("b", second), shared("c", third)]
                        .into_iter()
                        .collect();
                    let mut rope = Rope::new(parts.clone());
                    assert_eq!(rope.size_hint().exact(), Some(parts.bytes() as u64));
                    let mut received = Vec::new();
                    while let Some(bytes) = rope.next_bytes() {
                        received.extend_from_slice(&bytes);
                    }
                    assert_eq!(received, parts.joined().as_bytes());
                }
            }
        }
    }
}
