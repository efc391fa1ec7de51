//! Messages that were spelled, so that they need not be spelled again.
//!
//! What was spelled is held in chunks of many messages each, so that a long history is a handful of parts: neighbours
//! of about one size are put together, as long as the result is not too large, so every byte is moved a few times at
//! most. A change inside a chunk has the rest of that chunk spelled again.

use pal_model::{Part, Text};

use crate::Piece;
use crate::message::Message;
use crate::spell::Speller;

/// Most bytes of the messages that are put together.
const CHUNK_BYTES_MOST: usize = 256 << 10;
/// Parts from this size on stay where they are: moving them would cost more than another part.
const PART_BYTES_LARGE: usize = 32 << 10;

/// The messages of the last request.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// All their blocks.
    pieces: Vec<Piece>,
    messages: Vec<Bounds>,
    chunks: Vec<Chunk>,
}

/// A message: where its blocks end, and whether a request ended with it.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    end: usize,
    ends_request: bool,
}

/// Neighbouring messages, spelled, with commas between them.
#[derive(Debug)]
struct Chunk {
    /// How many messages.
    messages: usize,
    bytes: usize,
    parts: Vec<Part>,
}

impl Kept {
    /// Makes these the kept messages; those that are not kept already are spelled.
    pub(crate) fn update<'a>(
        &mut self,
        messages: impl Iterator<Item = Message<'a>>,
        spell: impl Fn(&mut Speller, &Message<'_>),
    ) {
        let mut messages = messages.peekable();
        let mut same = 0;
        let mut start = 0;
        // A chunk stays or goes as a whole, so messages are looked at again from its beginning.
        let mut pending: Vec<Message<'a>> = Vec::new();
        let mut chunks = 0;
        let mut chunk_end = self.chunks.first().map_or(0, |chunk| chunk.messages);
        while let Some(message) = messages.peek() {
            if !self.is_kept(same, start, message) {
                break;
            }
            start += message.pieces.len();
            same += 1;
            pending.extend(messages.next());
            if same == chunk_end {
                pending.clear();
                chunks += 1;
                chunk_end += self.chunks.get(chunks).map_or(0, |chunk| chunk.messages);
            }
        }
        if messages.peek().is_none() && same == self.messages.len() {
            return;
        }
        self.truncate(chunks);
        for message in pending.into_iter().chain(messages) {
            let mut speller = Speller::default();
            spell(&mut speller, &message);
            self.push(&message, speller.finish());
        }
    }

    /// All messages, separated by commas; the first one, too, if something stands before it.
    pub(crate) fn parts(&self, has_first: bool) -> impl Iterator<Item = Part> {
        let mut begun = has_first;
        self.chunks.iter().filter(|chunk| !chunk.parts.is_empty()).flat_map(move |chunk| {
            let comma = if std::mem::replace(&mut begun, true) { "," } else { "" };
            std::iter::once(Part::Fixed(comma)).chain(chunk.parts.iter().cloned())
        })
    }

    /// Whether the message at a position, whose blocks start there, is this one.
    fn is_kept(&self, at: usize, start: usize, message: &Message<'_>) -> bool {
        let end = start + message.pieces.len();
        let (Some(bounds), Some(kept)) = (self.messages.get(at), self.pieces.get(start..end)) else {
            return false;
        };
        bounds.end == end
            && bounds.ends_request == message.ends_request
            && kept.iter().zip(message.pieces).all(|(old, new)| {
                old.opens == new.opens
                    && (old.is_marked == new.is_marked || !message.has_breakpoints)
                    && old.block == new.block
            })
    }

    /// Forgets all but the first chunks.
    fn truncate(&mut self, chunks: usize) {
        self.chunks.truncate(chunks);
        self.messages.truncate(self.chunks.iter().map(|chunk| chunk.messages).sum());
        self.pieces.truncate(self.messages.last().map_or(0, |bounds| bounds.end));
    }

    fn push(&mut self, message: &Message<'_>, parts: Vec<Part>) {
        self.pieces.extend_from_slice(message.pieces);
        self.messages.push(Bounds { end: self.pieces.len(), ends_request: message.ends_request });
        let bytes = parts.iter().map(|part| part.as_str().len()).sum();
        self.chunks.push(Chunk { messages: 1, bytes, parts });
        while let [.., before, last] = self.chunks.as_slice()
            && before.bytes <= 2 * last.bytes
            && before.bytes + last.bytes <= CHUNK_BYTES_MOST
            && let (Some(last), Some(before)) = (self.chunks.pop(), self.chunks.pop())
        {
            self.chunks.push(before.join(last));
        }
    }
}

impl Chunk {
    /// Two neighbours in one.
    fn join(self, next: Chunk) -> Chunk {
        let comma = if self.parts.is_empty() || next.parts.is_empty() { "" } else { "," };
        let mut parts = Vec::new();
        let mut loose = String::with_capacity(self.bytes + next.bytes + 1);
        for part in self.parts.into_iter().chain([Part::Fixed(comma)]).chain(next.parts) {
            if part.as_str().len() < PART_BYTES_LARGE {
                loose.push_str(part.as_str());
                continue;
            }
            flush(&mut parts, &mut loose);
            parts.push(part);
        }
        flush(&mut parts, &mut loose);
        Chunk { messages: self.messages + next.messages, bytes: self.bytes + next.bytes + comma.len(), parts }
    }
}

fn flush(parts: &mut Vec<Part>, loose: &mut String) {
    if !loose.is_empty() {
        parts.push(Part::Shared(Text::from(loose.as_str())));
        loose.clear();
    }
}
