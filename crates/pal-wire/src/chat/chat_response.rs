//! Chat response under construction: text and reasoning in sequence, tool calls beside them.

use std::collections::BTreeMap;

use pal_model::{BlockType, ContentBlock, ResponseId, SharedText, Usage, unescape};
use serde::Deserialize;
use serde_json::value::RawValue;
use smol_str::SmolStr;

use super::chat_tool_calls::{ChatToolCalls, ToolCallDelta};
use crate::chunk_writer::literal_inner;
use crate::messages::without_line_breaks;
use crate::openai_usage::parse_usage;
use crate::response_reader::malformed;
use crate::{BlockDelta, ProviderFailure, ResponseEnd, ResponseEvent, ResponseStart};

/// Message of a choice, or a delta of it.
#[derive(Deserialize)]
pub(crate) struct ChatMessageDelta<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    reasoning_content: Option<&'a RawValue>,
    #[serde(borrow)]
    reasoning: Option<&'a RawValue>,
    #[serde(borrow)]
    refusal: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_calls: Option<Vec<ToolCallDelta<'a>>>,
}

/// Chat response received so far.
#[derive(Debug)]
pub(crate) struct ChatResponse {
    response: ResponseId,
    model: SmolStr,
    /// Text or reasoning block that may still grow.
    open: Option<OpenBlock>,
    calls: ChatToolCalls,
    /// Number of started blocks.
    blocks: usize,
    is_refused: bool,
    reason: Option<SmolStr>,
    /// Other members of the response, raw.
    extras: BTreeMap<&'static str, String>,
}

#[derive(Debug)]
struct OpenBlock {
    index: usize,
    kind: BlockType,
    /// Escaped.
    words: String,
}

impl ChatResponse {
    /// Starts a response.
    pub(crate) fn begin(response: &str, model: &str, events: &mut Vec<ResponseEvent>) -> ChatResponse {
        let answer = ChatResponse {
            response: ResponseId::from(response),
            model: SmolStr::new(model),
            open: None,
            calls: ChatToolCalls::default(),
            blocks: 0,
            is_refused: false,
            reason: None,
            extras: BTreeMap::new(),
        };
        events.push(ResponseEvent::Started(ResponseStart {
            response: answer.response.clone(),
            model: answer.model.clone(),
            usage: Usage::default(),
        }));
        answer
    }

    /// Adds a message or delta.
    pub(crate) fn take(
        &mut self,
        message: &ChatMessageDelta<'_>,
        events: &mut Vec<ResponseEvent>,
    ) -> Result<(), Box<ProviderFailure>> {
        // Gateways send the same text under both names.
        if let Some(thoughts) = message.reasoning_content.or(message.reasoning) {
            self.grow(BlockType::Reasoning, thoughts, BlockDelta::Thinking, events)?;
        }
        if let Some(words) = message.content {
            self.grow(BlockType::Text, words, BlockDelta::Text, events)?;
        }
        if let Some(words) = message.refusal {
            self.is_refused |= self.grow(BlockType::Text, words, BlockDelta::Text, events)?;
        }
        for piece in message.tool_calls.iter().flatten() {
            if self.calls.take(piece, self.blocks, events)? {
                self.blocks += 1;
            }
        }
        Ok(())
    }

    /// Keeps a member of the response; the last value counts.
    pub(crate) fn note(&mut self, name: &'static str, value: &str) {
        if self.extras.get(name).is_none_or(|known| known != value) {
            self.extras.insert(name, without_line_breaks(value));
        }
    }

    /// Sets the finish reason.
    pub(crate) fn stop(&mut self, reason: &str) {
        self.reason = Some(SmolStr::new(reason));
    }

    /// Returns true if the finish reason is known.
    pub(crate) fn has_stopped(&self) -> bool {
        self.reason.is_some()
    }

    /// Completes all blocks and returns the last event.
    pub(crate) fn finish(&mut self, events: &mut Vec<ResponseEvent>) -> ResponseEnd {
        let has_calls = !self.calls.is_empty();
        self.close(events);
        let calls = self.calls.finish(self.response.as_str());
        events.extend(calls.into_iter().map(|(index, block)| ResponseEvent::Block { index, block }));
        let reason = match self.reason.as_deref() {
            _ if self.is_refused => "refusal",
            Some("length") => "max_tokens",
            Some("content_filter") => "refusal",
            Some("stop" | "tool_calls" | "function_call") | None => {
                if has_calls {
                    "tool_use"
                } else {
                    "end_turn"
                }
            }
            Some(other) => other,
        };
        ResponseEnd {
            response: self.response.clone(),
            model: self.model.clone(),
            stop_reason: Some(SmolStr::new(reason)),
            usage: self.extras.get("usage").map(|counts| parse_usage(counts)).unwrap_or_default(),
            extras: self.extras(),
        }
    }

    /// Appends text to the open block of its kind and completes a block of another kind. Returns false for empty text.
    fn grow(
        &mut self,
        kind: BlockType,
        words: &RawValue,
        delta: fn(String) -> BlockDelta,
        events: &mut Vec<ResponseEvent>,
    ) -> Result<bool, Box<ProviderFailure>> {
        if words.get() == "null" {
            return Ok(false);
        }
        let shown = unescape(words.get()).ok_or_else(|| malformed("the content is not a string"))?;
        if shown.is_empty() {
            return Ok(false);
        }
        if self.open.as_ref().is_some_and(|open| open.kind != kind) {
            self.close(events);
        }
        let open = self.open.get_or_insert_with(|| {
            let index = self.blocks;
            self.blocks += 1;
            events.push(ResponseEvent::BlockStart { index, kind, tool: None, call: None });
            OpenBlock { index, kind, words: String::new() }
        });
        open.words.push_str(literal_inner(words.get()));
        events.push(ResponseEvent::BlockDelta { index: open.index, delta: delta(shown.into_owned()) });
        Ok(true)
    }

    fn close(&mut self, events: &mut Vec<ResponseEvent>) {
        if let Some(OpenBlock { index, kind, words }) = self.open.take() {
            let name = kind.name().unwrap_or("text");
            let block =
                ContentBlock::parse(SharedText::from(format!(r#"{{"type":"{name}","text":"{words}"}}"#)));
            events.push(ResponseEvent::Block { index, block });
        }
    }

    fn extras(&self) -> SharedText {
        let members: Vec<String> =
            self.extras.iter().map(|(name, value)| format!(r#""{name}":{value}"#)).collect();
        SharedText::from(format!("{{{}}}", members.join(",")))
    }
}
