//! Encodes answers of the Messages dialect, as one JSON object or as stream events.
//!
//! It owns the order and format of events and the split of blocks into deltas. Blocks, usage and extras
//! arrive as raw JSON and are not changed; concatenating the deltas of a block gives the block.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use pal_model::{BlockType, JsonField, SharedText, array_items, escape_into, object_fields, unescape};

use crate::ReplyChunk;

/// A complete response, ready for encoding.
#[derive(Clone, Debug)]
pub(crate) struct MessagesResponse {
    /// Response id.
    pub id: String,
    /// Model name.
    pub model: String,
    /// Blocks, raw, in Messages form.
    pub blocks: Vec<SharedText>,
    /// Stop reason.
    pub stop_reason: Option<String>,
    /// Matched stop sequence.
    pub stop_sequence: Option<String>,
    /// Final usage, raw JSON.
    pub usage: String,
    /// Further members, raw: `diagnostics`, `input_transformations`, `container`, `stop_details`,
    /// `context_management`.
    pub extras: Vec<(&'static str, String)>,
}

/// One stream event.
#[derive(Clone, Debug)]
pub(crate) struct EventFrame {
    /// Bytes of the event, blank line included.
    pub bytes: Bytes,
    /// Bytes of content in it.
    pub spoken: usize,
}

/// Encodes a response as one JSON object.
pub(crate) fn encode_whole(response: &MessagesResponse) -> String {
    let mut out = String::with_capacity(512 + response.blocks.iter().map(|raw| raw.len() + 1).sum::<usize>());
    opening(&mut out, response);
    for (at, raw) in response.blocks.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        out.push_str(raw);
    }
    out.push(']');
    stops(&mut out, response);
    for (name, raw) in &response.extras {
        member(&mut out, name, raw);
    }
    member(&mut out, "usage", &response.usage);
    out.push('}');
    out
}

/// Encodes a response as events, in order.
pub(crate) fn encode_events(response: &MessagesResponse) -> Vec<EventFrame> {
    let mut frames = vec![message_start(response), frame("ping", r#"{"type":"ping"}"#, 0)];
    for (index, raw) in response.blocks.iter().enumerate() {
        block_frames(&mut frames, index, raw);
    }
    frames.push(message_delta(response));
    frames.push(frame("message_stop", r#"{"type":"message_stop"}"#, 0));
    frames
}

/// Assigns sending times: the first event at `start`, the last `speaking` later, the others in proportion to
/// the content sent.
pub(crate) fn chunks(frames: Vec<EventFrame>, start: Duration, speaking: Duration) -> Vec<ReplyChunk> {
    let total: usize = frames.iter().map(|frame| frame.spoken).sum();
    let mut spoken = 0;
    let mut chunks = Vec::with_capacity(frames.len());
    for frame in frames {
        spoken += frame.spoken;
        let share = if total == 0 { 0.0 } else { spoken as f64 / total as f64 };
        chunks.push(ReplyChunk { at: start + speaking.mul_f64(share), bytes: frame.bytes });
    }
    chunks
}

/// `{"id":…,"content":[`: the list is left open.
fn opening(out: &mut String, response: &MessagesResponse) {
    out.push_str(r#"{"id":"#);
    escape_into(out, &response.id);
    out.push_str(r#","type":"message","role":"assistant","model":"#);
    escape_into(out, &response.model);
    out.push_str(r#","content":["#);
}

fn stops(out: &mut String, response: &MessagesResponse) {
    optional(out, r#","stop_reason":"#, response.stop_reason.as_deref());
    optional(out, r#","stop_sequence":"#, response.stop_sequence.as_deref());
}

fn optional(out: &mut String, name: &str, value: Option<&str>) {
    out.push_str(name);
    match value {
        Some(value) => escape_into(out, value),
        None => out.push_str("null"),
    }
}

fn member(out: &mut String, name: &str, raw: &str) {
    out.push(',');
    escape_into(out, name);
    out.push(':');
    out.push_str(raw);
}

/// Stream event that carries an extra member.
#[derive(PartialEq, Eq)]
enum ExtraPlacement {
    Start,
    Delta,
    Beside,
}

fn place(name: &str) -> ExtraPlacement {
    match name {
        "diagnostics" | "input_transformations" => ExtraPlacement::Start,
        "container" | "stop_details" => ExtraPlacement::Delta,
        _ => ExtraPlacement::Beside,
    }
}

fn push_extras(out: &mut String, response: &MessagesResponse, wanted: &ExtraPlacement) {
    for (name, raw) in response.extras.iter().filter(|(name, _)| place(name) == *wanted) {
        member(out, name, raw);
    }
}

fn message_start(response: &MessagesResponse) -> EventFrame {
    let mut out = String::with_capacity(512);
    out.push_str(r#"{"type":"message_start","message":"#);
    opening(&mut out, response);
    out.push_str(r#"],"stop_reason":null,"stop_sequence":null"#);
    push_extras(&mut out, response, &ExtraPlacement::Start);
    member(&mut out, "usage", &first_usage(&response.usage));
    out.push_str("}}");
    frame("message_start", &out, 0)
}

fn message_delta(response: &MessagesResponse) -> EventFrame {
    let mut out = String::with_capacity(512);
    out.push_str(r#"{"type":"message_delta","delta":{"stop_reason":"#);
    match &response.stop_reason {
        Some(reason) => escape_into(&mut out, reason),
        None => out.push_str("null"),
    }
    optional(&mut out, r#","stop_sequence":"#, response.stop_sequence.as_deref());
    push_extras(&mut out, response, &ExtraPlacement::Delta);
    out.push('}');
    member(&mut out, "usage", &last_usage(&response.usage));
    push_extras(&mut out, response, &ExtraPlacement::Beside);
    out.push('}');
    frame("message_delta", &out, 0)
}

/// Usage known before the model answers: the prompt counts and one output token.
fn first_usage(usage: &str) -> String {
    select(usage, |name, value| match name {
        "iterations" | "output_tokens_details" => None,
        "server_tool_use" if value != "null" => None,
        "output_tokens" => Some(if value.trim() == "0" { "0" } else { "1" }),
        _ => Some(value),
    })
}

/// Final cumulative counts, without members already sent at the start.
fn last_usage(usage: &str) -> String {
    select(usage, |name, value| match name {
        "cache_creation" | "service_tier" | "inference_geo" | "speed" => None,
        _ => Some(value),
    })
}

/// Filters and replaces the members of a JSON object; other JSON is returned unchanged.
fn select<'a>(json: &'a str, keep: impl Fn(&str, &'a str) -> Option<&'a str>) -> String {
    let Ok(members) = object_fields(json) else { return json.to_owned() };
    let mut out = String::from("{");
    for (name, value) in &members {
        if let Some(value) = keep(name, value) {
            if out.len() > 1 {
                out.push(',');
            }
            escape_into(&mut out, name);
            out.push(':');
            out.push_str(value);
        }
    }
    out.push('}');
    out
}

/// Events of one block. A block without deltas, or malformed for its type, is sent whole in its start event.
fn block_frames(frames: &mut Vec<EventFrame>, index: usize, raw: &str) {
    let grown = object_fields(raw).ok().and_then(|members| DeltaBlock::of(&members));
    match grown {
        Some(growing) => {
            let start = select(raw, |name, value| growing.at_start(name, value));
            frames.push(block_start(index, &start, 0));
            growing.deltas(index, frames);
        }
        None => frames.push(block_start(index, raw, raw.len())),
    }
    frames.push(frame(
        "content_block_stop",
        &format!(r#"{{"type":"content_block_stop","index":{index}}}"#),
        0,
    ));
}

fn block_start(index: usize, block: &str, spoken: usize) -> EventFrame {
    let json = format!(r#"{{"type":"content_block_start","index":{index},"content_block":{block}}}"#);
    frame("content_block_start", &json, spoken)
}

/// A block that is sent in deltas.
enum DeltaBlock<'a> {
    Text { text: Cow<'a, str>, citations: Vec<&'a str> },
    Thinking { thinking: Cow<'a, str>, signature: &'a str },
    Call { input: &'a str },
    Compaction { content: &'a str, encrypted: &'a str },
}

impl<'a> DeltaBlock<'a> {
    fn of(members: &[JsonField<'a>]) -> Option<DeltaBlock<'a>> {
        let find = |name: &str| pal_model::member(members, name);
        match BlockType::from_name(&find("type").and_then(unescape)?) {
            BlockType::Text => Some(DeltaBlock::Text {
                text: find("text").and_then(unescape)?,
                citations: find("citations").and_then(|raw| array_items(raw).ok()).unwrap_or_default(),
            }),
            BlockType::Thinking => Some(DeltaBlock::Thinking {
                thinking: find("thinking").and_then(unescape)?,
                signature: find("signature").unwrap_or(r#""""#),
            }),
            BlockType::ToolUse | BlockType::ServerToolUse | BlockType::McpToolUse => {
                find("input").filter(|input| input.starts_with('{')).map(|input| DeltaBlock::Call { input })
            }
            // Only the threshold form has deltas; the on-demand form is signed and sent whole.
            BlockType::Compaction if find("signature").is_none_or(|signature| signature == "null") => {
                Some(DeltaBlock::Compaction {
                    content: find("content").unwrap_or("null"),
                    encrypted: find("encrypted_content").unwrap_or("null"),
                })
            }
            _ => None,
        }
    }

    /// Value of a member in the start event.
    fn at_start<'b>(&self, name: &str, value: &'b str) -> Option<&'b str> {
        match (self, name) {
            (DeltaBlock::Text { .. }, "text") => Some(r#""""#),
            (DeltaBlock::Text { citations, .. }, "citations") if !citations.is_empty() => Some("[]"),
            (DeltaBlock::Thinking { .. }, "thinking" | "signature") => Some(r#""""#),
            (DeltaBlock::Call { .. }, "input") => Some("{}"),
            (DeltaBlock::Compaction { .. }, "content" | "encrypted_content") => Some("null"),
            _ => Some(value),
        }
    }

    fn deltas(&self, index: usize, frames: &mut Vec<EventFrame>) {
        match self {
            DeltaBlock::Text { text, citations } => {
                for piece in pieces(text) {
                    frames.push(string_delta(index, "text_delta", "text", piece));
                }
                for citation in citations {
                    frames.push(delta(index, "citations_delta", &format!(r#""citation":{citation}"#), 0));
                }
            }
            DeltaBlock::Thinking { thinking, signature } => {
                for piece in pieces(thinking) {
                    frames.push(string_delta(index, "thinking_delta", "thinking", piece));
                }
                frames.push(delta(index, "signature_delta", &format!(r#""signature":{signature}"#), 0));
            }
            DeltaBlock::Call { input } => {
                // The provider also sends a first, empty delta; clients must accept it.
                frames.push(string_delta(index, "input_json_delta", "partial_json", ""));
                for piece in pieces(if *input == "{}" { "" } else { input }) {
                    frames.push(string_delta(index, "input_json_delta", "partial_json", piece));
                }
            }
            DeltaBlock::Compaction { content, encrypted } => {
                let members = format!(r#""content":{content},"encrypted_content":{encrypted}"#);
                frames.push(delta(index, "compaction_delta", &members, content.len()));
            }
        }
    }
}

fn string_delta(index: usize, kind: &str, name: &str, piece: &str) -> EventFrame {
    let mut members = String::with_capacity(piece.len() + 24);
    escape_into(&mut members, name);
    members.push(':');
    escape_into(&mut members, piece);
    delta(index, kind, &members, piece.len())
}

fn delta(index: usize, kind: &str, members: &str, spoken: usize) -> EventFrame {
    let json =
        format!(r#"{{"type":"content_block_delta","index":{index},"delta":{{"type":"{kind}",{members}}}}}"#);
    frame("content_block_delta", &json, spoken)
}

/// Builds an event. Line ends between raw JSON tokens would end the data line and are replaced.
fn frame(event: &str, json: &str, spoken: usize) -> EventFrame {
    let json = if memchr::memchr2(b'\n', b'\r', json.as_bytes()).is_some() {
        Cow::Owned(json.replace(['\n', '\r'], " "))
    } else {
        Cow::Borrowed(json)
    };
    EventFrame { bytes: Bytes::from(format!("event: {event}\ndata: {json}\n\n")), spoken }
}

/// Size of the pieces of a short text, in bytes.
const PIECE_BYTES: usize = 24;
/// Maximum number of pieces of a long text.
const PIECES_MAX: usize = 512;

/// Splits a text into pieces, after a word if one ends nearby and never inside a character.
pub(crate) fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let size = PIECE_BYTES.max(text.len() / PIECES_MAX);
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = piece_end(rest, size);
        let (piece, after) = rest.split_at(end);
        rest = after;
        Some(piece)
    })
}

/// End of the first piece of a non-empty text.
fn piece_end(text: &str, size: usize) -> usize {
    if text.len() <= size {
        return text.len();
    }
    let near = &text.as_bytes()[size..text.len().min(size * 2)];
    match near.iter().position(|byte| byte.is_ascii_whitespace()) {
        Some(space) => size + space + 1,
        None => text.ceil_char_boundary(size),
    }
}

#[cfg(test)]
mod tests;
