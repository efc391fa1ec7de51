//! A request of either of OpenAI's dialects, read: blocks in the form of the Messages dialect, and what is asked.

use std::borrow::Cow;

use pal_model::{Card, Role};
use serde_json::{Map, Value, json};

use super::error::Refusal;
use crate::entries::Lives;
use crate::{Ask, AskMessage};

/// Where a block stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Tool,
    System,
    Message(Role),
}

/// How long the cache remembers at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Keep {
    TenMinutes,
    HalfHour,
    HalfDay,
    Day,
}

impl Lives for Keep {
    fn milliseconds(self) -> i64 {
        const MINUTE: i64 = 60_000;
        match self {
            Keep::TenMinutes => 10 * MINUTE,
            Keep::HalfHour => 30 * MINUTE,
            Keep::HalfDay => 12 * 60 * MINUTE,
            Keep::Day => 24 * 60 * MINUTE,
        }
    }
}

/// One block of the prompt.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub(crate) place: Place,
    /// The block, raw.
    pub(crate) raw: String,
    /// A breakpoint behind it.
    pub(crate) mark: Option<Keep>,
    /// Whether an item or a message of the request ends with it.
    pub(crate) ends_item: bool,
}

/// Blocks in the order of the request.
#[derive(Default)]
pub(crate) struct Pieces(pub(crate) Vec<Piece>);

impl Pieces {
    pub(crate) fn push(&mut self, place: Place, block: &Value, mark: Option<Keep>) {
        self.0.push(Piece { place, raw: block.to_string(), mark, ends_item: false });
    }

    /// An item of the request, or one of its messages, ends here.
    pub(crate) fn end_item(&mut self) {
        if let Some(piece) = self.0.last_mut() {
            piece.ends_item = true;
        }
    }

    /// The tools of a request, each read as its dialect spells it; all of them are one item.
    pub(crate) fn push_tools(
        &mut self,
        body: &Value,
        read: impl Fn(&Value, &str) -> Result<Value, Refusal>,
    ) -> Result<(), Refusal> {
        let Some(tools) = body.get("tools").filter(|tools| !tools.is_null()) else { return Ok(()) };
        let tools = tools.as_array().ok_or_else(|| Refusal::mistyped("tools", "an array of objects"))?;
        for (at, tool) in tools.iter().enumerate() {
            self.push(Place::Tool, &read(tool, &format!("tools[{at}]"))?, None);
        }
        self.end_item();
        Ok(())
    }
}

/// What a request says about the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CacheWish {
    /// A key that steers requests to one cache.
    pub(crate) key: String,
    /// Whether the end of the prompt is a breakpoint, too.
    pub(crate) is_implicit: bool,
    /// How long entries live.
    pub(crate) keep: Keep,
}

/// A request, read.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    pub(crate) model: String,
    pub(crate) pieces: Vec<Piece>,
    pub(crate) max_tokens: Option<u64>,
    pub(crate) streams: bool,
    pub(crate) stops: Vec<String>,
    pub(crate) wish: CacheWish,
    pub(crate) parameters: Parameters,
}

/// Parameters besides the prompt that the cache depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parameters {
    pub(crate) effort: String,
    pub(crate) format: String,
    pub(crate) verbosity: String,
    pub(crate) tier: String,
}

impl Turn {
    /// Whether the model reasons before it speaks.
    pub(crate) fn thinks(&self) -> bool {
        self.parameters.effort != "none"
    }

    /// The request as a model is asked it. What stands next to each other under one role is one message.
    pub(crate) fn ask(&self, max_tokens: u64) -> Ask<'_> {
        let of = |place: Place| {
            let there = self.pieces.iter().filter(move |piece| piece.place == place);
            there.map(|piece| Cow::Borrowed(piece.raw.as_str())).collect()
        };
        let mut messages: Vec<AskMessage<'_>> = Vec::new();
        for piece in &self.pieces {
            let Place::Message(role) = piece.place else { continue };
            if messages.last().is_none_or(|last| last.role != role) {
                messages.push(AskMessage { role, blocks: Vec::new() });
            }
            if let Some(message) = messages.last_mut() {
                message.blocks.push(Cow::Borrowed(&piece.raw));
            }
        }
        Ask {
            model: &self.model,
            system: of(Place::System),
            tools: of(Place::Tool),
            messages,
            max_tokens,
            thinks: self.thinks(),
            compaction: None,
        }
    }
}

/// The values of `reasoning.effort` and `reasoning_effort`.
pub(crate) const EFFORTS: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/// A member that must be a string if it is there.
pub(crate) fn string<'a>(object: &'a Value, name: &str, param: &str) -> Result<Option<&'a str>, Refusal> {
    match object.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(Refusal::mistyped(param, "a string")),
    }
}

/// A member that must be a string.
pub(crate) fn required<'a>(object: &'a Value, name: &str, param: &str) -> Result<&'a str, Refusal> {
    string(object, name, param)?.ok_or_else(|| Refusal::missing(param))
}

/// A member that is a whole number of at least `least`, if it is there.
pub(crate) fn count(body: &Value, name: &str, least: u64) -> Result<Option<u64>, Refusal> {
    match body.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_u64() {
            Some(count) if count >= least => Ok(Some(count)),
            _ if value.is_number() => Err(Refusal::invalid(
                "integer_below_min_value",
                name,
                format!(
                    "Invalid '{name}': integer below minimum value. Expected a value >= {least}, but got {value} instead."
                ),
            )),
            _ => Err(Refusal::mistyped(name, "an integer")),
        },
    }
}

/// What a request says about the cache, judged by what the model takes.
pub(crate) fn cache_wish(body: &Value, card: &Card) -> Result<CacheWish, Refusal> {
    let takes_breakpoints = card.caching == pal_model::Caching::Breakpoints;
    let key = string(body, "prompt_cache_key", "prompt_cache_key")?.unwrap_or_default().to_owned();
    let retention = string(body, "prompt_cache_retention", "prompt_cache_retention")?;
    let mut wish = CacheWish {
        key,
        is_implicit: true,
        keep: if takes_breakpoints { Keep::HalfHour } else { Keep::TenMinutes },
    };
    match retention {
        None => {}
        Some("24h") if !takes_breakpoints => wish.keep = Keep::Day,
        Some("24h") => {}
        Some("in_memory") if !takes_breakpoints && !card.model.starts_with("gpt-5.5") => {}
        Some("in_memory") => return Err(Refusal::not_among("prompt_cache_retention", "in_memory", &["24h"])),
        Some(other) => {
            return Err(Refusal::not_among("prompt_cache_retention", other, &["in_memory", "24h"]));
        }
    }
    let Some(options) = body.get("prompt_cache_options").filter(|options| !options.is_null()) else {
        return Ok(wish);
    };
    if !takes_breakpoints {
        return Err(Refusal::unsupported("prompt_cache_options"));
    }
    match string(options, "mode", "prompt_cache_options.mode")? {
        None | Some("implicit") => {}
        Some("explicit") => wish.is_implicit = false,
        Some(other) => {
            return Err(Refusal::not_among("prompt_cache_options.mode", other, &["implicit", "explicit"]));
        }
    }
    wish.keep = keep(options, "prompt_cache_options.ttl")?.unwrap_or(wish.keep);
    Ok(wish)
}

fn keep(options: &Value, param: &str) -> Result<Option<Keep>, Refusal> {
    match string(options, "ttl", param)? {
        None => Ok(None),
        Some("30m") => Ok(Some(Keep::HalfHour)),
        Some("12h") => Ok(Some(Keep::HalfDay)),
        Some(other) => Err(Refusal::not_among(param, other, &["30m", "12h"])),
    }
}

/// The breakpoint on a content part.
pub(crate) fn breakpoint(
    part: &Value,
    param: &str,
    card: &Card,
    wish: &CacheWish,
) -> Result<Option<Keep>, Refusal> {
    let Some(mark) = part.get("prompt_cache_breakpoint").filter(|mark| !mark.is_null()) else {
        return Ok(None);
    };
    let param = format!("{param}.prompt_cache_breakpoint");
    if card.caching != pal_model::Caching::Breakpoints {
        return Err(Refusal::unsupported(&param));
    }
    let mode = required(mark, "mode", &format!("{param}.mode"))?;
    if mode != "explicit" {
        return Err(Refusal::not_among(&format!("{param}.mode"), mode, &["explicit"]));
    }
    Ok(Some(keep(mark, &format!("{param}.ttl"))?.unwrap_or(wish.keep)))
}

/// A text block.
pub(crate) fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// An image block of an address, which may be the image itself.
pub(crate) fn image_block(url: &str) -> Value {
    json!({"type": "image", "source": source(url)})
}

/// A document block of an address, which may be the document itself.
pub(crate) fn document_block(url: &str, name: Option<&str>) -> Value {
    json!({"type": "document", "title": name, "source": source(url)})
}

fn source(url: &str) -> Value {
    let data = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    match data {
        Some((media_type, data)) => json!({"type": "base64", "media_type": media_type, "data": data}),
        None => json!({"type": "url", "url": url}),
    }
}

/// A call block. Arguments that are no object are kept as what they are.
pub(crate) fn call_block(id: &str, name: &str, arguments: &str) -> Value {
    let input = match serde_json::from_str::<Map<String, Value>>(arguments) {
        Ok(input) => Value::Object(input),
        Err(_) if arguments.trim().is_empty() => json!({}),
        Err(_) => json!({"arguments": arguments}),
    };
    json!({"type": "tool_use", "id": id, "name": name, "input": input})
}

/// A tool block of a function.
pub(crate) fn tool_block(function: &Value, param: &str) -> Result<Value, Refusal> {
    let name = required(function, "name", &format!("{param}.name"))?;
    let is_name = !name.is_empty()
        && name.len() <= 64
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if !is_name {
        let message = format!(
            "Invalid '{param}.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
        );
        return Err(Refusal::invalid("invalid_value", format!("{param}.name"), message));
    }
    let schema = match function.get("parameters") {
        None | Some(Value::Null) => json!({"type": "object", "properties": {}}),
        Some(schema) if schema.is_object() => schema.clone(),
        Some(_) => return Err(Refusal::mistyped(&format!("{param}.parameters"), "an object")),
    };
    let description = string(function, "description", &format!("{param}.description"))?;
    Ok(json!({"name": name, "description": description.unwrap_or_default(), "input_schema": schema}))
}
