//! A streamed answer of the Responses dialect.
//!
//! Items are taken from where they are done, never from where they were added. The answer as a whole stands in the
//! last event; an item that it holds and no event brought is said then. Events of unknown types are passed over, and
//! so are repetitions. Bytes that end before that last event are a `Cut`.
//!
//! An event says by an index which item it is about. Some servers leave the index out and say the item's id alone;
//! then items count in the order in which their ids come.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use pal_model::{Block, BlockType, Text, unescape};
use serde::Deserialize;
use serde_json::value::RawValue;
use smol_str::SmolStr;

use super::item::Item;
use super::whole::{Seen, Whole};
use crate::classify::failure_in;
use crate::reader::{Reader, Step, cut, malformed};
use crate::spell::unquoted;
use crate::sse::Frame;
use crate::{Delta, Event, Failure, Finished, Started};

/// An answer as far as it has come.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    has_started: bool,
    open: BTreeMap<usize, Growing>,
    closed: BTreeSet<usize>,
    /// The items by their ids; where several have the same, the first.
    ids: BTreeMap<SmolStr, usize>,
    /// The items whose id is known. One id for each is kept: some servers make up another for every event.
    named: BTreeSet<usize>,
    /// The item that was opened last.
    newest: usize,
    /// The index behind all that were used.
    next: usize,
    seen: Seen,
}

/// An item that is not done.
#[derive(Debug)]
struct Growing {
    kind: BlockType,
    /// What it showed so far, escaped.
    shown: String,
}

/// What may stand in the data of an event.
#[derive(Deserialize)]
struct Data<'a> {
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

impl Reader for Stream {
    fn frame(&mut self, frame: Frame<'_>, events: &mut Vec<Event>) -> Step {
        if frame.data.trim() == "[DONE]" {
            return Ok(None);
        }
        let data: Data<'_> = serde_json::from_str(frame.data).map_err(|error| {
            malformed(format!("{} cannot be read: {error}", frame.event.unwrap_or("an event")))
        })?;
        let kind = data.kind.and_then(|kind| unescape(kind.get()));
        match kind.as_deref().or(frame.event).unwrap_or_default() {
            "response.output_text.delta" | "response.refusal.delta" => {
                self.grow(&data, BlockType::Text, Delta::Text, events)?;
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.grow(&data, BlockType::Reasoning, Delta::Thinking, events)?;
            }
            "response.function_call_arguments.delta" => {
                self.grow(&data, BlockType::ToolUse, Delta::Input, events)?;
            }
            "response.custom_tool_call_input.delta" => {
                self.grow(&data, BlockType::Unknown, Delta::Input, events)?;
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

    fn end(&mut self, _events: &mut Vec<Event>) -> Result<Finished, Box<Failure>> {
        Err(cut(if self.has_started {
            "the stream ended before the answer was whole"
        } else {
            "the stream ended before the answer began"
        }))
    }
}

impl Stream {
    fn start(&mut self, data: &Data<'_>, events: &mut Vec<Event>) -> Result<(), Box<Failure>> {
        if self.has_started {
            return Ok(());
        }
        let response = data.response.ok_or_else(|| malformed("the first event has no response"))?;
        self.begin(&Whole::read(response.get())?, events);
        Ok(())
    }

    fn begin(&mut self, whole: &Whole<'_>, events: &mut Vec<Event>) {
        if !std::mem::replace(&mut self.has_started, true) {
            events.push(Event::Started(Started {
                response: whole.response.clone(),
                model: whole.model.clone(),
                usage: Default::default(),
            }));
        }
    }

    fn add(&mut self, data: &Data<'_>, events: &mut Vec<Event>) -> Result<(), Box<Failure>> {
        let item = data.item.ok_or_else(|| malformed("output_item.added has no item"))?;
        let item = Item::read(item.get())?;
        let index = self.place(data, item.id().as_deref(), item.kind())?;
        self.open(index, item.kind(), item.tool(), events)
    }

    fn open(
        &mut self,
        index: usize,
        kind: BlockType,
        tool: Option<SmolStr>,
        events: &mut Vec<Event>,
    ) -> Result<(), Box<Failure>> {
        if self.closed.contains(&index) {
            return Err(malformed(format!("item {index} began after its end")));
        }
        self.open.entry(index).or_insert_with(|| {
            self.newest = index;
            self.next = self.next.max(index.saturating_add(1));
            events.push(Event::Opened { index, kind, tool });
            Growing { kind, shown: String::new() }
        });
        Ok(())
    }

    /// An item grows. One that nobody added begins with that.
    fn grow(
        &mut self,
        data: &Data<'_>,
        kind: BlockType,
        delta: fn(String) -> Delta,
        events: &mut Vec<Event>,
    ) -> Result<(), Box<Failure>> {
        let index = self.place(data, data.id().as_deref(), kind)?;
        self.open(index, kind, None, events)?;
        let Some(piece) = data.delta else { return Ok(()) };
        let words = unescape(piece.get()).ok_or_else(|| malformed("a delta is not a string"))?;
        if let Some(growing) = self.open.get_mut(&index).filter(|_| !words.is_empty()) {
            growing.shown.push_str(unquoted(piece.get()));
            events.push(Event::Grew { index, delta: delta(words.into_owned()) });
        }
        Ok(())
    }

    /// A further part of a summary begins: it is set apart from the one before.
    fn separate(&mut self, data: &Data<'_>, events: &mut Vec<Event>) {
        let index = self.find(data.output_index, data.id().as_deref(), BlockType::Reasoning);
        if data.summary_index.is_some_and(|part| part > 0)
            && let Some(growing) = self.open.get_mut(&index).filter(|growing| !growing.shown.is_empty())
        {
            growing.shown.push_str(r"\n\n");
            events.push(Event::Grew { index, delta: Delta::Thinking(String::from("\n\n")) });
        }
    }

    fn finish_item(&mut self, data: &Data<'_>, events: &mut Vec<Event>) -> Result<(), Box<Failure>> {
        let item = data.item.ok_or_else(|| malformed("output_item.done has no item"))?;
        let item = Item::read(item.get())?;
        let index = self.place(data, item.id().as_deref(), item.kind())?;
        self.close(index, &item, events)
    }

    /// Says an item that is done, with all that was not said of it before.
    fn close(&mut self, index: usize, item: &Item<'_>, events: &mut Vec<Event>) -> Result<(), Box<Failure>> {
        if self.closed.contains(&index) {
            return Ok(());
        }
        self.open(index, item.kind(), item.tool(), events)?;
        let was_shown = self.open.remove(&index).is_some_and(|growing| !growing.shown.is_empty());
        self.closed.insert(index);
        self.seen.note(item);
        if !was_shown {
            events.extend(item.shown().map(|delta| Event::Grew { index, delta }));
        }
        events.push(Event::Block { index, block: item.block() });
        Ok(())
    }

    fn stop(&mut self, data: &Data<'_>, events: &mut Vec<Event>) -> Result<Finished, Box<Failure>> {
        let response = data.response.ok_or_else(|| malformed("the last event has no response"))?;
        let whole = Whole::read(response.get())?;
        self.begin(&whole, events);
        let items = whole.items()?;
        for (index, item) in self.places(&items).into_iter().zip(&items) {
            self.close(index, item, events)?;
        }
        // What began and is in no list of items was cut off; the words that came are kept.
        for (index, growing) in std::mem::take(&mut self.open) {
            events.extend(growing.into_block().map(|block| Event::Block { index, block }));
        }
        whole.finished(self.seen)
    }

    /// Data that does not say what it is: an error of a gateway, or nothing that we know.
    fn nameless(&self, data: &str) -> Step {
        let known = pal_model::fields(data).unwrap_or_default();
        match known.iter().any(|(key, value)| key == "error" && *value != "null") {
            true => Err(Box::new(failure_in(data))),
            false => Ok(None),
        }
    }

    /// The item that an event is about, if the answer has begun; from now on its id leads to it.
    fn place(&mut self, data: &Data<'_>, id: Option<&str>, kind: BlockType) -> Result<usize, Box<Failure>> {
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

    /// The item with an index, else with an id, else the newest that is open. An id that is new may be that of the
    /// newest, if that is alike and came without one; else it is that of an item to come.
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

    /// The newest item that is open; where none is, the newest.
    fn newest_open(&self) -> usize {
        match self.open.last_key_value() {
            Some((last, _)) if !self.open.contains_key(&self.newest) => *last,
            _ => self.newest,
        }
    }

    /// Which items those of the last event are: by their ids, else by their positions. One whose position is
    /// another's is new.
    fn places(&self, items: &[Item<'_>]) -> Vec<usize> {
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

impl Data<'_> {
    /// The id of the item that the event is about.
    fn id(&self) -> Option<Cow<'_, str>> {
        self.item_id.and_then(|id| unescape(id.get())).filter(|id| !id.is_empty())
    }
}

impl Growing {
    /// The block of an item that was never done: its words. A call that is not whole is none.
    fn into_block(self) -> Option<Block> {
        if self.kind != BlockType::Text || self.shown.is_empty() {
            return None;
        }
        Some(Block::parse(Text::from(format!(r#"{{"type":"text","text":"{}"}}"#, self.shown))))
    }
}
