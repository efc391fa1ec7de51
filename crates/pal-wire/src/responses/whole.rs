//! A whole answer of the Responses dialect: the object that is the body of an answer, and the last event of a stream.

use pal_model::{Field, ResponseId, Text, array_items, escape_into, fields, member, unescape};
use smol_str::SmolStr;

use super::item::Item;
use crate::classify::{failure_in, shown_body};
use crate::counts::usage;
use crate::messages::on_one_line;
use crate::reader::{cut, malformed};
use crate::{Event, Failure, Finished, Started};

/// What of an answer is kept besides its items. Most of the rest repeats the request.
const EXTRAS: [&str; 7] = [
    "incomplete_details",
    "moderation",
    "prompt_cache_diagnostics",
    "prompt_cache_options",
    "service_tier",
    "status",
    "usage",
];

/// A response object.
pub(crate) struct Whole<'a> {
    known: Vec<Field<'a>>,
    pub(crate) response: ResponseId,
    pub(crate) model: SmolStr,
}

/// Reads the body of an answer that was not streamed.
pub(crate) fn read_whole(body: &str, events: &mut Vec<Event>) -> Result<Finished, Box<Failure>> {
    let Ok(known) = fields(body) else {
        return Err(malformed(format!("the answer is not a response: {}", shown_body(body))));
    };
    if known.iter().any(|(key, value)| key == "error" && *value != "null") {
        return Err(Box::new(failure_in(body)));
    }
    let whole = Whole::read(body)?;
    let items = whole.items()?;
    events.push(Event::Started(Started {
        response: whole.response.clone(),
        model: whole.model.clone(),
        usage: Default::default(),
    }));
    let mut seen = Seen::default();
    for (index, item) in items.iter().enumerate() {
        seen.note(item);
        events.push(Event::Opened { index, kind: item.kind(), tool: item.tool() });
        events.extend(item.shown().map(|delta| Event::Grew { index, delta }));
        events.push(Event::Block { index, block: item.block() });
    }
    whole.finished(seen)
}

/// What of the items decides why an answer stopped.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    has_calls: bool,
    has_refusals: bool,
}

impl Seen {
    /// Takes notice of an item.
    pub(crate) fn note(&mut self, item: &Item<'_>) {
        self.has_calls |= item.tool().is_some();
        self.has_refusals |= item.is_refusal();
    }
}

impl<'a> Whole<'a> {
    /// Reads a response object.
    pub(crate) fn read(raw: &'a str) -> Result<Whole<'a>, Box<Failure>> {
        let known = fields(raw).map_err(|_| malformed("the response is not an object"))?;
        let mut whole = Whole { known, response: ResponseId::from(""), model: SmolStr::default() };
        let id = whole.string("id").filter(|id| !id.is_empty());
        whole.response = ResponseId::from(id.ok_or_else(|| malformed("the response has no id"))?.as_ref());
        whole.model = SmolStr::new(whole.string("model").unwrap_or_default());
        Ok(whole)
    }

    /// The output items.
    pub(crate) fn items(&self) -> Result<Vec<Item<'a>>, Box<Failure>> {
        let output = self.get("output").filter(|output| *output != "null").unwrap_or("[]");
        let items = array_items(output).map_err(|_| malformed("the output is not a list"))?;
        items.into_iter().map(Item::read).collect()
    }

    /// The last event of an answer with such items.
    pub(crate) fn finished(&self, seen: Seen) -> Result<Finished, Box<Failure>> {
        Ok(Finished {
            response: self.response.clone(),
            model: self.model.clone(),
            stop_reason: Some(self.stop_reason(seen)?),
            usage: usage(self.get("usage").unwrap_or("null")),
            extras: self.extras(),
        })
    }

    /// Why the model stopped, in the words of the Messages dialect.
    fn stop_reason(&self, seen: Seen) -> Result<SmolStr, Box<Failure>> {
        match self.string("status").as_deref() {
            Some("incomplete") => {
                let details =
                    self.get("incomplete_details").and_then(|raw| fields(raw).ok()).unwrap_or_default();
                let reason =
                    details.iter().find(|(key, _)| key == "reason").and_then(|(_, raw)| unescape(raw));
                Ok(match reason.as_deref() {
                    Some("max_output_tokens") => SmolStr::new_static("max_tokens"),
                    Some("content_filter") => SmolStr::new_static("refusal"),
                    Some(other) => SmolStr::new(other),
                    None => SmolStr::new_static("incomplete"),
                })
            }
            Some("completed") | None => Ok(SmolStr::new_static(match seen {
                Seen { has_refusals: true, .. } => "refusal",
                Seen { has_calls: true, .. } => "tool_use",
                _ => "end_turn",
            })),
            Some(other) => Err(cut(format!("the response is {other}"))),
        }
    }

    fn extras(&self) -> Text {
        let mut extras = String::from("{");
        for name in EXTRAS {
            let Some(value) = self.get(name).filter(|value| *value != "null") else { continue };
            if extras.len() > 1 {
                extras.push(',');
            }
            escape_into(&mut extras, name);
            extras.push(':');
            extras.push_str(&on_one_line(value));
        }
        extras.push('}');
        Text::from(extras)
    }

    fn get(&self, name: &str) -> Option<&'a str> {
        member(&self.known, name)
    }

    fn string(&self, name: &str) -> Option<std::borrow::Cow<'a, str>> {
        self.get(name).and_then(unescape)
    }
}
