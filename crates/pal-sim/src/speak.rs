//! How an answer of the Messages dialect is spoken: as one JSON object, or as the events of a stream.
//!
//! Owns the order and the shape of events and where a block is cut into deltas. It decides nothing about the answer:
//! blocks, usage and extras arrive finished and raw. Concatenating the deltas of a block gives the block again.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use pal_model::{BlockType, Field, Text, array_items, escape_into, fields, unescape};

use crate::Chunk;

/// A finished answer.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    /// Its id.
    pub id: String,
    /// The model that answers.
    pub model: String,
    /// The blocks, raw, in the form of the Messages dialect.
    pub blocks: Vec<Text>,
    /// Why it stops.
    pub stop_reason: Option<String>,
    /// The stop sequence that was met.
    pub stop_sequence: Option<String>,
    /// The final usage: a raw JSON object.
    pub usage: String,
    /// Further members, raw: `diagnostics`, `input_transformations`, `container`, `stop_details`,
    /// `context_management`.
    pub extras: Vec<(&'static str, String)>,
}

/// One event of a stream, complete.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    /// The event as it goes over the wire, blank line included.
    pub bytes: Bytes,
    /// How many bytes of content it speaks.
    pub spoken: usize,
}

/// The answer as one JSON object.
pub(crate) fn whole(response: &Response) -> String {
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

/// The answer as events, in order.
pub(crate) fn frames(response: &Response) -> Vec<Frame> {
    let mut frames = vec![message_start(response), frame("ping", r#"{"type":"ping"}"#, 0)];
    for (index, raw) in response.blocks.iter().enumerate() {
        block_frames(&mut frames, index, raw);
    }
    frames.push(message_delta(response));
    frames.push(frame("message_stop", r#"{"type":"message_stop"}"#, 0));
    frames
}

/// The moments at which events leave: the first at `start`, the last `speaking` later, and between them each when
/// its share of the content is spoken.
pub(crate) fn chunks(frames: Vec<Frame>, start: Duration, speaking: Duration) -> Vec<Chunk> {
    let total: usize = frames.iter().map(|frame| frame.spoken).sum();
    let mut spoken = 0;
    let mut chunks = Vec::with_capacity(frames.len());
    for frame in frames {
        spoken += frame.spoken;
        let share = if total == 0 { 0.0 } else { spoken as f64 / total as f64 };
        chunks.push(Chunk { at: start + speaking.mul_f64(share), bytes: frame.bytes });
    }
    chunks
}

/// `{"id":…,"content":[` — the list is left open.
fn opening(out: &mut String, response: &Response) {
    out.push_str(r#"{"id":"#);
    escape_into(out, &response.id);
    out.push_str(r#","type":"message","role":"assistant","model":"#);
    escape_into(out, &response.model);
    out.push_str(r#","content":["#);
}

fn stops(out: &mut String, response: &Response) {
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

/// In which event of a stream an extra member stands.
#[derive(PartialEq, Eq)]
enum Place {
    Start,
    Delta,
    Beside,
}

fn place(name: &str) -> Place {
    match name {
        "diagnostics" | "input_transformations" => Place::Start,
        "container" | "stop_details" => Place::Delta,
        _ => Place::Beside,
    }
}

fn placed(out: &mut String, response: &Response, wanted: &Place) {
    for (name, raw) in response.extras.iter().filter(|(name, _)| place(name) == *wanted) {
        member(out, name, raw);
    }
}

fn message_start(response: &Response) -> Frame {
    let mut out = String::with_capacity(512);
    out.push_str(r#"{"type":"message_start","message":"#);
    opening(&mut out, response);
    out.push_str(r#"],"stop_reason":null,"stop_sequence":null"#);
    placed(&mut out, response, &Place::Start);
    member(&mut out, "usage", &first_usage(&response.usage));
    out.push_str("}}");
    frame("message_start", &out, 0)
}

fn message_delta(response: &Response) -> Frame {
    let mut out = String::with_capacity(512);
    out.push_str(r#"{"type":"message_delta","delta":{"stop_reason":"#);
    match &response.stop_reason {
        Some(reason) => escape_into(&mut out, reason),
        None => out.push_str("null"),
    }
    optional(&mut out, r#","stop_sequence":"#, response.stop_sequence.as_deref());
    placed(&mut out, response, &Place::Delta);
    out.push('}');
    member(&mut out, "usage", &last_usage(&response.usage));
    placed(&mut out, response, &Place::Beside);
    out.push('}');
    frame("message_delta", &out, 0)
}

/// What is known of the usage before the model spoke: the prompt's side, and one token of output.
fn first_usage(usage: &str) -> String {
    select(usage, |name, value| match name {
        "iterations" | "output_tokens_details" => None,
        "server_tool_use" if value != "null" => None,
        "output_tokens" => Some(if value.trim() == "0" { "0" } else { "1" }),
        _ => Some(value),
    })
}

/// The cumulative counts at the end; what the message began with is not said again.
fn last_usage(usage: &str) -> String {
    select(usage, |name, value| match name {
        "cache_creation" | "service_tier" | "inference_geo" | "speed" => None,
        _ => Some(value),
    })
}

/// The object `json` with the members that `keep` keeps, with the values that it gives. What is no object stays.
fn select<'a>(json: &'a str, keep: impl Fn(&str, &'a str) -> Option<&'a str>) -> String {
    let Ok(members) = fields(json) else { return json.to_owned() };
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

/// The events of one block. A block that does not grow in a stream, or that has not the form of its type, stands
/// whole in its start.
fn block_frames(frames: &mut Vec<Frame>, index: usize, raw: &str) {
    let grown = fields(raw).ok().and_then(|members| Growing::of(&members));
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

fn block_start(index: usize, block: &str, spoken: usize) -> Frame {
    let json = format!(r#"{{"type":"content_block_start","index":{index},"content_block":{block}}}"#);
    frame("content_block_start", &json, spoken)
}

/// A block that arrives in deltas.
enum Growing<'a> {
    Text { text: Cow<'a, str>, citations: Vec<&'a str> },
    Thinking { thinking: Cow<'a, str>, signature: &'a str },
    Call { input: &'a str },
    Compaction { content: &'a str, encrypted: &'a str },
}

impl<'a> Growing<'a> {
    fn of(members: &[Field<'a>]) -> Option<Growing<'a>> {
        let find = |name: &str| pal_model::member(members, name);
        match BlockType::from_name(&find("type").and_then(unescape)?) {
            BlockType::Text => Some(Growing::Text {
                text: find("text").and_then(unescape)?,
                citations: find("citations").and_then(|raw| array_items(raw).ok()).unwrap_or_default(),
            }),
            BlockType::Thinking => Some(Growing::Thinking {
                thinking: find("thinking").and_then(unescape)?,
                signature: find("signature").unwrap_or(r#""""#),
            }),
            BlockType::ToolUse | BlockType::ServerToolUse | BlockType::McpToolUse => {
                find("input").filter(|input| input.starts_with('{')).map(|input| Growing::Call { input })
            }
            // Only the threshold form grows; the form that was asked for is signed and stands whole in its start.
            BlockType::Compaction if find("signature").is_none_or(|signature| signature == "null") => {
                Some(Growing::Compaction {
                    content: find("content").unwrap_or("null"),
                    encrypted: find("encrypted_content").unwrap_or("null"),
                })
            }
            _ => None,
        }
    }

    /// The value of a member in the start of the block.
    fn at_start<'b>(&self, name: &str, value: &'b str) -> Option<&'b str> {
        match (self, name) {
            (Growing::Text { .. }, "text") => Some(r#""""#),
            (Growing::Text { citations, .. }, "citations") if !citations.is_empty() => Some("[]"),
            (Growing::Thinking { .. }, "thinking" | "signature") => Some(r#""""#),
            (Growing::Call { .. }, "input") => Some("{}"),
            (Growing::Compaction { .. }, "content" | "encrypted_content") => Some("null"),
            _ => Some(value),
        }
    }

    fn deltas(&self, index: usize, frames: &mut Vec<Frame>) {
        match self {
            Growing::Text { text, citations } => {
                for piece in pieces(text) {
                    frames.push(string_delta(index, "text_delta", "text", piece));
                }
                for citation in citations {
                    frames.push(delta(index, "citations_delta", &format!(r#""citation":{citation}"#), 0));
                }
            }
            Growing::Thinking { thinking, signature } => {
                for piece in pieces(thinking) {
                    frames.push(string_delta(index, "thinking_delta", "thinking", piece));
                }
                frames.push(delta(index, "signature_delta", &format!(r#""signature":{signature}"#), 0));
            }
            Growing::Call { input } => {
                // A first delta without a character comes from the provider, too; clients must bear it.
                frames.push(string_delta(index, "input_json_delta", "partial_json", ""));
                for piece in pieces(if *input == "{}" { "" } else { input }) {
                    frames.push(string_delta(index, "input_json_delta", "partial_json", piece));
                }
            }
            Growing::Compaction { content, encrypted } => {
                let members = format!(r#""content":{content},"encrypted_content":{encrypted}"#);
                frames.push(delta(index, "compaction_delta", &members, content.len()));
            }
        }
    }
}

fn string_delta(index: usize, kind: &str, name: &str, piece: &str) -> Frame {
    let mut members = String::with_capacity(piece.len() + 24);
    escape_into(&mut members, name);
    members.push(':');
    escape_into(&mut members, piece);
    delta(index, kind, &members, piece.len())
}

fn delta(index: usize, kind: &str, members: &str, spoken: usize) -> Frame {
    let json =
        format!(r#"{{"type":"content_block_delta","index":{index},"delta":{{"type":"{kind}",{members}}}}}"#);
    frame("content_block_delta", &json, spoken)
}

/// An event. Raw JSON may have line ends between its tokens, which would end the line of data.
fn frame(event: &str, json: &str, spoken: usize) -> Frame {
    let json = if memchr::memchr2(b'\n', b'\r', json.as_bytes()).is_some() {
        Cow::Owned(json.replace(['\n', '\r'], " "))
    } else {
        Cow::Borrowed(json)
    };
    Frame { bytes: Bytes::from(format!("event: {event}\ndata: {json}\n\n")), spoken }
}

/// Bytes of a short text's pieces.
const PIECE_BYTES: usize = 24;
/// Pieces into which a long text is cut at most.
const PIECES_MOST: usize = 512;

/// A text in pieces that end behind a word where a word ends near by, and never inside a character.
pub(crate) fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let size = PIECE_BYTES.max(text.len() / PIECES_MOST);
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

/// Where the first piece of a text that is not empty ends.
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
