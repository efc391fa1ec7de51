//! A parsed OpenAI request: blocks in Messages form, options and parameters.

use std::borrow::Cow;

use pal_model::{ModelCard, Role};
use serde_json::{Map, Value, json};

use super::openai_error::OpenAiError;
use crate::cache_entries::EntryLifetime;
use crate::{ModelPrompt, PromptMessage};

/// Position of a block in the prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockPlacement {
    Tool,
    System,
    Message(Role),
}

/// Minimum cache TTLs of OpenAI models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum OpenAiCacheTtl {
    TenMinutes,
    HalfHour,
    HalfDay,
    Day,
}

impl EntryLifetime for OpenAiCacheTtl {
    fn milliseconds(self) -> i64 {
        const MINUTE: i64 = 60_000;
        match self {
            OpenAiCacheTtl::TenMinutes => 10 * MINUTE,
            OpenAiCacheTtl::HalfHour => 30 * MINUTE,
            OpenAiCacheTtl::HalfDay => 12 * 60 * MINUTE,
            OpenAiCacheTtl::Day => 24 * 60 * MINUTE,
        }
    }
}

/// One block of the prompt.
#[derive(Clone, Debug)]
pub(crate) struct RequestBlock {
    pub(crate) place: BlockPlacement,
    /// Raw JSON.
    pub(crate) raw: String,
    /// Breakpoint after it.
    pub(crate) mark: Option<OpenAiCacheTtl>,
    /// True if it ends an item or a message of the request.
    pub(crate) ends_item: bool,
}

/// Blocks in request order.
#[derive(Default)]
pub(crate) struct RequestBlocks(pub(crate) Vec<RequestBlock>);

impl RequestBlocks {
    pub(crate) fn push(&mut self, place: BlockPlacement, block: &Value, mark: Option<OpenAiCacheTtl>) {
        self.0.push(RequestBlock { place, raw: block.to_string(), mark, ends_item: false });
    }

    /// Ends an item or a message of the request.
    pub(crate) fn end_item(&mut self) {
        if let Some(piece) = self.0.last_mut() {
            piece.ends_item = true;
        }
    }

    /// Adds the tools of a request, parsed by `read`; all of them are one item.
    pub(crate) fn push_tools(
        &mut self,
        body: &Value,
        read: impl Fn(&Value, &str) -> Result<Value, OpenAiError>,
    ) -> Result<(), OpenAiError> {
        let Some(tools) = body.get("tools").filter(|tools| !tools.is_null()) else { return Ok(()) };
        let tools = tools.as_array().ok_or_else(|| OpenAiError::mistyped("tools", "an array of objects"))?;
        for (at, tool) in tools.iter().enumerate() {
            self.push(BlockPlacement::Tool, &read(tool, &format!("tools[{at}]"))?, None);
        }
        self.end_item();
        Ok(())
    }
}

/// Cache options of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestCaching {
    /// Key that routes requests to one cache.
    pub(crate) key: String,
    /// True if the end of the prompt is a breakpoint too.
    pub(crate) is_implicit: bool,
    /// TTL of entries.
    pub(crate) ttl: OpenAiCacheTtl,
}

/// A parsed request.
#[derive(Clone, Debug)]
pub(crate) struct OpenAiRequest {
    pub(crate) model: String,
    pub(crate) pieces: Vec<RequestBlock>,
    pub(crate) max_tokens: Option<u64>,
    pub(crate) streams: bool,
    pub(crate) stops: Vec<String>,
    pub(crate) caching: RequestCaching,
    pub(crate) parameters: CacheParameters,
}

/// Parameters besides the prompt that the cache depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CacheParameters {
    pub(crate) effort: String,
    pub(crate) format: String,
    pub(crate) verbosity: String,
    pub(crate) tier: String,
}

impl OpenAiRequest {
    /// True if the model reasons before it answers.
    pub(crate) fn thinks(&self) -> bool {
        self.parameters.effort != "none"
    }

    /// The request as the model sees it. Consecutive blocks of one role form one message.
    pub(crate) fn to_model_prompt(&self, max_tokens: u64) -> ModelPrompt<'_> {
        let of = |place: BlockPlacement| {
            let there = self.pieces.iter().filter(move |piece| piece.place == place);
            there.map(|piece| Cow::Borrowed(piece.raw.as_str())).collect()
        };
        let mut messages: Vec<PromptMessage<'_>> = Vec::new();
        for piece in &self.pieces {
            let BlockPlacement::Message(role) = piece.place else { continue };
            if messages.last().is_none_or(|last| last.role != role) {
                messages.push(PromptMessage { role, blocks: Vec::new() });
            }
            if let Some(message) = messages.last_mut() {
                message.blocks.push(Cow::Borrowed(&piece.raw));
            }
        }
        ModelPrompt {
            model: &self.model,
            system: of(BlockPlacement::System),
            tools: of(BlockPlacement::Tool),
            messages,
            max_tokens,
            thinks: self.thinks(),
            compaction: None,
        }
    }
}

/// Values of `reasoning.effort` and `reasoning_effort`.
pub(crate) const EFFORTS: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/// Optional string member.
pub(crate) fn string<'a>(object: &'a Value, name: &str, param: &str) -> Result<Option<&'a str>, OpenAiError> {
    match object.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(OpenAiError::mistyped(param, "a string")),
    }
}

/// Required string member.
pub(crate) fn required<'a>(object: &'a Value, name: &str, param: &str) -> Result<&'a str, OpenAiError> {
    string(object, name, param)?.ok_or_else(|| OpenAiError::missing(param))
}

/// Optional integer member of at least `least`.
pub(crate) fn count(body: &Value, name: &str, least: u64) -> Result<Option<u64>, OpenAiError> {
    match body.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_u64() {
            Some(count) if count >= least => Ok(Some(count)),
            _ if value.is_number() => Err(OpenAiError::invalid(
                "integer_below_min_value",
                name,
                format!(
                    "Invalid '{name}': integer below minimum value. Expected a value >= {least}, but got {value} instead."
                ),
            )),
            _ => Err(OpenAiError::mistyped(name, "an integer")),
        },
    }
}

/// Parses the cache options and validates them for the model.
pub(crate) fn parse_cache_options(body: &Value, card: &ModelCard) -> Result<RequestCaching, OpenAiError> {
    let takes_breakpoints = card.caching == pal_model::CacheMode::Hybrid;
    let key = string(body, "prompt_cache_key", "prompt_cache_key")?.unwrap_or_default().to_owned();
    let retention = string(body, "prompt_cache_retention", "prompt_cache_retention")?;
    let mut wish = RequestCaching {
        key,
        is_implicit: true,
        ttl: if takes_breakpoints { OpenAiCacheTtl::HalfHour } else { OpenAiCacheTtl::TenMinutes },
    };
    match retention {
        None => {}
        Some("24h") if !takes_breakpoints => wish.ttl = OpenAiCacheTtl::Day,
        Some("24h") => {}
        Some("in_memory") if !takes_breakpoints && !card.model.starts_with("gpt-5.5") => {}
        Some("in_memory") => {
            return Err(OpenAiError::invalid_value("prompt_cache_retention", "in_memory", &["24h"]));
        }
        Some(other) => {
            return Err(OpenAiError::invalid_value("prompt_cache_retention", other, &["in_memory", "24h"]));
        }
    }
    let Some(options) = body.get("prompt_cache_options").filter(|options| !options.is_null()) else {
        return Ok(wish);
    };
    if !takes_breakpoints {
        return Err(OpenAiError::unsupported("prompt_cache_options"));
    }
    match string(options, "mode", "prompt_cache_options.mode")? {
        None | Some("implicit") => {}
        Some("explicit") => wish.is_implicit = false,
        Some(other) => {
            return Err(OpenAiError::invalid_value(
                "prompt_cache_options.mode",
                other,
                &["implicit", "explicit"],
            ));
        }
    }
    wish.ttl = parse_ttl(options, "prompt_cache_options.ttl")?.unwrap_or(wish.ttl);
    Ok(wish)
}

fn parse_ttl(options: &Value, param: &str) -> Result<Option<OpenAiCacheTtl>, OpenAiError> {
    match string(options, "ttl", param)? {
        None => Ok(None),
        Some("30m") => Ok(Some(OpenAiCacheTtl::HalfHour)),
        Some("12h") => Ok(Some(OpenAiCacheTtl::HalfDay)),
        Some(other) => Err(OpenAiError::invalid_value(param, other, &["30m", "12h"])),
    }
}

/// Breakpoint on a content part.
pub(crate) fn breakpoint(
    part: &Value,
    param: &str,
    card: &ModelCard,
    wish: &RequestCaching,
) -> Result<Option<OpenAiCacheTtl>, OpenAiError> {
    let Some(mark) = part.get("prompt_cache_breakpoint").filter(|mark| !mark.is_null()) else {
        return Ok(None);
    };
    let param = format!("{param}.prompt_cache_breakpoint");
    if card.caching != pal_model::CacheMode::Hybrid {
        return Err(OpenAiError::unsupported(&param));
    }
    let mode = required(mark, "mode", &format!("{param}.mode"))?;
    if mode != "explicit" {
        return Err(OpenAiError::invalid_value(&format!("{param}.mode"), mode, &["explicit"]));
    }
    Ok(Some(parse_ttl(mark, &format!("{param}.ttl"))?.unwrap_or(wish.ttl)))
}

/// Builds a text block.
pub(crate) fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// Builds an image block from a URL, which may be a data URL.
pub(crate) fn image_block(url: &str) -> Value {
    json!({"type": "image", "source": source(url)})
}

/// Builds a document block from a URL, which may be a data URL.
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

/// Builds a call block. Arguments that are not an object are wrapped.
pub(crate) fn call_block(id: &str, name: &str, arguments: &str) -> Value {
    let input = match serde_json::from_str::<Map<String, Value>>(arguments) {
        Ok(input) => Value::Object(input),
        Err(_) if arguments.trim().is_empty() => json!({}),
        Err(_) => json!({"arguments": arguments}),
    };
    json!({"type": "tool_use", "id": id, "name": name, "input": input})
}

/// Builds a tool block from a function.
pub(crate) fn tool_block(function: &Value, param: &str) -> Result<Value, OpenAiError> {
    let name = required(function, "name", &format!("{param}.name"))?;
    let is_name = !name.is_empty()
        && name.len() <= 64
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if !is_name {
        let message = format!(
            "Invalid '{param}.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
        );
        return Err(OpenAiError::invalid("invalid_value", format!("{param}.name"), message));
    }
    let schema = match function.get("parameters") {
        None | Some(Value::Null) => json!({"type": "object", "properties": {}}),
        Some(schema) if schema.is_object() => schema.clone(),
        Some(_) => return Err(OpenAiError::mistyped(&format!("{param}.parameters"), "an object")),
    };
    let description = string(function, "description", &format!("{param}.description"))?;
    Ok(json!({"name": name, "description": description.unwrap_or_default(), "input_schema": schema}))
}
