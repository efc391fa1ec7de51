//! Faults on the byte level: truncation, chunking and timing of a reply.

use std::time::Duration;

use bytes::{Bytes, BytesMut};

use crate::seeded_rng::SeededRng;
use crate::{HttpReply, ReplyChunk, ReplyEnding};

/// Truncates the reply at this byte.
pub(crate) fn truncate_at(mut reply: HttpReply, at: usize) -> HttpReply {
    let mut left = at;
    reply.chunks.retain_mut(|chunk| {
        let kept = chunk.bytes.len().min(left);
        left -= kept;
        chunk.bytes.truncate(kept);
        kept > 0
    });
    reply
}

/// Inserts silence at this byte: for a while, or for ever.
pub(crate) fn insert_silence(reply: HttpReply, at: usize, length: Option<Duration>) -> HttpReply {
    let Some(length) = length else {
        return HttpReply { ending: ReplyEnding::Silent, ..truncate_at(reply, at) };
    };
    let mut chunks = Vec::with_capacity(reply.chunks.len() + 1);
    let mut passed = 0;
    for mut chunk in reply.chunks {
        let before = chunk.bytes.split_to(at.saturating_sub(passed).min(chunk.bytes.len()));
        passed += before.len() + chunk.bytes.len();
        if !before.is_empty() {
            chunks.push(ReplyChunk { at: chunk.at, bytes: before });
        }
        if !chunk.bytes.is_empty() {
            chunks.push(ReplyChunk { at: chunk.at + length, bytes: chunk.bytes });
        }
    }
    HttpReply { chunks, ..reply }
}

/// Maximum size of randomly sized pieces, in bytes.
const PIECE_MAX: usize = 48;

/// Splits the reply into smaller chunks at arbitrary bytes, even inside a character or a line end.
pub(crate) fn split(reply: HttpReply, size: Option<usize>, chance: &mut SeededRng) -> HttpReply {
    let mut chunks = Vec::new();
    for mut chunk in reply.chunks {
        while !chunk.bytes.is_empty() {
            let wanted = size.unwrap_or_else(|| 1 + chance.below(PIECE_MAX));
            let piece = chunk.bytes.split_to(wanted.min(chunk.bytes.len()));
            chunks.push(ReplyChunk { at: chunk.at, bytes: piece });
        }
    }
    HttpReply { chunks, ..reply }
}

/// Merges chunks with their neighbors, all or at random.
pub(crate) fn merge_chunks(reply: HttpReply, all: bool, chance: &mut SeededRng) -> HttpReply {
    let mut chunks: Vec<ReplyChunk> = Vec::new();
    let mut open: Option<(Duration, BytesMut)> = None;
    for chunk in reply.chunks {
        let (at, bytes) = open.get_or_insert_with(|| (chunk.at, BytesMut::new()));
        *at = chunk.at;
        bytes.extend_from_slice(&chunk.bytes);
        if !all && chance.below(2) == 0 {
            chunks.extend(open.take().map(|(at, bytes)| ReplyChunk { at, bytes: bytes.freeze() }));
        }
    }
    chunks.extend(open.map(|(at, bytes)| ReplyChunk { at, bytes: bytes.freeze() }));
    HttpReply { chunks, ..reply }
}

/// Delays chunks so that at least `gap` lies between two.
pub(crate) fn slow(reply: HttpReply, gap: Duration, size: Option<usize>) -> HttpReply {
    let mut reply = match size {
        Some(_) => split(reply, size, &mut SeededRng::from_numbers(&[])),
        None => reply,
    };
    let mut earliest = Duration::ZERO;
    for chunk in &mut reply.chunks {
        earliest = chunk.at.max(earliest.saturating_add(gap));
        chunk.at = earliest;
    }
    reply
}

/// Ends the stream's lines with CRLF, which the event stream format allows.
pub(crate) fn use_crlf(mut reply: HttpReply, is_stream: bool) -> HttpReply {
    if is_stream {
        for chunk in &mut reply.chunks {
            let mut bytes = Vec::with_capacity(chunk.bytes.len() + 8);
            for byte in &chunk.bytes {
                if *byte == b'\n' {
                    bytes.push(b'\r');
                }
                bytes.push(*byte);
            }
            chunk.bytes = Bytes::from(bytes);
        }
    }
    reply
}

/// Replaces the content type.
pub(crate) fn with_content_type(mut reply: HttpReply, value: &str) -> HttpReply {
    reply.headers.retain(|(name, _)| *name != "content-type");
    reply.headers.push(("content-type", value.to_owned()));
    reply
}
