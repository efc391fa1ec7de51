//! Conversion of output items to log blocks.

use std::borrow::Cow;

use pal_model::{
    BlockType, ContentBlock, JsonField, SharedText, array_items, escape_into, member, object_fields, unescape,
};
use smol_str::SmolStr;

use crate::chunk_writer::literal_inner;
use crate::messages::without_line_breaks;
use crate::response_reader::malformed;
use crate::tool_arguments::write_input;
use crate::{BlockDelta, ProviderFailure};

/// An output item.
pub(crate) struct ResponsesItem<'a> {
    raw: &'a str,
    known: Vec<JsonField<'a>>,
    name: Cow<'a, str>,
}

impl<'a> ResponsesItem<'a> {
    /// Parses an item.
    pub(crate) fn read(raw: &'a str) -> Result<ResponsesItem<'a>, Box<ProviderFailure>> {
        let known = object_fields(raw).map_err(|_| malformed("an item is not an object"))?;
        let mut item = ResponsesItem { raw, known, name: Cow::Borrowed("") };
        item.name = item.string("type").ok_or_else(|| malformed("an item has no type"))?;
        Ok(item)
    }

    /// Returns the id used in other events: the item's id, or its call id if the server sends no other.
    pub(crate) fn id(&self) -> Option<Cow<'a, str>> {
        let given = |name| self.string(name).filter(|id| !id.is_empty());
        given("id").or_else(|| self.tool().and_then(|_| given("call_id")))
    }

    /// Returns the type of the resulting block.
    pub(crate) fn kind(&self) -> BlockType {
        match self.name.as_ref() {
            "message" => BlockType::Text,
            "function_call" => BlockType::ToolUse,
            name => BlockType::from_name(name),
        }
    }

    /// Returns the name of the called tool.
    pub(crate) fn tool(&self) -> Option<SmolStr> {
        matches!(self.name.as_ref(), "function_call" | "custom_tool_call")
            .then(|| SmolStr::new(self.string("name").unwrap_or_default()))
    }

    /// Returns the id of the tool call.
    pub(crate) fn call(&self) -> Option<SmolStr> {
        self.tool()?;
        self.string("call_id").map(SmolStr::new)
    }

    /// Returns true if the item contains a refusal.
    pub(crate) fn is_refusal(&self) -> bool {
        self.name == "message" && self.parts("content").iter().any(|part| text_of(part, "refusal").is_some())
    }

    /// Returns the visible content as one delta.
    pub(crate) fn visible_delta(&self) -> Option<BlockDelta> {
        let delta = match self.name.as_ref() {
            "message" => {
                BlockDelta::Text(self.text_literals().iter().filter_map(|word| unescape(word)).collect())
            }
            "function_call" => BlockDelta::Input(self.string("arguments")?.into_owned()),
            "custom_tool_call" => BlockDelta::Input(self.string("input")?.into_owned()),
            "reasoning" => BlockDelta::Thinking(self.thoughts()),
            _ => return None,
        };
        let (BlockDelta::Text(words) | BlockDelta::Input(words) | BlockDelta::Thinking(words)) = &delta;
        (!words.is_empty()).then_some(delta)
    }

    /// Returns the block: the content in the log's own form, and the raw item.
    pub(crate) fn block(&self) -> ContentBlock {
        let mut json = String::with_capacity(self.raw.len() * 2 + 64);
        match self.name.as_ref() {
            "message" => {
                json.push_str(r#"{"type":"text","text":""#);
                json.extend(self.text_literals().into_iter().map(literal_inner));
                json.push('"');
            }
            "function_call" => {
                json.push_str(r#"{"type":"tool_use","id":"#);
                escape_into(&mut json, &self.string("call_id").or(self.string("id")).unwrap_or_default());
                json.push_str(r#","name":"#);
                escape_into(&mut json, &self.string("name").unwrap_or_default());
                write_input(&mut json, &self.string("arguments").unwrap_or_default());
            }
            name => {
                json.push_str(r#"{"type":"#);
                escape_into(&mut json, name);
            }
        }
        json.push_str(r#","item":"#);
        json.push_str(&without_line_breaks(self.raw));
        json.push('}');
        ContentBlock::parse(SharedText::from(json))
    }

    /// Returns the text or refusal of a message's parts, as string literals.
    fn text_literals(&self) -> Vec<&'a str> {
        let words = |part: &Vec<JsonField<'a>>| text_of(part, "text").or_else(|| text_of(part, "refusal"));
        self.parts("content").iter().filter_map(words).collect()
    }

    /// Returns the visible reasoning: the summary, or the reasoning itself.
    fn thoughts(&self) -> String {
        let of = |name| -> Vec<String> {
            let parts = self.parts(name);
            parts
                .iter()
                .filter_map(|part| text_of(part, "text").and_then(unescape))
                .map(String::from)
                .collect()
        };
        let summary = of("summary");
        if summary.is_empty() { of("content").concat() } else { summary.join("\n\n") }
    }

    fn parts(&self, name: &str) -> Vec<Vec<JsonField<'a>>> {
        let items = self.get(name).and_then(|list| array_items(list).ok()).unwrap_or_default();
        items.into_iter().filter_map(|item| object_fields(item).ok()).collect()
    }

    fn get(&self, name: &str) -> Option<&'a str> {
        member(&self.known, name)
    }

    fn string(&self, name: &str) -> Option<Cow<'a, str>> {
        self.get(name).and_then(unescape)
    }
}

/// Returns a string field as a literal.
fn text_of<'a>(part: &[JsonField<'a>], name: &str) -> Option<&'a str> {
    member(part, name).filter(|value| value.starts_with('"'))
}
