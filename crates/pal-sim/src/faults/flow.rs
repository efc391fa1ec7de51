//! Faults of bytes: where an answer ends, in which pieces it leaves, and when.

use std::time::Duration;

use bytes::{Bytes, BytesMut};

use crate::chance::Chance;
use crate::{Chunk, Ending, Reply};

/// The answer up to this byte.
pub(crate) fn up_to(mut reply: Reply, at: usize) -> Reply {
    let mut left = at;
    reply.chunks.retain_mut(|chunk| {
        let kept = chunk.bytes.len().min(left);
        left -= kept;
        chunk.bytes.truncate(kept);
        kept > 0
    });
    reply
}

/// The answer with nothing coming at this byte: for a while, or for ever.
pub(crate) fn silent(reply: Reply, at: usize, length: Option<Duration>) -> Reply {
    let Some(length) = length else { return Reply { ending: Ending::Silent, ..up_to(reply, at) } };
    let mut chunks = Vec::with_capacity(reply.chunks.len() + 1);
    let mut passed = 0;
    for mut chunk in reply.chunks {
        let before = chunk.bytes.split_to(at.saturating_sub(passed).min(chunk.bytes.len()));
        passed += before.len() + chunk.bytes.len();
        if !before.is_empty() {
            chunks.push(Chunk { at: chunk.at, bytes: before });
        }
        if !chunk.bytes.is_empty() {
            chunks.push(Chunk { at: chunk.at + length, bytes: chunk.bytes });
        }
    }
    Reply { chunks, ..reply }
}

/// Most bytes of a piece whose size is left to chance.
const PIECE_MOST: usize = 48;

/// The answer in smaller pieces, cut anywhere: inside a character, inside a line end.
pub(crate) fn split(reply: Reply, size: Option<usize>, chance: &mut Chance) -> Reply {
    let mut chunks = Vec::new();
    for mut chunk in reply.chunks {
        while !chunk.bytes.is_empty() {
            let wanted = size.unwrap_or_else(|| 1 + chance.below(PIECE_MOST));
            let piece = chunk.bytes.split_to(wanted.min(chunk.bytes.len()));
            chunks.push(Chunk { at: chunk.at, bytes: piece });
        }
    }
    Reply { chunks, ..reply }
}

/// The answer in larger pieces: a piece waits for its neighbour, by chance or always.
pub(crate) fn merged(reply: Reply, all: bool, chance: &mut Chance) -> Reply {
    let mut chunks: Vec<Chunk> = Vec::new();
    let mut open: Option<(Duration, BytesMut)> = None;
    for chunk in reply.chunks {
        let (at, bytes) = open.get_or_insert_with(|| (chunk.at, BytesMut::new()));
        *at = chunk.at;
        bytes.extend_from_slice(&chunk.bytes);
        if !all && chance.below(2) == 0 {
            chunks.extend(open.take().map(|(at, bytes)| Chunk { at, bytes: bytes.freeze() }));
        }
    }
    chunks.extend(open.map(|(at, bytes)| Chunk { at, bytes: bytes.freeze() }));
    Reply { chunks, ..reply }
}

/// The answer with at least this time between two pieces.
pub(crate) fn slow(reply: Reply, gap: Duration, size: Option<usize>) -> Reply {
    let mut reply = match size {
        Some(_) => split(reply, size, &mut Chance::of(&[])),
        None => reply,
    };
    let mut earliest = Duration::ZERO;
    for chunk in &mut reply.chunks {
        earliest = chunk.at.max(earliest.saturating_add(gap));
        chunk.at = earliest;
    }
    reply
}

/// The stream with its lines ended by two characters, which the format of event streams allows.
pub(crate) fn with_crlf(mut reply: Reply, is_stream: bool) -> Reply {
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

/// The answer under another content type.
pub(crate) fn with_content_type(mut reply: Reply, value: &str) -> Reply {
    reply.headers.retain(|(name, _)| *name != "content-type");
    reply.headers.push(("content-type", value.to_owned()));
    reply
}
