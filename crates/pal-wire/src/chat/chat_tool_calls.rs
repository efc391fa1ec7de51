//! Tool calls of a chat response, assembled from deltas.
//!
//! Servers differ: a delta names its call by index, id, both or neither; a call may arrive in one delta; an index may be
//! reused for another id. A delta belongs to the newest call that it does not contradict.

use std::collections::BTreeMap;

use pal_model::{BlockType, ContentBlock, SharedText, escape_into, unescape};
use serde::Deserialize;
use serde_json::value::RawValue;
use smol_str::SmolStr;

use crate::chunk_writer::literal_inner;
use crate::response_reader::malformed;
use crate::tool_arguments::write_input;
use crate::{BlockDelta, ProviderFailure, ResponseEvent};

/// Delta of a tool call.
#[derive(Deserialize)]
pub(crate) struct ToolCallDelta<'a> {
    index: Option<u64>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    function: Option<FunctionDelta<'a>>,
}

#[derive(Deserialize)]
struct FunctionDelta<'a> {
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

/// Tool calls received so far.
#[derive(Debug, Default)]
pub(crate) struct ChatToolCalls {
    list: Vec<ChatToolCall>,
    /// Newest call of each index.
    by_index: BTreeMap<u64, usize>,
    by_id: BTreeMap<String, usize>,
}

/// An incomplete tool call.
#[derive(Debug)]
struct ChatToolCall {
    /// Index of its block.
    block: usize,
    id: String,
    name: String,
    /// Arguments so far, escaped.
    arguments: String,
}

impl ChatToolCalls {
    /// Returns true if there are no calls.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Adds a delta; a new call becomes the block `next`. Returns true if a call started.
    pub(crate) fn take(
        &mut self,
        piece: &ToolCallDelta<'_>,
        next: usize,
        events: &mut Vec<ResponseEvent>,
    ) -> Result<bool, Box<ProviderFailure>> {
        let id = string(piece.id).unwrap_or_default();
        let function = piece.function.as_ref();
        let name = string(function.and_then(|function| function.name)).unwrap_or_default();
        let known = self.find(piece.index, &id, &name);
        let at = known.unwrap_or(self.list.len());
        if known.is_none() {
            self.list.push(ChatToolCall {
                block: next,
                id: id.clone(),
                name: name.clone(),
                arguments: String::new(),
            });
            let (tool, call) = (Some(SmolStr::new(&name)), Some(&id).filter(|id| !id.is_empty()));
            let (kind, call) = (BlockType::ToolUse, call.map(SmolStr::new));
            events.push(ResponseEvent::BlockStart { index: next, kind, tool, call });
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

    /// Returns the call that a delta belongs to; none if it starts a new one.
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

    /// Returns the complete calls with their block indexes. A call without an id gets one derived from the response id.
    pub(crate) fn finish(&mut self, response: &str) -> Vec<(usize, ContentBlock)> {
        self.by_index.clear();
        self.by_id.clear();
        let calls = std::mem::take(&mut self.list);
        calls.into_iter().enumerate().map(|(at, call)| (call.block, call.finish(response, at))).collect()
    }
}

impl ChatToolCall {
    fn grow(&mut self, arguments: &str, events: &mut Vec<ResponseEvent>) -> Result<(), Box<ProviderFailure>> {
        let words = match arguments.as_bytes().first() {
            Some(b'"') => {
                let words = unescape(arguments).ok_or_else(|| malformed("arguments cannot be read"))?;
                self.arguments.push_str(literal_inner(arguments));
                words.into_owned()
            }
            // Some servers send an object instead of a string.
            Some(b'{') => {
                let mut quoted = String::new();
                escape_into(&mut quoted, arguments);
                self.arguments.push_str(literal_inner(&quoted));
                arguments.to_owned()
            }
            Some(b'n') | None => return Ok(()),
            Some(_) => return Err(malformed("arguments are neither a string nor an object")),
        };
        if !words.is_empty() {
            events.push(ResponseEvent::BlockDelta { index: self.block, delta: BlockDelta::Input(words) });
        }
        Ok(())
    }

    fn finish(self, response: &str, at: usize) -> ContentBlock {
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
        ContentBlock::parse(SharedText::from(json))
    }
}

fn string(raw: Option<&RawValue>) -> Option<String> {
    raw.and_then(|raw| unescape(raw.get())).map(String::from)
}
