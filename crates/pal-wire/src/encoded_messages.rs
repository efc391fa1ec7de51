//! Cache of encoded messages.
//!
//! Encoded messages are held in chunks, so that a long history consists of few parts. Neighboring chunks of similar size
//! are merged up to a limit, so every byte is moved only a few times. A change inside a chunk re-encodes that chunk.

use pal_model::{SharedText, TextChunk};

use crate::ConversationBlock;
use crate::chunk_writer::ChunkWriter;
use crate::conversation_message::ConversationMessage;

/// Maximum size of a merged chunk.
const MERGED_CHUNK_BYTES_MAX: usize = 256 << 10;
/// Minimum size of a part that is not copied when merging.
const UNMERGED_PART_BYTES_MIN: usize = 32 << 10;

/// Encoded messages of the last request.
#[derive(Debug, Default)]
pub(crate) struct EncodedMessages {
    /// Blocks of all messages.
    pieces: Vec<ConversationBlock>,
    messages: Vec<MessageBounds>,
    chunks: Vec<EncodedChunk>,
}

/// End index of a message's blocks, and whether a request ended with it.
#[derive(Clone, Copy, Debug)]
struct MessageBounds {
    end: usize,
    ends_request: bool,
}

/// Consecutive encoded messages, separated by commas.
#[derive(Debug)]
struct EncodedChunk {
    messages: usize,
    bytes: usize,
    parts: Vec<TextChunk>,
}

impl EncodedMessages {
    /// Replaces the messages, encoding those that differ from the kept ones.
    pub(crate) fn update<'a>(
        &mut self,
        messages: impl Iterator<Item = ConversationMessage<'a>>,
        encode: impl Fn(&mut ChunkWriter, &ConversationMessage<'_>),
    ) {
        let mut messages = messages.peekable();
        let mut same = 0;
        let mut start = 0;
        // A chunk is kept or dropped as a whole, so its messages may have to be encoded again.
        let mut pending: Vec<ConversationMessage<'a>> = Vec::new();
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
            let mut writer = ChunkWriter::default();
            encode(&mut writer, &message);
            self.push(&message, writer.finish());
        }
    }

    /// Returns all messages separated by commas; with a leading comma if `has_first`.
    pub(crate) fn parts(&self, has_first: bool) -> impl Iterator<Item = TextChunk> {
        let mut begun = has_first;
        self.chunks.iter().filter(|chunk| !chunk.parts.is_empty()).flat_map(move |chunk| {
            let comma = if std::mem::replace(&mut begun, true) { "," } else { "" };
            std::iter::once(TextChunk::Fixed(comma)).chain(chunk.parts.iter().cloned())
        })
    }

    /// Returns true if the kept message at index `at`, whose blocks begin at `start`, equals `message`.
    fn is_kept(&self, at: usize, start: usize, message: &ConversationMessage<'_>) -> bool {
        let end = start + message.pieces.len();
        let (Some(bounds), Some(kept)) = (self.messages.get(at), self.pieces.get(start..end)) else {
            return false;
        };
        bounds.end == end
            && bounds.ends_request == message.ends_request
            && kept.iter().zip(message.pieces).all(|(old, new)| {
                old.starts_message == new.starts_message
                    && (old.has_breakpoint == new.has_breakpoint || !message.has_breakpoints)
                    && old.block == new.block
            })
    }

    /// Drops all but the first `chunks` chunks.
    fn truncate(&mut self, chunks: usize) {
        self.chunks.truncate(chunks);
        self.messages.truncate(self.chunks.iter().map(|chunk| chunk.messages).sum());
        self.pieces.truncate(self.messages.last().map_or(0, |bounds| bounds.end));
    }

    fn push(&mut self, message: &ConversationMessage<'_>, parts: Vec<TextChunk>) {
        self.pieces.extend_from_slice(message.pieces);
        self.messages.push(MessageBounds { end: self.pieces.len(), ends_request: message.ends_request });
        let bytes = parts.iter().map(|part| part.as_str().len()).sum();
        self.chunks.push(EncodedChunk { messages: 1, bytes, parts });
        while let [.., before, last] = self.chunks.as_slice()
            && before.bytes <= 2 * last.bytes
            && before.bytes + last.bytes <= MERGED_CHUNK_BYTES_MAX
            && let (Some(last), Some(before)) = (self.chunks.pop(), self.chunks.pop())
        {
            self.chunks.push(before.join(last));
        }
    }
}

impl EncodedChunk {
    /// Merges two neighboring chunks.
    fn join(self, next: EncodedChunk) -> EncodedChunk {
        let comma = if self.parts.is_empty() || next.parts.is_empty() { "" } else { "," };
        let mut parts = Vec::new();
        let mut loose = String::with_capacity(self.bytes + next.bytes + 1);
        for part in self.parts.into_iter().chain([TextChunk::Fixed(comma)]).chain(next.parts) {
            if part.as_str().len() < UNMERGED_PART_BYTES_MIN {
                loose.push_str(part.as_str());
                continue;
            }
            flush(&mut parts, &mut loose);
            parts.push(part);
        }
        flush(&mut parts, &mut loose);
        EncodedChunk {
            messages: self.messages + next.messages,
            bytes: self.bytes + next.bytes + comma.len(),
            parts,
        }
    }
}

fn flush(parts: &mut Vec<TextChunk>, loose: &mut String) {
    if !loose.is_empty() {
        parts.push(TextChunk::Shared(SharedText::from(loose.as_str())));
        loose.clear();
    }
}
