//! A chat answer as it grows: words and reasoning one after the other, calls beside them.

use std::collections::BTreeMap;

use pal_model::{Block, BlockType, ResponseId, Text, Usage, unescape};
use serde::Deserialize;
use serde_json::value::RawValue;
use smol_str::SmolStr;

use super::calls::{Calls, Piece};
use crate::counts::usage;
use crate::messages::on_one_line;
use crate::reader::malformed;
use crate::spell::unquoted;
use crate::{Delta, Event, Failure, Finished, Started};

/// What the model says, or a piece of it.
#[derive(Deserialize)]
pub(crate) struct Said<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    reasoning_content: Option<&'a RawValue>,
    #[serde(borrow)]
    reasoning: Option<&'a RawValue>,
    #[serde(borrow)]
    refusal: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_calls: Option<Vec<Piece<'a>>>,
}

/// An answer as far as it has come.
#[derive(Debug)]
pub(crate) struct Answer {
    response: ResponseId,
    model: SmolStr,
    /// The words or thoughts that may still grow.
    open: Option<Growing>,
    calls: Calls,
    /// How many blocks have begun.
    blocks: usize,
    is_refused: bool,
    reason: Option<SmolStr>,
    /// What else is known of it: raw members.
    extras: BTreeMap<&'static str, String>,
}

#[derive(Debug)]
struct Growing {
    index: usize,
    kind: BlockType,
    /// Escaped.
    words: String,
}

impl Answer {
    /// An answer that begins.
    pub(crate) fn begin(response: &str, model: &str, events: &mut Vec<Event>) -> Answer {
        let answer = Answer {
            response: ResponseId::from(response),
            model: SmolStr::new(model),
            open: None,
            calls: Calls::default(),
            blocks: 0,
            is_refused: false,
            reason: None,
            extras: BTreeMap::new(),
        };
        events.push(Event::Started(Started {
            response: answer.response.clone(),
            model: answer.model.clone(),
            usage: Usage::default(),
        }));
        answer
    }

    /// Takes what was said.
    pub(crate) fn take(&mut self, said: &Said<'_>, events: &mut Vec<Event>) -> Result<(), Box<Failure>> {
        // Gateways send one text under both names.
        if let Some(thoughts) = said.reasoning_content.or(said.reasoning) {
            self.grow(BlockType::Reasoning, thoughts, Delta::Thinking, events)?;
        }
        if let Some(words) = said.content {
            self.grow(BlockType::Text, words, Delta::Text, events)?;
        }
        if let Some(words) = said.refusal {
            self.is_refused |= self.grow(BlockType::Text, words, Delta::Text, events)?;
        }
        for piece in said.tool_calls.iter().flatten() {
            if self.calls.take(piece, self.blocks, events)? {
                self.blocks += 1;
            }
        }
        Ok(())
    }

    /// Keeps a member that says something about the answer as a whole; the last value counts.
    pub(crate) fn note(&mut self, name: &'static str, value: &str) {
        if self.extras.get(name).is_none_or(|known| known != value) {
            self.extras.insert(name, on_one_line(value));
        }
    }

    /// Why the server says that the model stopped.
    pub(crate) fn stop(&mut self, reason: &str) {
        self.reason = Some(SmolStr::new(reason));
    }

    /// Whether it is known why the model stopped.
    pub(crate) fn has_stopped(&self) -> bool {
        self.reason.is_some()
    }

    /// Says what is whole now, and gives the last event.
    pub(crate) fn finish(&mut self, events: &mut Vec<Event>) -> Finished {
        let has_calls = !self.calls.is_empty();
        self.close(events);
        let calls = self.calls.finish(self.response.as_str());
        events.extend(calls.into_iter().map(|(index, block)| Event::Block { index, block }));
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
        Finished {
            response: self.response.clone(),
            model: self.model.clone(),
            stop_reason: Some(SmolStr::new(reason)),
            usage: self.extras.get("usage").map(|counts| usage(counts)).unwrap_or_default(),
            extras: self.extras(),
        }
    }

    /// Appends words to the block of their kind; whatever else was open is whole. Returns whether there were any.
    fn grow(
        &mut self,
        kind: BlockType,
        words: &RawValue,
        delta: fn(String) -> Delta,
        events: &mut Vec<Event>,
    ) -> Result<bool, Box<Failure>> {
        if words.get() == "null" {
            return Ok(false);
        }
        let shown = unescape(words.get()).ok_or_else(|| malformed("what was said is not a string"))?;
        if shown.is_empty() {
            return Ok(false);
        }
        if self.open.as_ref().is_some_and(|open| open.kind != kind) {
            self.close(events);
        }
        let open = self.open.get_or_insert_with(|| {
            let index = self.blocks;
            self.blocks += 1;
            events.push(Event::Opened { index, kind, tool: None });
            Growing { index, kind, words: String::new() }
        });
        open.words.push_str(unquoted(words.get()));
        events.push(Event::Grew { index: open.index, delta: delta(shown.into_owned()) });
        Ok(true)
    }

    fn close(&mut self, events: &mut Vec<Event>) {
        if let Some(Growing { index, kind, words }) = self.open.take() {
            let name = kind.name().unwrap_or("text");
            let block = Block::parse(Text::from(format!(r#"{{"type":"{name}","text":"{words}"}}"#)));
            events.push(Event::Block { index, block });
        }
    }

    fn extras(&self) -> Text {
        let members: Vec<String> =
            self.extras.iter().map(|(name, value)| format!(r#""{name}":{value}"#)).collect();
        Text::from(format!("{{{}}}", members.join(",")))
    }
}
