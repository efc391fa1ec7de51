//! A streamed answer of the Messages dialect.
//!
//! What does not fit: events of unknown types, and repetitions that do no harm (a `message_start` of the same
//! message, a `content_block_start` that repeats the one before it, a second `content_block_stop`), are passed over.
//! A contradiction is a failure of the kind `Malformed`: a block that grows or ends without having begun, begins a
//! second time or grows after its end; anything of a message before its start; a `message_stop` while a block is open;
//! a known event that cannot be read. A delta that comes twice cannot be told from two equal deltas.
//!
//! The end of the bytes without `message_stop` is a `Cut`, with one exception: if the model's reason to stop is known
//! and every block has ended, the answer is whole. Some gateways leave the last event out.

use std::collections::{BTreeMap, BTreeSet};

use pal_model::{array_items, fields, member, unescape};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::growing::{Growing, RawDelta};
use super::plain::PlainDelta;
use super::summary::Summary;
use super::whole::read_blocks;
use crate::classify::failure_in;
use crate::reader::{Reader, Step, cut, malformed};
use crate::sse::Frame;
use crate::{Event, Failure, Finished};

/// The events that we know.
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

/// An answer as far as it has come.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// There is one since `message_start`.
    summary: Option<Summary>,
    /// Blocks that have begun and not ended.
    open: BTreeMap<usize, Growing>,
    /// Blocks that have ended.
    closed: BTreeSet<usize>,
}

/// What may stand in the data of an event.
#[derive(Deserialize)]
struct Data<'a> {
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

/// As much of the data of an event as tells whether we should know it.
#[derive(Deserialize)]
struct Name<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
}

impl Reader for Stream {
    fn frame(&mut self, frame: Frame<'_>, events: &mut Vec<Event>) -> Step {
        if let Some(delta) = PlainDelta::read(frame.data) {
            self.grow_plain(delta, events)?;
            return Ok(None);
        }
        let data: Data<'_> = match serde_json::from_str(frame.data) {
            Ok(data) => data,
            Err(_) if !is_ours(frame) => return Ok(None),
            Err(error) => {
                let event = frame.event.unwrap_or("an event");
                return Err(malformed(format!("{event} cannot be read: {error}")));
            }
        };
        // The data's own word counts; the name of the frame repeats it.
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

    fn end(&mut self, _events: &mut Vec<Event>) -> Result<Finished, Box<Failure>> {
        match &mut self.summary {
            Some(summary) if summary.has_stopped() && self.open.is_empty() => Ok(summary.finished()),
            Some(_) => Err(cut("the stream ended before the answer was whole")),
            None => Err(cut("the stream ended before the answer began")),
        }
    }
}

impl Stream {
    fn start(&mut self, data: &Data<'_>, events: &mut Vec<Event>) -> Result<(), Box<Failure>> {
        let message = data.message.ok_or_else(|| malformed("message_start has no message"))?;
        let message = fields(message.get()).map_err(|_| malformed("the message is not an object"))?;
        let summary = Summary::new(&message)?;
        if let Some(first) = &self.summary {
            if first.response() == summary.response() {
                return Ok(());
            }
            return Err(malformed("a second message began inside of the first"));
        }
        events.push(Event::Started(summary.started()));
        self.summary = Some(summary);
        let content = member(&message, "content");
        let blocks = content.and_then(|content| array_items(content).ok()).unwrap_or_default();
        self.closed.extend(0..blocks.len());
        read_blocks(&blocks, events)
    }

    fn open(&mut self, data: &Data<'_>, events: &mut Vec<Event>) -> Result<(), Box<Failure>> {
        let index = self.index(data)?;
        let start = data.content_block.ok_or_else(|| malformed("content_block_start has no block"))?.get();
        if let Some(growing) = self.open.get(&index) {
            return if growing.is_just(start) { Ok(()) } else { Err(twice(index)) };
        }
        if self.closed.contains(&index) {
            return Err(twice(index));
        }
        let growing = Growing::new(start)?;
        events.push(growing.opened(index));
        self.open.insert(index, growing);
        Ok(())
    }

    fn grow(&mut self, data: &Data<'_>, events: &mut Vec<Event>) -> Result<(), Box<Failure>> {
        let index = self.index(data)?;
        let delta = data.delta.as_ref().ok_or_else(|| malformed("content_block_delta has no delta"))?;
        let growing = self.open.get_mut(&index).ok_or_else(|| not_open(index))?;
        events.extend(growing.grow(delta)?.map(|delta| Event::Grew { index, delta }));
        Ok(())
    }

    fn grow_plain(&mut self, delta: PlainDelta<'_>, events: &mut Vec<Event>) -> Result<(), Box<Failure>> {
        let PlainDelta { index, grows, inside, shown } = delta;
        self.summary.as_ref().ok_or_else(too_early)?;
        let growing = self.open.get_mut(&index).ok_or_else(|| not_open(index))?;
        events.extend(growing.append(grows, inside, shown)?.map(|delta| Event::Grew { index, delta }));
        Ok(())
    }

    fn close(&mut self, data: &Data<'_>, events: &mut Vec<Event>) -> Result<(), Box<Failure>> {
        let index = self.index(data)?;
        let Some(growing) = self.open.remove(&index) else {
            let is_repeated = self.closed.contains(&index);
            return if is_repeated { Ok(()) } else { Err(malformed(format!("block {index} ended unbegun"))) };
        };
        self.closed.insert(index);
        events.push(Event::Block { index, block: growing.finish() });
        Ok(())
    }

    /// Members of the message stand in the delta, and beside it.
    fn change(&mut self, data: &str) -> Result<(), Box<Failure>> {
        let summary = self.summary.as_mut().ok_or_else(too_early)?;
        for (key, value) in fields(data).map_err(|_| malformed("message_delta is not an object"))? {
            match key.as_ref() {
                "type" => {}
                "delta" if value == "null" => {}
                "delta" => {
                    for (key, value) in fields(value).map_err(|_| malformed("the delta is not an object"))? {
                        summary.member(&key, value)?;
                    }
                }
                _ => summary.member(&key, value)?,
            }
        }
        Ok(())
    }

    fn stop(&mut self) -> Result<Finished, Box<Failure>> {
        let summary = self.summary.as_mut().ok_or_else(too_early)?;
        match self.open.first_key_value() {
            Some((index, _)) => Err(malformed(format!("the message ended while block {index} was open"))),
            None => Ok(summary.finished()),
        }
    }

    /// The block that an event is about, if the message has begun.
    fn index(&self, data: &Data<'_>) -> Result<usize, Box<Failure>> {
        self.summary.as_ref().ok_or_else(too_early)?;
        data.index.ok_or_else(|| malformed("the event of a block has no index"))
    }
}

/// Whether a frame that cannot be read must be one of those that we know, as far as can be told.
fn is_ours(frame: Frame<'_>) -> bool {
    let name: Option<Name<'_>> = serde_json::from_str(frame.data).ok();
    let kind = name.and_then(|name| unescape(name.kind?.get()));
    match kind.as_deref().or(frame.event) {
        Some(kind) => kind == "message" || KNOWN.contains(&kind),
        // Other dialects' mark of the end, which some gateways add to every stream.
        None => frame.data.trim() != "[DONE]",
    }
}

fn too_early() -> Box<Failure> {
    malformed("an event came before message_start")
}

fn not_open(index: usize) -> Box<Failure> {
    malformed(format!("block {index} grew while it was not open"))
}

fn twice(index: usize) -> Box<Failure> {
    malformed(format!("block {index} began twice"))
}
