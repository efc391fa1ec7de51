//! Streamed responses of the Messages dialect.
//!
//! Events of unknown types and harmless repetitions are ignored: a `message_start` of the same message, a repeated
//! `content_block_start`, a second `content_block_stop`. Contradictions are `Malformed`: a block that grows or ends before
//! it begins, begins twice or grows after its end; any event before `message_start`; a `message_stop` while a block is
//! open; a known event that cannot be parsed. A repeated delta is indistinguishable from two equal deltas.
//!
//! The end of the bytes without `message_stop` is a `Cut`, unless the stop reason is known and every block has ended:
//! some gateways omit the last event.

use std::collections::{BTreeMap, BTreeSet};

use pal_model::{array_items, member, object_fields, unescape};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::complete_message::read_blocks;
use super::message_metadata::MessageMetadata;
use super::streamed_block::{RawDelta, StreamedBlock};
use super::string_delta::StringDelta;
use crate::classify::failure_in;
use crate::response_reader::{FrameResult, ResponseReader, cut, malformed};
use crate::sse::SseFrame;
use crate::{ProviderFailure, ResponseEnd, ResponseEvent};

/// Known event types.
const KNOWN: [&str; 8] = [
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
    "ping",
    "error",
];

/// Streamed response received so far.
#[derive(Debug, Default)]
pub(crate) struct MessagesStream {
    /// Set by `message_start`.
    summary: Option<MessageMetadata>,
    /// Open blocks by index.
    open: BTreeMap<usize, StreamedBlock>,
    /// Indexes of ended blocks.
    closed: BTreeSet<usize>,
}

/// Fields of an event's data.
#[derive(Deserialize)]
struct MessagesEvent<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    index: Option<usize>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    content_block: Option<&'a RawValue>,
    #[serde(borrow)]
    delta: Option<RawDelta<'a>>,
}

/// Type of an event, without its other fields.
#[derive(Deserialize)]
struct EventType<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
}

impl ResponseReader for MessagesStream {
    fn frame(&mut self, frame: SseFrame<'_>, events: &mut Vec<ResponseEvent>) -> FrameResult {
        if let Some(delta) = StringDelta::read(frame.data) {
            self.grow_plain(delta, events)?;
            return Ok(None);
        }
        let data: MessagesEvent<'_> = match serde_json::from_str(frame.data) {
            Ok(data) => data,
            Err(_) if !is_known_event(frame) => return Ok(None),
            Err(error) => {
                let event = frame.event.unwrap_or("an event");
                return Err(malformed(format!("{event} cannot be read: {error}")));
            }
        };
        // The type in the data takes precedence over the name of the frame.
        let kind = data.kind.and_then(|kind| unescape(kind.get()));
        match kind.as_deref().or(frame.event).unwrap_or_default() {
            "content_block_delta" => self.grow(&data, events)?,
            "content_block_start" => self.open(&data, events)?,
            "content_block_stop" => self.close(&data, events)?,
            "message_start" => self.start(&data, events)?,
            "message_delta" => self.change(frame.data)?,
            "message_stop" => return self.stop().map(Some),
            "error" => return Err(Box::new(failure_in(frame.data))),
            _ => {}
        }
        Ok(None)
    }

    fn end(&mut self, _events: &mut Vec<ResponseEvent>) -> Result<ResponseEnd, Box<ProviderFailure>> {
        match &mut self.summary {
            Some(summary) if summary.has_stopped() && self.open.is_empty() => Ok(summary.finished()),
            Some(_) => Err(cut("the stream ended before the response was complete")),
            None => Err(cut("the stream ended before the response started")),
        }
    }
}

impl MessagesStream {
    fn start(
        &mut self,
        data: &MessagesEvent<'_>,
        events: &mut Vec<ResponseEvent>,
    ) -> Result<(), Box<ProviderFailure>> {
        let message = data.message.ok_or_else(|| malformed("message_start has no message"))?;
        let message = object_fields(message.get()).map_err(|_| malformed("the message is not an object"))?;
        let summary = MessageMetadata::new(&message)?;
        if let Some(first) = &self.summary {
            if first.response() == summary.response() {
                return Ok(());
            }
            return Err(malformed("a second message began inside the first"));
        }
        events.push(ResponseEvent::Started(summary.started()));
        self.summary = Some(summary);
        let content = member(&message, "content");
        let blocks = content.and_then(|content| array_items(content).ok()).unwrap_or_default();
        self.closed.extend(0..blocks.len());
        read_blocks(&blocks, events)
    }

    fn open(
        &mut self,
        data: &MessagesEvent<'_>,
        events: &mut Vec<ResponseEvent>,
    ) -> Result<(), Box<ProviderFailure>> {
        let index = self.index(data)?;
        let start = data.content_block.ok_or_else(|| malformed("content_block_start has no block"))?.get();
        if let Some(growing) = self.open.get(&index) {
            return if growing.is_just(start) { Ok(()) } else { Err(began_twice(index)) };
        }
        if self.closed.contains(&index) {
            return Err(began_twice(index));
        }
        let growing = StreamedBlock::new(start)?;
        events.push(growing.opened(index));
        self.open.insert(index, growing);
        Ok(())
    }

    fn grow(
        &mut self,
        data: &MessagesEvent<'_>,
        events: &mut Vec<ResponseEvent>,
    ) -> Result<(), Box<ProviderFailure>> {
        let index = self.index(data)?;
        let delta = data.delta.as_ref().ok_or_else(|| malformed("content_block_delta has no delta"))?;
        let growing = self.open.get_mut(&index).ok_or_else(|| not_open(index))?;
        events.extend(growing.grow(delta)?.map(|delta| ResponseEvent::BlockDelta { index, delta }));
        Ok(())
    }

    fn grow_plain(
        &mut self,
        delta: StringDelta<'_>,
        events: &mut Vec<ResponseEvent>,
    ) -> Result<(), Box<ProviderFailure>> {
        let StringDelta { index, grows, inside, shown } = delta;
        self.summary.as_ref().ok_or_else(too_early)?;
        let growing = self.open.get_mut(&index).ok_or_else(|| not_open(index))?;
        events.extend(
            growing.append(grows, inside, shown)?.map(|delta| ResponseEvent::BlockDelta { index, delta }),
        );
        Ok(())
    }

    fn close(
        &mut self,
        data: &MessagesEvent<'_>,
        events: &mut Vec<ResponseEvent>,
    ) -> Result<(), Box<ProviderFailure>> {
        let index = self.index(data)?;
        let Some(growing) = self.open.remove(&index) else {
            let is_repeated = self.closed.contains(&index);
            return if is_repeated {
                Ok(())
            } else {
                Err(malformed(format!("block {index} ended before it began")))
            };
        };
        self.closed.insert(index);
        events.push(ResponseEvent::Block { index, block: growing.finish() });
        Ok(())
    }

    /// Applies `message_delta`, whose members are in the delta and beside it.
    fn change(&mut self, data: &str) -> Result<(), Box<ProviderFailure>> {
        let summary = self.summary.as_mut().ok_or_else(too_early)?;
        for (key, value) in object_fields(data).map_err(|_| malformed("message_delta is not an object"))? {
            match key.as_ref() {
                "type" => {}
                "delta" if value == "null" => {}
                "delta" => {
                    for (key, value) in
                        object_fields(value).map_err(|_| malformed("the delta is not an object"))?
                    {
                        summary.member(&key, value)?;
                    }
                }
                _ => summary.member(&key, value)?,
            }
        }
        Ok(())
    }

    fn stop(&mut self) -> Result<ResponseEnd, Box<ProviderFailure>> {
        let summary = self.summary.as_mut().ok_or_else(too_early)?;
        match self.open.first_key_value() {
            Some((index, _)) => Err(malformed(format!("the message ended while block {index} was open"))),
            None => Ok(summary.finished()),
        }
    }

    /// Returns the index of the event's block; fails before `message_start`.
    fn index(&self, data: &MessagesEvent<'_>) -> Result<usize, Box<ProviderFailure>> {
        self.summary.as_ref().ok_or_else(too_early)?;
        data.index.ok_or_else(|| malformed("the event of a block has no index"))
    }
}

/// Returns true if an unparsable frame appears to be of a known type.
fn is_known_event(frame: SseFrame<'_>) -> bool {
    let name: Option<EventType<'_>> = serde_json::from_str(frame.data).ok();
    let kind = name.and_then(|name| unescape(name.kind?.get()));
    match kind.as_deref().or(frame.event) {
        Some(kind) => kind == "message" || KNOWN.contains(&kind),
        // The end marker of other dialects, which some gateways add to every stream.
        None => frame.data.trim() != "[DONE]",
    }
}

fn too_early() -> Box<ProviderFailure> {
    malformed("an event came before message_start")
}

fn not_open(index: usize) -> Box<ProviderFailure> {
    malformed(format!("block {index} grew while it was not open"))
}

fn began_twice(index: usize) -> Box<ProviderFailure> {
    malformed(format!("block {index} began twice"))
}
