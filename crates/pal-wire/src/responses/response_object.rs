//! Response object of the Responses dialect: the body of a complete response, and part of the last stream event.

use pal_model::{
    JsonField, ResponseId, SharedText, array_items, escape_into, member, object_fields, unescape,
};
use smol_str::SmolStr;

use super::responses_item::ResponsesItem;
use crate::classify::{display_body, failure_in};
use crate::messages::without_line_breaks;
use crate::openai_usage::parse_usage;
use crate::response_reader::{cut, malformed};
use crate::{ProviderFailure, ResponseEnd, ResponseEvent, ResponseStart};

/// Members that are kept besides the items. Most of the rest repeats the request.
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
pub(crate) struct ResponseObject<'a> {
    known: Vec<JsonField<'a>>,
    pub(crate) response: ResponseId,
    pub(crate) model: SmolStr,
}

/// Reads the body of a response that was not streamed.
pub(crate) fn read_complete(
    body: &str,
    events: &mut Vec<ResponseEvent>,
) -> Result<ResponseEnd, Box<ProviderFailure>> {
    let Ok(known) = object_fields(body) else {
        return Err(malformed(format!("the response is not an object: {}", display_body(body))));
    };
    if known.iter().any(|(key, value)| key == "error" && *value != "null") {
        return Err(Box::new(failure_in(body)));
    }
    let whole = ResponseObject::read(body)?;
    let items = whole.items()?;
    events.push(ResponseEvent::Started(ResponseStart {
        response: whole.response.clone(),
        model: whole.model.clone(),
        usage: Default::default(),
    }));
    let mut seen = OutputFlags::default();
    for (index, item) in items.iter().enumerate() {
        seen.note(item);
        let (tool, call) = (item.tool(), item.call());
        events.push(ResponseEvent::BlockStart { index, kind: item.kind(), tool, call });
        events.extend(item.visible_delta().map(|delta| ResponseEvent::BlockDelta { index, delta }));
        events.push(ResponseEvent::Block { index, block: item.block() });
    }
    whole.finished(seen)
}

/// Properties of the items that determine the stop reason.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OutputFlags {
    has_calls: bool,
    has_refusals: bool,
}

impl OutputFlags {
    /// Adds an item.
    pub(crate) fn note(&mut self, item: &ResponsesItem<'_>) {
        self.has_calls |= item.tool().is_some();
        self.has_refusals |= item.is_refusal();
    }
}

impl<'a> ResponseObject<'a> {
    /// Parses a response object.
    pub(crate) fn read(raw: &'a str) -> Result<ResponseObject<'a>, Box<ProviderFailure>> {
        let known = object_fields(raw).map_err(|_| malformed("the response is not an object"))?;
        let mut whole = ResponseObject { known, response: ResponseId::from(""), model: SmolStr::default() };
        let id = whole.string("id").filter(|id| !id.is_empty());
        whole.response = ResponseId::from(id.ok_or_else(|| malformed("the response has no id"))?.as_ref());
        whole.model = SmolStr::new(whole.string("model").unwrap_or_default());
        Ok(whole)
    }

    /// Parses the output items.
    pub(crate) fn items(&self) -> Result<Vec<ResponsesItem<'a>>, Box<ProviderFailure>> {
        let output = self.get("output").filter(|output| *output != "null").unwrap_or("[]");
        let items = array_items(output).map_err(|_| malformed("the output is not a list"))?;
        items.into_iter().map(ResponsesItem::read).collect()
    }

    /// Returns the last event of the response.
    pub(crate) fn finished(&self, seen: OutputFlags) -> Result<ResponseEnd, Box<ProviderFailure>> {
        Ok(ResponseEnd {
            response: self.response.clone(),
            model: self.model.clone(),
            stop_reason: Some(self.stop_reason(seen)?),
            usage: parse_usage(self.get("usage").unwrap_or("null")),
            extras: self.extras(),
        })
    }

    /// Returns the stop reason in terms of the Messages dialect.
    fn stop_reason(&self, seen: OutputFlags) -> Result<SmolStr, Box<ProviderFailure>> {
        match self.string("status").as_deref() {
            Some("incomplete") => {
                let details = self
                    .get("incomplete_details")
                    .and_then(|raw| object_fields(raw).ok())
                    .unwrap_or_default();
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
                OutputFlags { has_refusals: true, .. } => "refusal",
                OutputFlags { has_calls: true, .. } => "tool_use",
                _ => "end_turn",
            })),
            Some(other) => Err(cut(format!("the response is {other}"))),
        }
    }

    fn extras(&self) -> SharedText {
        let mut extras = String::from("{");
        for name in EXTRAS {
            let Some(value) = self.get(name).filter(|value| *value != "null") else { continue };
            if extras.len() > 1 {
                extras.push(',');
            }
            escape_into(&mut extras, name);
            extras.push(':');
            extras.push_str(&without_line_breaks(value));
        }
        extras.push('}');
        SharedText::from(extras)
    }

    fn get(&self, name: &str) -> Option<&'a str> {
        member(&self.known, name)
    }

    fn string(&self, name: &str) -> Option<std::borrow::Cow<'a, str>> {
        self.get(name).and_then(unescape)
    }
}
