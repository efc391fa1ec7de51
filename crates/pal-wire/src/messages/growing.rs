//! One block of a streamed answer, from its start to its end.
//!
//! The block that comes out is the text of the one that started, with the deltas put into it: every other byte stays
//! where it was. Words and thinking are not unescaped and escaped again, so they are the provider's own bytes, and
//! characters that were cut in halves by two deltas come together again.

use std::borrow::Cow;

use pal_model::{Block, BlockType, Field, Text, escape_into, fields, member, member_string, unescape};
use serde::Deserialize;
use serde_json::value::RawValue;
use smol_str::SmolStr;

use super::plain::Grows;
use super::summary::on_one_line;
use crate::reader::malformed;
use crate::{Delta, Event, Failure};

/// Where a block keeps the text of an input that is no JSON object.
const UNPARSED: &str = "unparsed_input";

/// The text that a call was to be made with, where it is no JSON object: the answer was cut by its token limit, or
/// the model wrote nonsense. Such a block has `"input":{}`, so that it can be sent back, and this text beside it, which
/// the log keeps and no provider is sent. A call with it must not be run, only answered with an error.
pub fn unparsed_input(block: &Block) -> Option<Cow<'_, str>> {
    block.string(UNPARSED)
}

/// A block that is not whole yet.
#[derive(Debug)]
pub(crate) struct Growing {
    start: String,
    kind: BlockType,
    /// What the words grew by, escaped.
    text: String,
    /// What the thinking grew by, escaped.
    thinking: String,
    /// What the input grew by, escaped, behind a quotation mark.
    input: String,
    /// Citations, with a comma before each.
    citations: String,
    /// Whole values of other fields, the last one of each.
    values: Vec<(&'static str, String)>,
}

/// A value of JSON, in parts that only need to be put together once.
type Value<'a> = [&'a str; 4];

/// What may stand in a delta.
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

/// A value that is there, null included: a compaction that failed has the content null.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl Growing {
    /// A block that starts with this object.
    pub(crate) fn new(start: &str) -> Result<Growing, Box<Failure>> {
        let known = fields(start).map_err(|_| malformed("a block is not an object"))?;
        let kind =
            member_string(&known, "type").map_or(BlockType::Unknown, |name| BlockType::from_name(&name));
        Ok(Growing {
            start: start.to_owned(),
            kind,
            text: String::new(),
            thinking: String::new(),
            input: String::new(),
            citations: String::new(),
            values: Vec::new(),
        })
    }

    /// The event that announces the block.
    pub(crate) fn opened(&self, index: usize) -> Event {
        let known = fields(&self.start).unwrap_or_default();
        let tool =
            if CALLS.contains(&self.kind) { member_string(&known, "name").map(SmolStr::new) } else { None };
        Event::Opened { index, kind: self.kind, tool }
    }

    /// Whether this is how the block started, and nothing came since.
    pub(crate) fn is_just(&self, start: &str) -> bool {
        let grew =
            [&self.text, &self.thinking, &self.input, &self.citations].iter().any(|grown| !grown.is_empty());
        !grew && self.values.is_empty() && self.start == start
    }

    /// Takes a delta; returns what of it is to be shown. Deltas of types that nobody knows are passed over.
    pub(crate) fn grow(&mut self, delta: &RawDelta<'_>) -> Result<Option<Delta>, Box<Failure>> {
        let kind = delta.kind.and_then(|kind| unescape(kind.get())).unwrap_or_default();
        Ok(match kind.as_ref() {
            "text_delta" => self.grow_raw(Grows::Text, delta.text)?,
            "thinking_delta" => self.grow_raw(Grows::Thinking, delta.thinking)?,
            "input_json_delta" => self.grow_raw(Grows::Input, delta.partial_json)?,
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

    /// The whole block.
    pub(crate) fn finish(mut self) -> Block {
        if !self.input.is_empty() {
            self.input.push('"');
        }
        let known = fields(&self.start).unwrap_or_default();
        let input = unescape(&self.input).unwrap_or_default();
        let input = input.trim_matches(JSON_SPACE);
        let mut unparsed = String::new();
        let mut values: Vec<(&str, Value<'_>)> = Vec::new();
        for (name, grown) in [("text", &self.text), ("thinking", &self.thinking)] {
            if !grown.is_empty() {
                let before = inside(member(&known, name), '"', '"');
                values.push((name, ["\"", before, grown, "\""]));
            }
        }
        if !self.citations.is_empty() {
            let before = inside(member(&known, "citations"), '[', ']').trim_matches(JSON_SPACE);
            // A comma stands before each one that came.
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
        Block::parse(Text::from(on_one_line(with_values(&self.start, &known, &values))))
    }

    /// Takes the inside of a string literal, still escaped, and its characters; returns what is to be shown. Fails
    /// where a block whose type we know cannot grow in such a way.
    pub(crate) fn append(
        &mut self,
        grows: Grows,
        inside: &str,
        shown: Cow<'_, str>,
    ) -> Result<Option<Delta>, Box<Failure>> {
        let (kinds, grown): (&[BlockType], &mut String) = match grows {
            Grows::Text => (&[BlockType::Text], &mut self.text),
            Grows::Thinking => (&[BlockType::Thinking], &mut self.thinking),
            Grows::Input => (&CALLS, &mut self.input),
        };
        if !kinds.contains(&self.kind) && self.kind != BlockType::Unknown {
            let kind = self.kind.name().unwrap_or_default();
            return Err(malformed(format!("a block of type {kind} cannot grow by a delta of this type")));
        }
        if grows == Grows::Input && grown.is_empty() {
            grown.push('"');
        }
        grown.push_str(inside);
        let shown = Some(shown.into_owned()).filter(|shown| !shown.is_empty());
        Ok(shown.map(|shown| match grows {
            Grows::Text => Delta::Text(shown),
            Grows::Thinking => Delta::Thinking(shown),
            Grows::Input => Delta::Input(shown),
        }))
    }

    fn grow_raw(&mut self, grows: Grows, piece: Option<&RawValue>) -> Result<Option<Delta>, Box<Failure>> {
        let Some(piece) = piece else { return Ok(None) };
        let inside = piece.get().strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        let (Some(inside), Some(shown)) = (inside, unescape(piece.get())) else {
            return Err(malformed("a delta is not a string"));
        };
        self.append(grows, inside, shown)
    }

    /// Takes a value that comes whole. The last one counts.
    fn set(&mut self, name: &'static str, value: Option<&RawValue>) {
        let Some(value) = value else { return };
        self.values.retain(|(known, _)| *known != name);
        self.values.push((name, value.get().to_owned()));
    }
}

/// The types of blocks that have an input.
const CALLS: [BlockType; 3] = [BlockType::ToolUse, BlockType::ServerToolUse, BlockType::McpToolUse];

/// White space as JSON has it.
const JSON_SPACE: [char; 4] = [' ', '\t', '\n', '\r'];

/// What stands between the first and the last character of a value, if they are these.
fn inside(value: Option<&str>, first: char, last: char) -> &str {
    value.and_then(|value| value.strip_prefix(first)?.strip_suffix(last)).unwrap_or_default()
}

fn is_object(json: &str) -> bool {
    json.starts_with('{') && serde_json::from_str::<&RawValue>(json).is_ok()
}

/// The object `start`, whose fields are `known`, with other values in the place of some, and behind its own fields
/// those that it lacks.
fn with_values(start: &str, known: &[Field<'_>], values: &[(&str, Value<'_>)]) -> String {
    let mut places: Vec<(usize, usize, Value<'_>)> = Vec::new();
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
