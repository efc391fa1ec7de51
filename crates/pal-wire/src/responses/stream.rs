//! Streamed responses of the Responses dialect.
//!
//! Items are taken from `output_item.done`, never from `output_item.added`. The last event contains the whole response;
//! items that no event delivered are emitted then. Events of unknown types and repetitions are ignored. Bytes that end
//! before the last event are a `Cut`.
//!
//! Events refer to items by index. Some servers send only the item's id; then items are numbered in the order in which
//! their ids appear.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use pal_model::{BlockType, ContentBlock, SharedText, unescape};
use serde::Deserialize;
use serde_json::value::RawValue;
use smol_str::SmolStr;

use super::response_object::{OutputFlags, ResponseObject};
use super::responses_item::ResponsesItem;
use crate::chunk_writer::literal_inner;
use crate::classify::failure_in;
use crate::response_reader::{FrameResult, ResponseReader, cut, malformed};
use crate::sse::SseFrame;
use crate::{BlockDelta, ProviderFailure, ResponseEnd, ResponseEvent, ResponseStart};

/// Streamed response received so far.
#[derive(Debug, Default)]
pub(crate) struct ResponsesStream {
    has_started: bool,
    open: BTreeMap<usize, OpenItem>,
    closed: BTreeSet<usize>,
    /// Items by id; the first one if several share an id.
    ids: BTreeMap<SmolStr, usize>,
    /// Items with a known id. Only one id is kept per item: some servers invent another for every event.
    named: BTreeSet<usize>,
    /// Item opened last.
    newest: usize,
    /// Index after all used ones.
    next: usize,
    seen: OutputFlags,
}

/// An incomplete item.
#[derive(Debug)]
struct OpenItem {
    kind: BlockType,
    /// Visible content so far, escaped.
    shown: String,
}

/// Fields of an event's data.
#[derive(Deserialize)]
struct ResponsesEvent<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    output_index: Option<usize>,
    #[serde(borrow)]
    item_id: Option<&'a RawValue>,
    summary_index: Option<usize>,
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
    #[serde(borrow)]
    response: Option<&'a RawValue>,
}

impl ResponseReader for ResponsesStream {
    fn frame(&mut self, frame: SseFrame<'_>, events: &mut Vec<ResponseEvent>) -> FrameResult {
        if frame.data.trim() == "[DONE]" {
            return Ok(None);
        }
        let data: ResponsesEvent<'_> = serde_json::from_str(frame.data).map_err(|error| {
            malformed(format!("{} cannot be read: {error}", frame.event.unwrap_or("an event")))
        })?;
        let kind = data.kind.and_then(|kind| unescape(kind.get()));
        match kind.as_deref().or(frame.event).unwrap_or_default() {
            "response.output_text.delta" | "response.refusal.delta" => {
                self.grow(&data, BlockType::Text, BlockDelta::Text, events)?;
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.grow(&data, BlockType::Reasoning, BlockDelta::Thinking, events)?;
            }
            "response.function_call_arguments.delta" => {
                self.grow(&data, BlockType::ToolUse, BlockDelta::Input, events)?;
            }
            "response.custom_tool_call_input.delta" => {
                self.grow(&data, BlockType::Unknown, BlockDelta::Input, events)?;
            }
            "response.reasoning_summary_part.added" => self.separate(&data, events),
            "response.created" | "response.in_progress" | "response.queued" => self.start(&data, events)?,
            "response.output_item.added" => self.add(&data, events)?,
            "response.output_item.done" => self.finish_item(&data, events)?,
            "response.completed" | "response.incomplete" => return self.stop(&data, events).map(Some),
            "response.failed" => {
                let response = data.response.map_or(frame.data, RawValue::get);
                return Err(Box::new(failure_in(response)));
            }
            "error" => return Err(Box::new(failure_in(frame.data))),
            "" => return self.nameless(frame.data),
            _ => {}
        }
        Ok(None)
    }

    fn end(&mut self, _events: &mut Vec<ResponseEvent>) -> Result<ResponseEnd, Box<ProviderFailure>> {
        Err(cut(if self.has_started {
            "the stream ended before the response was complete"
        } else {
            "the stream ended before the response started"
        }))
    }
}

impl ResponsesStream {
    fn start(
        &mut self,
        data: &ResponsesEvent<'_>,
        events: &mut Vec<ResponseEvent>,
    ) -> Result<(), Box<ProviderFailure>> {
        if self.has_started {
            return Ok(());
        }
        let response = data.response.ok_or_else(|| malformed("the first event has no response"))?;
        self.begin(&ResponseObject::read(response.get())?, events);
        Ok(())
    }

    fn begin(&mut self, whole: &ResponseObject<'_>, events: &mut Vec<ResponseEvent>) {
        if !std::mem::replace(&mut self.has_started, true) {
            events.push(ResponseEvent::Started(ResponseStart {
                response: whole.response.clone(),
                model: whole.model.clone(),
                usage: Default::default(),
            }));
        }
    }

    fn add(
        &mut self,
        data: &ResponsesEvent<'_>,
        events: &mut Vec<ResponseEvent>,
    ) -> Result<(), Box<ProviderFailure>> {
        let item = data.item.ok_or_else(|| malformed("output_item.added has no item"))?;
        let item = ResponsesItem::read(item.get())?;
        let index = self.place(data, item.id().as_deref(), item.kind())?;
        self.open(index, item.kind(), (item.tool(), item.call()), events)
    }

    fn open(
        &mut self,
        index: usize,
        kind: BlockType,
        (tool, call): (Option<SmolStr>, Option<SmolStr>),
        events: &mut Vec<ResponseEvent>,
    ) -> Result<(), Box<ProviderFailure>> {
        if self.closed.contains(&index) {
            return Err(malformed(format!("item {index} began after its end")));
        }
        self.open.entry(index).or_insert_with(|| {
            self.newest = index;
            self.next = self.next.max(index.saturating_add(1));
            events.push(ResponseEvent::BlockStart { index, kind, tool, call });
            OpenItem { kind, shown: String::new() }
        });
        Ok(())
    }

    /// Adds a delta to an item; opens the item if it was not added before.
    fn grow(
        &mut self,
        data: &ResponsesEvent<'_>,
        kind: BlockType,
        delta: fn(String) -> BlockDelta,
        events: &mut Vec<ResponseEvent>,
    ) -> Result<(), Box<ProviderFailure>> {
        let index = self.place(data, data.id().as_deref(), kind)?;
        self.open(index, kind, (None, None), events)?;
        let Some(piece) = data.delta else { return Ok(()) };
        let words = unescape(piece.get()).ok_or_else(|| malformed("a delta is not a string"))?;
        if let Some(growing) = self.open.get_mut(&index).filter(|_| !words.is_empty()) {
            growing.shown.push_str(literal_inner(piece.get()));
            events.push(ResponseEvent::BlockDelta { index, delta: delta(words.into_owned()) });
        }
        Ok(())
    }

    /// Separates a further part of a reasoning summary from the previous one.
    fn separate(&mut self, data: &ResponsesEvent<'_>, events: &mut Vec<ResponseEvent>) {
        let index = self.find(data.output_index, data.id().as_deref(), BlockType::Reasoning);
        if data.summary_index.is_some_and(|part| part > 0)
            && let Some(growing) = self.open.get_mut(&index).filter(|growing| !growing.shown.is_empty())
        {
            growing.shown.push_str(r"\n\n");
            events
                .push(ResponseEvent::BlockDelta { index, delta: BlockDelta::Thinking(String::from("\n\n")) });
        }
    }

    fn finish_item(
        &mut self,
        data: &ResponsesEvent<'_>,
        events: &mut Vec<ResponseEvent>,
    ) -> Result<(), Box<ProviderFailure>> {
        let item = data.item.ok_or_else(|| malformed("output_item.done has no item"))?;
        let item = ResponsesItem::read(item.get())?;
        let index = self.place(data, item.id().as_deref(), item.kind())?;
        self.close(index, &item, events)
    }

    /// Completes an item and emits the events that are still missing.
    fn close(
        &mut self,
        index: usize,
        item: &ResponsesItem<'_>,
        events: &mut Vec<ResponseEvent>,
    ) -> Result<(), Box<ProviderFailure>> {
        if self.closed.contains(&index) {
            return Ok(());
        }
        self.open(index, item.kind(), (item.tool(), item.call()), events)?;
        let was_shown = self.open.remove(&index).is_some_and(|growing| !growing.shown.is_empty());
        self.closed.insert(index);
        self.seen.note(item);
        if !was_shown {
            events.extend(item.visible_delta().map(|delta| ResponseEvent::BlockDelta { index, delta }));
        }
        events.push(ResponseEvent::Block { index, block: item.block() });
        Ok(())
    }

    fn stop(
        &mut self,
        data: &ResponsesEvent<'_>,
        events: &mut Vec<ResponseEvent>,
    ) -> Result<ResponseEnd, Box<ProviderFailure>> {
        let response = data.response.ok_or_else(|| malformed("the last event has no response"))?;
        let whole = ResponseObject::read(response.get())?;
        self.begin(&whole, events);
        let items = whole.items()?;
        for (index, item) in self.places(&items).into_iter().zip(&items) {
            self.close(index, item, events)?;
        }
        // Open items that are not in the response were cut off; their text is kept.
        for (index, growing) in std::mem::take(&mut self.open) {
            events.extend(growing.into_block().map(|block| ResponseEvent::Block { index, block }));
        }
        whole.finished(self.seen)
    }

    /// Handles data without a type: an error of a gateway, or something unknown.
    fn nameless(&self, data: &str) -> FrameResult {
        let known = pal_model::object_fields(data).unwrap_or_default();
        match known.iter().any(|(key, value)| key == "error" && *value != "null") {
            true => Err(Box::new(failure_in(data))),
            false => Ok(None),
        }
    }

    /// Returns the item of an event and remembers its id; fails before the response started.
    fn place(
        &mut self,
        data: &ResponsesEvent<'_>,
        id: Option<&str>,
        kind: BlockType,
    ) -> Result<usize, Box<ProviderFailure>> {
        if !self.has_started {
            return Err(malformed("an event came before response.created"));
        }
        let index = self.find(data.output_index, id, kind);
        if let Some(id) = id
            && self.named.insert(index)
        {
            self.ids.entry(SmolStr::new(id)).or_insert(index);
        }
        Ok(index)
    }

    /// Finds an item by index, else by id, else the newest open one. An unknown id belongs to the newest open item if that
    /// has the same type and no id, else to a new item.
    fn find(&self, index: Option<usize>, id: Option<&str>, kind: BlockType) -> usize {
        let newest = self.newest_open();
        match (index, id) {
            (Some(index), _) => index,
            (None, None) => newest,
            (None, Some(id)) => self.ids.get(id).copied().unwrap_or_else(|| {
                let is_alike = self.open.get(&newest).is_some_and(|growing| growing.kind == kind);
                if is_alike && !self.named.contains(&newest) { newest } else { self.next }
            }),
        }
    }

    /// Returns the newest open item; if none is open, the newest.
    fn newest_open(&self) -> usize {
        match self.open.last_key_value() {
            Some((last, _)) if !self.open.contains_key(&self.newest) => *last,
            _ => self.newest,
        }
    }

    /// Maps the items of the last event to known ones: by id, else by position. An item at an occupied position is new.
    fn places(&self, items: &[ResponsesItem<'_>]) -> Vec<usize> {
        let mut taken = BTreeSet::new();
        let known: Vec<Option<usize>> = items
            .iter()
            .map(|item| {
                let index = *self.ids.get(item.id()?.as_ref())?;
                taken.insert(index).then_some(index)
            })
            .collect();
        let mut places = Vec::with_capacity(known.len());
        for (position, known) in known.into_iter().enumerate() {
            places.push(known.unwrap_or_else(|| {
                if taken.insert(position) {
                    return position;
                }
                let behind = taken.last().map_or(0, |last| last.saturating_add(1)).max(self.next);
                taken.insert(behind);
                behind
            }));
        }
        places
    }
}

impl ResponsesEvent<'_> {
    /// Returns the id of the event's item.
    fn id(&self) -> Option<Cow<'_, str>> {
        self.item_id.and_then(|id| unescape(id.get())).filter(|id| !id.is_empty())
    }
}

impl OpenItem {
    /// Returns a text block of an incomplete item; none for other types, such as an incomplete call.
    fn into_block(self) -> Option<ContentBlock> {
        if self.kind != BlockType::Text || self.shown.is_empty() {
            return None;
        }
        Some(ContentBlock::parse(SharedText::from(format!(r#"{{"type":"text","text":"{}"}}"#, self.shown))))
    }
}
