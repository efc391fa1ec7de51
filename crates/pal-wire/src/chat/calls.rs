//! The calls of a chat answer, put together from pieces.
//!
//! Servers agree on little: a piece names its call by index, by id, by both or by neither; a call may come whole in one
//! piece; an index may be used again for another id. A piece belongs to the newest call that it does not contradict.

use std::collections::BTreeMap;

use pal_model::{Block, BlockType, Text, escape_into, unescape};
use serde::Deserialize;
use serde_json::value::RawValue;
use smol_str::SmolStr;

use crate::arguments::write_input;
use crate::reader::malformed;
use crate::spell::unquoted;
use crate::{Delta, Event, Failure};

/// A piece of a call.
#[derive(Deserialize)]
pub(crate) struct Piece<'a> {
    index: Option<u64>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    function: Option<Function<'a>>,
}

#[derive(Deserialize)]
struct Function<'a> {
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

/// The calls so far.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    list: Vec<Call>,
    /// The newest call of an index.
    by_index: BTreeMap<u64, usize>,
    by_id: BTreeMap<String, usize>,
}

/// A call that is not whole.
#[derive(Debug)]
struct Call {
    /// Which block it is.
    block: usize,
    id: String,
    name: String,
    /// The arguments so far, escaped.
    arguments: String,
}

impl Calls {
    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Takes a piece; a call that begins with it becomes the block `next`. Returns whether one did.
    pub(crate) fn take(
        &mut self,
        piece: &Piece<'_>,
        next: usize,
        events: &mut Vec<Event>,
    ) -> Result<bool, Box<Failure>> {
        let id = string(piece.id).unwrap_or_default();
        let function = piece.function.as_ref();
        let name = string(function.and_then(|function| function.name)).unwrap_or_default();
        let known = self.find(piece.index, &id, &name);
        let at = known.unwrap_or(self.list.len());
        if known.is_none() {
            self.list.push(Call {
                block: next,
                id: id.clone(),
                name: name.clone(),
                arguments: String::new(),
            });
            let tool = Some(SmolStr::new(&name));
            events.push(Event::Opened { index: next, kind: BlockType::ToolUse, tool });
        }
        if let Some(index) = piece.index {
            self.by_index.insert(index, at);
        }
        if !id.is_empty() {
            self.by_id.insert(id.clone(), at);
        }
        if let Some(call) = self.list.get_mut(at) {
            if call.id.is_empty() {
                call.id = id;
            }
            if call.name.is_empty() {
                call.name = name;
            }
            if let Some(arguments) = function.and_then(|function| function.arguments) {
                call.grow(arguments.get(), events)?;
            }
        }
        Ok(known.is_none())
    }

    /// The call that a piece belongs to, if it is not the first of one.
    fn find(&self, index: Option<u64>, id: &str, name: &str) -> Option<usize> {
        if let Some(&at) = self.by_id.get(id) {
            return Some(at);
        }
        match index {
            Some(index) => {
                let at = *self.by_index.get(&index)?;
                let is_other = !id.is_empty() && self.list.get(at).is_some_and(|call| !call.id.is_empty());
                (!is_other).then_some(at)
            }
            None if id.is_empty() && name.is_empty() => self.list.len().checked_sub(1),
            None => None,
        }
    }

    /// The whole calls with their blocks' indices. A call without an id gets one that is made of the response's.
    pub(crate) fn finish(&mut self, response: &str) -> Vec<(usize, Block)> {
        self.by_index.clear();
        self.by_id.clear();
        let calls = std::mem::take(&mut self.list);
        calls.into_iter().enumerate().map(|(at, call)| (call.block, call.finish(response, at))).collect()
    }
}

impl Call {
    fn grow(&mut self, arguments: &str, events: &mut Vec<Event>) -> Result<(), Box<Failure>> {
        let words = match arguments.as_bytes().first() {
            Some(b'"') => {
                let words = unescape(arguments).ok_or_else(|| malformed("arguments cannot be read"))?;
                self.arguments.push_str(unquoted(arguments));
                words.into_owned()
            }
            // An object where a string belongs.
            Some(b'{') => {
                let mut quoted = String::new();
                escape_into(&mut quoted, arguments);
                self.arguments.push_str(unquoted(&quoted));
                arguments.to_owned()
            }
            Some(b'n') | None => return Ok(()),
            Some(_) => return Err(malformed("arguments are neither a string nor an object")),
        };
        if !words.is_empty() {
            events.push(Event::Grew { index: self.block, delta: Delta::Input(words) });
        }
        Ok(())
    }

    fn finish(self, response: &str, at: usize) -> Block {
        let mut json = String::with_capacity(self.arguments.len() + 96);
        json.push_str(r#"{"type":"tool_use","id":"#);
        match self.id.as_str() {
            "" => escape_into(&mut json, &format!("call_{response}_{at}")),
            id => escape_into(&mut json, id),
        }
        json.push_str(r#","name":"#);
        escape_into(&mut json, &self.name);
        let quoted = format!("\"{}\"", self.arguments);
        write_input(&mut json, &unescape(&quoted).unwrap_or_default());
        json.push('}');
        Block::parse(Text::from(json))
    }
}

fn string(raw: Option<&RawValue>) -> Option<String> {
    raw.and_then(|raw| unescape(raw.get())).map(String::from)
}
