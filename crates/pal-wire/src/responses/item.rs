//! One output item as a block of the log.

use std::borrow::Cow;

use pal_model::{Block, BlockType, Field, Text, array_items, escape_into, fields, member, unescape};
use smol_str::SmolStr;

use crate::arguments::write_input;
use crate::messages::on_one_line;
use crate::reader::malformed;
use crate::spell::unquoted;
use crate::{Delta, Failure};

/// An output item.
pub(crate) struct Item<'a> {
    raw: &'a str,
    known: Vec<Field<'a>>,
    name: Cow<'a, str>,
}

impl<'a> Item<'a> {
    /// Reads an item.
    pub(crate) fn read(raw: &'a str) -> Result<Item<'a>, Box<Failure>> {
        let known = fields(raw).map_err(|_| malformed("an item is not an object"))?;
        let mut item = Item { raw, known, name: Cow::Borrowed("") };
        item.name = item.string("type").ok_or_else(|| malformed("an item has no type"))?;
        Ok(item)
    }

    /// What it is called in other events: its id, or that of its call where a server gives it no other.
    pub(crate) fn id(&self) -> Option<Cow<'a, str>> {
        let given = |name| self.string(name).filter(|id| !id.is_empty());
        given("id").or_else(|| self.tool().and_then(|_| given("call_id")))
    }

    /// The type of the block that it becomes.
    pub(crate) fn kind(&self) -> BlockType {
        match self.name.as_ref() {
            "message" => BlockType::Text,
            "function_call" => BlockType::ToolUse,
            name => BlockType::from_name(name),
        }
    }

    /// The tool that it calls.
    pub(crate) fn tool(&self) -> Option<SmolStr> {
        matches!(self.name.as_ref(), "function_call" | "custom_tool_call")
            .then(|| SmolStr::new(self.string("name").unwrap_or_default()))
    }

    /// Whether the model refuses in it.
    pub(crate) fn is_refusal(&self) -> bool {
        self.name == "message" && self.parts("content").iter().any(|part| text_of(part, "refusal").is_some())
    }

    /// What it shows, all at once.
    pub(crate) fn shown(&self) -> Option<Delta> {
        let delta = match self.name.as_ref() {
            "message" => Delta::Text(self.words().iter().filter_map(|word| unescape(word)).collect()),
            "function_call" => Delta::Input(self.string("arguments")?.into_owned()),
            "custom_tool_call" => Delta::Input(self.string("input")?.into_owned()),
            "reasoning" => Delta::Thinking(self.thoughts()),
            _ => return None,
        };
        let (Delta::Text(words) | Delta::Input(words) | Delta::Thinking(words)) = &delta;
        (!words.is_empty()).then_some(delta)
    }

    /// The block: what the item says in the log's own form, and the item itself.
    pub(crate) fn block(&self) -> Block {
        let mut json = String::with_capacity(self.raw.len() * 2 + 64);
        match self.name.as_ref() {
            "message" => {
                json.push_str(r#"{"type":"text","text":""#);
                json.extend(self.words().into_iter().map(unquoted));
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
        json.push_str(&on_one_line(self.raw));
        json.push('}');
        Block::parse(Text::from(json))
    }

    /// The words of a message's parts, as string literals: what it says, or why it does not.
    fn words(&self) -> Vec<&'a str> {
        let words = |part: &Vec<Field<'a>>| text_of(part, "text").or_else(|| text_of(part, "refusal"));
        self.parts("content").iter().filter_map(words).collect()
    }

    /// What of the reasoning is shown: the summary, or the reasoning itself.
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

    fn parts(&self, name: &str) -> Vec<Vec<Field<'a>>> {
        let items = self.get(name).and_then(|list| array_items(list).ok()).unwrap_or_default();
        items.into_iter().filter_map(|item| fields(item).ok()).collect()
    }

    fn get(&self, name: &str) -> Option<&'a str> {
        member(&self.known, name)
    }

    fn string(&self, name: &str) -> Option<Cow<'a, str>> {
        self.get(name).and_then(unescape)
    }
}

/// A field that is a string, as a literal.
fn text_of<'a>(part: &[Field<'a>], name: &str) -> Option<&'a str> {
    member(part, name).filter(|value| value.starts_with('"'))
}
