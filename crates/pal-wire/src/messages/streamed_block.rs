//! Assembly of one block of a streamed response.
//!
//! The result is the text of `content_block_start` with the deltas inserted; all other bytes stay unchanged. Text and
//! thinking are not unescaped, so they keep the provider's bytes, and characters split between deltas are joined.

use std::borrow::Cow;

use pal_model::{
    BlockType, ContentBlock, JsonField, SharedText, escape_into, member, member_string, object_fields,
    unescape,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use smol_str::SmolStr;

use super::message_metadata::without_line_breaks;
use super::string_delta::DeltaTarget;
use crate::response_reader::malformed;
use crate::{BlockDelta, ProviderFailure, ResponseEvent};

/// Field for the text of an input that is not a JSON object.
const UNPARSED: &str = "unparsed_input";

/// Returns the input text of a tool call that is not a JSON object, because the response reached its token limit or the
/// model wrote invalid JSON. Such a block has `"input":{}`, so that it can be sent back; this text stays in the log and is
/// never sent. Do not run such a call: answer it with an error.
pub fn unparsed_input(block: &ContentBlock) -> Option<Cow<'_, str>> {
    block.string(UNPARSED)
}

/// An incomplete block.
#[derive(Debug)]
pub(crate) struct StreamedBlock {
    start: String,
    kind: BlockType,
    /// Text deltas, escaped.
    text: String,
    /// Thinking deltas, escaped.
    thinking: String,
    /// Input deltas, escaped, after a quotation mark.
    input: String,
    /// Citations, each preceded by a comma.
    citations: String,
    /// Last values of other fields.
    values: Vec<(&'static str, String)>,
}

/// A JSON value in parts, so that it is joined only once.
type SplitValue<'a> = [&'a str; 4];

/// Fields of a delta.
#[derive(Deserialize)]
pub(crate) struct RawDelta<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    thinking: Option<&'a RawValue>,
    #[serde(borrow)]
    partial_json: Option<&'a RawValue>,
    #[serde(borrow)]
    signature: Option<&'a RawValue>,
    #[serde(borrow)]
    citation: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    content: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    encrypted_content: Option<&'a RawValue>,
}

/// Deserializes a present value, including null: the content of a failed compaction is null.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl StreamedBlock {
    /// Creates a block from its start object.
    pub(crate) fn new(start: &str) -> Result<StreamedBlock, Box<ProviderFailure>> {
        let known = object_fields(start).map_err(|_| malformed("a block is not an object"))?;
        let kind =
            member_string(&known, "type").map_or(BlockType::Unknown, |name| BlockType::from_name(&name));
        Ok(StreamedBlock {
            start: start.to_owned(),
            kind,
            text: String::new(),
            thinking: String::new(),
            input: String::new(),
            citations: String::new(),
            values: Vec::new(),
        })
    }

    /// Returns the start event of the block.
    pub(crate) fn opened(&self, index: usize) -> ResponseEvent {
        let known = object_fields(&self.start).unwrap_or_default();
        let is_call = CALLS.contains(&self.kind);
        let text = |name: &str| member_string(&known, name).filter(|_| is_call).map(SmolStr::new);
        ResponseEvent::BlockStart { index, kind: self.kind, tool: text("name"), call: text("id") }
    }

    /// Returns true if the block started with `start` and has not changed since.
    pub(crate) fn is_just(&self, start: &str) -> bool {
        let grew =
            [&self.text, &self.thinking, &self.input, &self.citations].iter().any(|grown| !grown.is_empty());
        !grew && self.values.is_empty() && self.start == start
    }

    /// Adds a delta and returns its visible part. Deltas of unknown types are ignored.
    pub(crate) fn grow(&mut self, delta: &RawDelta<'_>) -> Result<Option<BlockDelta>, Box<ProviderFailure>> {
        let kind = delta.kind.and_then(|kind| unescape(kind.get())).unwrap_or_default();
        Ok(match kind.as_ref() {
            "text_delta" => self.grow_raw(DeltaTarget::Text, delta.text)?,
            "thinking_delta" => self.grow_raw(DeltaTarget::Thinking, delta.thinking)?,
            "input_json_delta" => self.grow_raw(DeltaTarget::Input, delta.partial_json)?,
            "signature_delta" => {
                self.set("signature", delta.signature);
                None
            }
            "citations_delta" => {
                if let Some(citation) = delta.citation {
                    self.citations.push(',');
                    self.citations.push_str(citation.get());
                }
                None
            }
            "compaction_delta" => {
                self.set("content", delta.content);
                self.set("encrypted_content", delta.encrypted_content);
                None
            }
            _ => None,
        })
    }

    /// Returns the complete block.
    pub(crate) fn finish(mut self) -> ContentBlock {
        if !self.input.is_empty() {
            self.input.push('"');
        }
        let known = object_fields(&self.start).unwrap_or_default();
        let input = unescape(&self.input).unwrap_or_default();
        let input = input.trim_matches(JSON_SPACE);
        let mut unparsed = String::new();
        let mut values: Vec<(&str, SplitValue<'_>)> = Vec::new();
        for (name, grown) in [("text", &self.text), ("thinking", &self.thinking)] {
            if !grown.is_empty() {
                let before = inside(member(&known, name), '"', '"');
                values.push((name, ["\"", before, grown, "\""]));
            }
        }
        if !self.citations.is_empty() {
            let before = inside(member(&known, "citations"), '[', ']').trim_matches(JSON_SPACE);
            // Each citation is preceded by a comma.
            let came = if before.is_empty() { &self.citations[1..] } else { &self.citations };
            values.push(("citations", ["[", before, came, "]"]));
        }
        if !input.is_empty() && is_object(input) {
            values.push(("input", [input, "", "", ""]));
        } else if !input.is_empty() {
            escape_into(&mut unparsed, input);
            values.push(("input", ["{}", "", "", ""]));
            values.push((UNPARSED, [&unparsed, "", "", ""]));
        } else if CALLS.contains(&self.kind) && member(&known, "input").is_none_or(|input| input == "null") {
            values.push(("input", ["{}", "", "", ""]));
        }
        values.extend(self.values.iter().map(|(name, value)| (*name, [value.as_str(), "", "", ""])));
        ContentBlock::parse(SharedText::from(without_line_breaks(with_values(&self.start, &known, &values))))
    }

    /// Appends the inside of a string literal, escaped in `inside` and unescaped in `shown`; returns the visible delta.
    /// Fails if a block of a known type does not accept such a delta.
    pub(crate) fn append(
        &mut self,
        grows: DeltaTarget,
        inside: &str,
        shown: Cow<'_, str>,
    ) -> Result<Option<BlockDelta>, Box<ProviderFailure>> {
        let (kinds, grown): (&[BlockType], &mut String) = match grows {
            DeltaTarget::Text => (&[BlockType::Text], &mut self.text),
            DeltaTarget::Thinking => (&[BlockType::Thinking], &mut self.thinking),
            DeltaTarget::Input => (&CALLS, &mut self.input),
        };
        if !kinds.contains(&self.kind) && self.kind != BlockType::Unknown {
            let kind = self.kind.name().unwrap_or_default();
            return Err(malformed(format!("a block of type {kind} cannot grow by a delta of this type")));
        }
        if grows == DeltaTarget::Input && grown.is_empty() {
            grown.push('"');
        }
        grown.push_str(inside);
        let shown = Some(shown.into_owned()).filter(|shown| !shown.is_empty());
        Ok(shown.map(|shown| match grows {
            DeltaTarget::Text => BlockDelta::Text(shown),
            DeltaTarget::Thinking => BlockDelta::Thinking(shown),
            DeltaTarget::Input => BlockDelta::Input(shown),
        }))
    }

    fn grow_raw(
        &mut self,
        grows: DeltaTarget,
        piece: Option<&RawValue>,
    ) -> Result<Option<BlockDelta>, Box<ProviderFailure>> {
        let Some(piece) = piece else { return Ok(None) };
        let inside = piece.get().strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        let (Some(inside), Some(shown)) = (inside, unescape(piece.get())) else {
            return Err(malformed("a delta is not a string"));
        };
        self.append(grows, inside, shown)
    }

    /// Sets the value of a field; the last one counts.
    fn set(&mut self, name: &'static str, value: Option<&RawValue>) {
        let Some(value) = value else { return };
        self.values.retain(|(known, _)| *known != name);
        self.values.push((name, value.get().to_owned()));
    }
}

/// Block types with an input.
const CALLS: [BlockType; 3] = [BlockType::ToolUse, BlockType::ServerToolUse, BlockType::McpToolUse];

/// JSON white space.
const JSON_SPACE: [char; 4] = [' ', '\t', '\n', '\r'];

/// Returns the inside of a value that begins with `first` and ends with `last`.
fn inside(value: Option<&str>, first: char, last: char) -> &str {
    value.and_then(|value| value.strip_prefix(first)?.strip_suffix(last)).unwrap_or_default()
}

fn is_object(json: &str) -> bool {
    json.starts_with('{') && serde_json::from_str::<&RawValue>(json).is_ok()
}

/// Replaces field values of the object `start`, whose fields are `known`, and appends missing fields.
fn with_values(start: &str, known: &[JsonField<'_>], values: &[(&str, SplitValue<'_>)]) -> String {
    let mut places: Vec<(usize, usize, SplitValue<'_>)> = Vec::new();
    let mut lacking = String::new();
    for (name, value) in values {
        match member(known, name) {
            Some(old) => {
                let at = old.as_ptr() as usize - start.as_ptr() as usize;
                places.push((at, at + old.len(), *value));
            }
            None => {
                lacking.push(',');
                escape_into(&mut lacking, name);
                lacking.push(':');
                lacking.extend(*value);
            }
        }
    }
    places.sort_unstable_by_key(|(at, ..)| *at);
    let grown: usize = values.iter().flat_map(|(_, value)| value).map(|part| part.len()).sum();
    let mut whole = String::with_capacity(start.len() + grown + lacking.len());
    let mut from = 0;
    for (at, end, value) in places {
        whole.push_str(&start[from..at]);
        whole.extend(value);
        from = end;
    }
    let end = start.rfind('}').unwrap_or(start.len());
    whole.push_str(&start[from..end]);
    whole.push_str(if known.is_empty() { lacking.trim_start_matches(',') } else { &lacking });
    whole.push_str(&start[end..]);
    whole
}
