//! Faults on the event level: malformed, repeated and unknown events, errors, wrong usage; and positions in a
//! reply.
//!
//! Works in any dialect: a stream is a list of events, any other reply one JSON object.

use bytes::Bytes;
use memchr::memmem;
use pal_model::{escape_into, object_fields};
use pal_wire::{ApiError, ApiErrorKind, Dialect};
use serde_json::{Value, json};

use super::error_replies;
use super::fault_grammar::{FaultPoint, UsageFault};
use crate::seeded_rng::SeededRng;
use crate::{HttpReply, ReplyChunk};

/// Byte offset of a fault point in a reply.
pub(crate) fn fault_offset(
    reply: &HttpReply,
    is_stream: bool,
    place: FaultPoint,
    chance: &mut SeededRng,
) -> usize {
    let body = reply.body();
    let ends = if is_stream { frame_ends(&body) } else { Vec::new() };
    let content = content_frame(&body, &ends);
    let start_of =
        |frame: usize| frame.checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or(0);
    match place {
        FaultPoint::Headers => 0,
        FaultPoint::Byte(at) => at.min(body.len()),
        FaultPoint::Random => chance.below(body.len()),
        FaultPoint::Before => start_of(content),
        FaultPoint::After => ends.get(content).copied().unwrap_or(body.len() / 2),
        FaultPoint::End if is_stream => start_of(ends.len().saturating_sub(1)),
        FaultPoint::End => body.len().saturating_sub(1),
    }
}

/// Truncates the JSON of one event.
pub(crate) fn truncate_event(
    reply: HttpReply,
    is_stream: bool,
    at: FaultPoint,
    chance: &mut SeededRng,
) -> HttpReply {
    if !is_stream {
        return with_body(reply, |body| {
            body.truncate(body.len().saturating_sub(1));
            body.push(b']');
        });
    }
    let mut reply = rechunk_by_event(reply);
    let chosen = match at {
        FaultPoint::Random => {
            let meaning = indices(&reply.chunks, |bytes| !is_event(bytes, "ping") && data(bytes).is_some());
            meaning.get(chance.below(meaning.len())).copied()
        }
        place => {
            let at = fault_offset(&reply, true, place, chance);
            frame_at(&reply.chunks, at)
        }
    };
    if let Some(chunk) = chosen.and_then(|index| reply.chunks.get_mut(index)) {
        let line = data(&chunk.bytes).map_or(0, |(start, end)| start + (end - start) * 2 / 3);
        let mut bytes = chunk.bytes.slice(..line).to_vec();
        bytes.extend_from_slice(b"\n\n");
        chunk.bytes = Bytes::from(bytes);
    }
    reply
}

/// Ends the answer with an error: an event in a stream, an error status otherwise.
pub(crate) fn end_with_error(
    reply: HttpReply,
    is_stream: bool,
    kind: ApiErrorKind,
    (at, chance): (FaultPoint, &mut SeededRng),
) -> HttpReply {
    let message = match kind {
        ApiErrorKind::Overloaded => "Overloaded",
        ApiErrorKind::RateLimit => "Too many requests in a short time.",
        ApiErrorKind::Timeout => "The request took too long.",
        _ => "Internal server error",
    };
    let dialect = dialect(&reply.body());
    if !is_stream {
        return error_replies::error(&ApiError::new(kind, message), 0, dialect);
    }
    let event = match dialect {
        Dialect::Messages => {
            let json = json!({"type": "error", "error": {"type": kind.as_str(), "message": message}});
            format!("event: error\ndata: {json}\n\n")
        }
        Dialect::Responses => {
            let json = json!({"type": "error", "code": "server_error", "message": message, "param": null});
            format!("event: error\ndata: {json}\n\n")
        }
        Dialect::Chat => {
            let json =
                json!({"error": {"message": message, "type": "server_error", "param": null, "code": null}});
            format!("data: {json}\n\n")
        }
    };
    let mut reply = rechunk_by_event(reply);
    let at = fault_offset(&reply, true, at, chance);
    let index = frame_at(&reply.chunks, at).unwrap_or(reply.chunks.len());
    let moment =
        reply.chunks.get(index).or(reply.chunks.last()).map_or_else(Default::default, |chunk| chunk.at);
    reply.chunks.truncate(index);
    reply.chunks.push(ReplyChunk { at: moment, bytes: Bytes::from(event) });
    reply
}

/// Sends one event twice: the first with this name, or a random one whose repetition is detectable. Content
/// deltas are never repeated at random.
pub(crate) fn duplicate_event(
    reply: HttpReply,
    is_stream: bool,
    event: Option<&str>,
    chance: &mut SeededRng,
) -> HttpReply {
    if !is_stream {
        return reply;
    }
    let mut reply = rechunk_by_event(reply);
    let chosen = match event {
        Some(name) => reply.chunks.iter().position(|chunk| is_event(&chunk.bytes, name)),
        None => {
            let plain = indices(&reply.chunks, |bytes| !is_content(bytes) && !is_event(bytes, "ping"));
            plain.get(chance.below(plain.len())).copied()
        }
    };
    if let Some((index, twin)) = chosen.and_then(|index| Some((index, reply.chunks.get(index)?.clone()))) {
        reply.chunks.insert(index, twin);
    }
    reply
}

/// Adds events, deltas, comments and members unknown to clients.
pub(crate) fn add_unknown_events(reply: HttpReply, is_stream: bool, chance: &mut SeededRng) -> HttpReply {
    if !is_stream {
        return with_body(reply, |body| {
            if body.last() == Some(&b'}') {
                body.pop();
                body.extend_from_slice(br#","novelty":{"of":["a later day"]}}"#);
            }
        });
    }
    let strangers: [&str; 3] = match dialect(&reply.body()) {
        Dialect::Messages => [
            ": a comment\n\n",
            "event: novelty\ndata: {\"type\":\"novelty\",\"index\":0,\"of\":[\"a later day\"]}\n\n",
            "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"novelty_delta\",\"novelty\":\"x\"}}\n\n",
        ],
        Dialect::Responses => [
            ": a comment\n\n",
            "event: response.novelty\ndata: {\"type\":\"response.novelty\",\"sequence_number\":0}\n\n",
            "event: response.novelty.delta\ndata: {\"type\":\"response.novelty.delta\",\"delta\":\"x\"}\n\n",
        ],
        Dialect::Chat => [
            ": a comment\n\n",
            "data: {\"object\":\"chat.completion.novelty\",\"choices\":[]}\n\n",
            "data: {\"object\":\"chat.completion.chunk\",\"choices\":[],\"novelty\":\"x\"}\n\n",
        ],
    };
    let mut reply = rechunk_by_event(reply);
    // Unknown events may follow any event but the first; an unknown delta belongs to the open block.
    let open = content_index(&reply.chunks).unwrap_or(1);
    for (place, stranger) in strangers.into_iter().enumerate() {
        let most = reply.chunks.len().saturating_sub(1).max(1);
        let index = if place == 2 { open + place } else { 1 + chance.below(open) };
        let index = index.min(most).min(reply.chunks.len());
        let at =
            reply.chunks.get(index).or(reply.chunks.last()).map_or_else(Default::default, |chunk| chunk.at);
        reply.chunks.insert(index, ReplyChunk { at, bytes: Bytes::from_static(stranger.as_bytes()) });
    }
    reply
}

/// Replaces every usage count with a wrong value.
pub(crate) fn falsify_usage(reply: HttpReply, is_stream: bool, wrong: UsageFault) -> HttpReply {
    if !is_stream {
        return with_body(reply, |body| {
            if let Some(json) =
                std::str::from_utf8(body).ok().and_then(|json| falsify_usage_members(json, wrong))
            {
                *body = json.into_bytes();
            }
        });
    }
    let mut reply = rechunk_by_event(reply);
    for chunk in &mut reply.chunks {
        let spoiled = data(&chunk.bytes).and_then(|(start, end)| {
            let json = std::str::from_utf8(chunk.bytes.get(start..end)?).ok()?;
            let json = falsify_usage_members(json, wrong)?;
            Some([chunk.bytes.get(..start)?, json.as_bytes(), chunk.bytes.get(end..)?].concat())
        });
        if let Some(spoiled) = spoiled {
            chunk.bytes = Bytes::from(spoiled);
        }
    }
    reply
}

/// JSON object with a wrong `usage`, at the top or inside `message` or `response`; `None` if it has none.
fn falsify_usage_members(json: &str, wrong: UsageFault) -> Option<String> {
    let members = object_fields(json).ok()?;
    let mut found = false;
    let mut out = String::from("{");
    for (name, value) in &members {
        let spoiled = match name.as_ref() {
            "usage" if value.starts_with('{') => {
                found = true;
                if wrong == UsageFault::Missing {
                    continue;
                }
                let usage: Value = serde_json::from_str(value).ok()?;
                Some(counts(usage, wrong).to_string())
            }
            "message" | "response" if value.starts_with('{') => falsify_usage_members(value, wrong),
            _ => None,
        };
        found |= spoiled.is_some();
        if out.len() > 1 {
            out.push(',');
        }
        escape_into(&mut out, name);
        out.push(':');
        out.push_str(spoiled.as_deref().unwrap_or(value));
    }
    out.push('}');
    found.then_some(out)
}

fn counts(value: Value, wrong: UsageFault) -> Value {
    match value {
        Value::Number(number) => match wrong {
            UsageFault::AtMost(most) => Value::from(number.as_u64().unwrap_or(0).min(most)),
            UsageFault::Null => Value::Null,
            UsageFault::Huge => Value::from(9_007_199_254_740_991_u64),
            UsageFault::Zero | UsageFault::Missing => Value::from(0),
        },
        Value::Object(members) => {
            members.into_iter().map(|(name, value)| (name, counts(value, wrong))).collect()
        }
        Value::Array(items) => items.into_iter().map(|item| counts(item, wrong)).collect(),
        other => other,
    }
}

/// Rechunks the stream to one chunk per event, sent when the event's last byte was.
fn rechunk_by_event(reply: HttpReply) -> HttpReply {
    let body = Bytes::from(reply.body());
    let mut chunks = Vec::new();
    let mut sources = reply.chunks.iter();
    let (mut at, mut reached, mut start) = (Default::default(), 0, 0);
    for end in frame_ends(&body) {
        while reached < end {
            let Some(source) = sources.next() else { break };
            at = source.at;
            reached += source.bytes.len();
        }
        chunks.push(ReplyChunk { at, bytes: body.slice(start..end) });
        start = end;
    }
    HttpReply { chunks, ..reply }
}

/// End offsets of the events, blank line included; trailing bytes without one count as an event.
fn frame_ends(body: &[u8]) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut line_start = 0;
    for newline in memchr::memchr_iter(b'\n', body) {
        let line = body.get(line_start..newline).unwrap_or_default();
        if line.is_empty() || line == b"\r" {
            ends.push(newline + 1);
        }
        line_start = newline + 1;
    }
    if ends.last().copied().unwrap_or(0) < body.len() {
        ends.push(body.len());
    }
    ends
}

/// Index of the first event with content; 1 if there is none.
fn content_frame(body: &[u8], ends: &[usize]) -> usize {
    let starts = std::iter::once(0).chain(ends.iter().copied());
    let frames = starts.zip(ends).map(|(start, end)| body.get(start..*end).unwrap_or_default());
    frames.into_iter().position(is_content).unwrap_or(1)
}

fn content_index(chunks: &[ReplyChunk]) -> Option<usize> {
    chunks.iter().position(|chunk| is_content(&chunk.bytes))
}

/// Index of the event that contains this byte.
fn frame_at(chunks: &[ReplyChunk], at: usize) -> Option<usize> {
    let mut passed = 0;
    chunks.iter().position(|chunk| {
        passed += chunk.bytes.len();
        at < passed
    })
}

fn indices(chunks: &[ReplyChunk], wanted: impl Fn(&[u8]) -> bool) -> Vec<usize> {
    let matching = chunks.iter().enumerate().filter(|(_, chunk)| wanted(&chunk.bytes));
    matching.map(|(index, _)| index).collect()
}

/// Event name, if any.
fn event_name(frame: &[u8]) -> Option<&[u8]> {
    let line = frame.split(|byte| *byte == b'\n').next()?;
    line.strip_prefix(b"event: ").map(<[u8]>::trim_ascii_end)
}

fn is_event(frame: &[u8], name: &str) -> bool {
    event_name(frame) == Some(name.as_bytes())
}

/// True if an event carries content, in any dialect.
fn is_content(frame: &[u8]) -> bool {
    match event_name(frame) {
        Some(name) => name == b"content_block_delta" || name.ends_with(b".delta"),
        None => {
            let has = |needle: &[u8]| memmem::find(frame, needle).is_some();
            has(br#""delta":{"#)
                && (has(br#""content":""#) || has(br#""tool_calls":"#) || has(br#""reasoning"#))
        }
    }
}

/// Range of the event's JSON data.
fn data(frame: &[u8]) -> Option<(usize, usize)> {
    let start = memmem::find(frame, b"data: {")? + b"data: ".len();
    let length = frame.get(start..)?.iter().position(|byte| matches!(byte, b'\n' | b'\r'))?;
    Some((start, start + length))
}

/// Detects the dialect of a body.
fn dialect(body: &[u8]) -> Dialect {
    let head = body.get(..body.len().min(4096)).unwrap_or_default();
    let has = |needle: &[u8]| memmem::find(head, needle).is_some();
    if has(b"event: response.") || has(br#""object":"response""#) {
        Dialect::Responses
    } else if has(br#""object":"chat."#) || has(br#""object": "chat."#) {
        Dialect::Chat
    } else {
        Dialect::Messages
    }
}

fn with_body(mut reply: HttpReply, change: impl Fn(&mut Vec<u8>)) -> HttpReply {
    let mut body = reply.body();
    change(&mut body);
    let at = reply.chunks.last().map_or_else(Default::default, |chunk| chunk.at);
    reply.chunks = vec![ReplyChunk { at, bytes: Bytes::from(body) }];
    reply
}
