//! Parses and validates a Chat Completions request: messages become blocks.

use pal_model::{ModelCard, Role};
use serde_json::{Value, json};

use super::openai_error::OpenAiError;
use super::openai_request::{
    BlockPlacement, CacheParameters, EFFORTS, OpenAiRequest, RequestBlocks, RequestCaching, breakpoint,
    call_block, count, document_block, image_block, parse_cache_options, required, string, text_block,
    tool_block,
};

/// Parses a request for this model.
pub(crate) fn read(body: &Value, card: &ModelCard) -> Result<OpenAiRequest, OpenAiError> {
    let wish = parse_cache_options(body, card)?;
    let mut reader = ChatReader { card, wish: &wish, pieces: RequestBlocks::default(), waiting: Vec::new() };
    reader.pieces.push_tools(body, tool)?;
    let messages = body.get("messages").filter(|messages| !messages.is_null());
    let messages = messages.ok_or_else(|| OpenAiError::missing("messages"))?;
    let messages =
        messages.as_array().ok_or_else(|| OpenAiError::mistyped("messages", "an array of objects"))?;
    if messages.is_empty() {
        let message = "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.";
        return Err(OpenAiError::invalid("empty_array", "messages", message));
    }
    for (at, message) in messages.iter().enumerate() {
        reader.message(message, &format!("messages[{at}]"))?;
    }
    reader.check_waiting(messages.len().saturating_sub(1))?;
    let effort = string(body, "reasoning_effort", "reasoning_effort")?.unwrap_or("medium");
    if !EFFORTS.contains(&effort) {
        return Err(OpenAiError::invalid_value("reasoning_effort", effort, &EFFORTS));
    }
    let stops = match body.get("stop") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::String(stop)) => vec![stop.clone()],
        Some(Value::Array(stops)) => {
            stops.iter().filter_map(|stop| stop.as_str().map(str::to_owned)).collect()
        }
        Some(_) => return Err(OpenAiError::mistyped("stop", "a string or an array of strings")),
    };
    let most = count(body, "max_completion_tokens", 1)?;
    let pieces = reader.pieces.0;
    Ok(OpenAiRequest {
        model: card.model.to_string(),
        pieces,
        max_tokens: match most {
            Some(most) => Some(most),
            None => count(body, "max_tokens", 1)?,
        },
        streams: body.get("stream") == Some(&Value::Bool(true)),
        stops,
        parameters: CacheParameters {
            effort: effort.to_owned(),
            format: body.get("response_format").map(Value::to_string).unwrap_or_default(),
            verbosity: body.get("verbosity").map(Value::to_string).unwrap_or_default(),
            tier: string(body, "service_tier", "service_tier")?.unwrap_or_default().to_owned(),
        },
        caching: wish,
    })
}

struct ChatReader<'a> {
    card: &'a ModelCard,
    wish: &'a RequestCaching,
    pieces: RequestBlocks,
    /// Calls of the last message without a result.
    waiting: Vec<String>,
}

impl ChatReader<'_> {
    fn message(&mut self, message: &Value, param: &str) -> Result<(), OpenAiError> {
        if !message.is_object() {
            return Err(OpenAiError::mistyped(param, "an object"));
        }
        let role = required(message, "role", &format!("{param}.role"))?;
        if role == "tool" {
            return self.result(message, param);
        }
        if !self.waiting.is_empty() {
            return Err(unanswered(&self.waiting, param));
        }
        let is_first = !self.pieces.0.iter().any(|piece| matches!(piece.place, BlockPlacement::Message(_)));
        match role {
            "system" | "developer" if is_first => self.content(BlockPlacement::System, message, param)?,
            "system" | "developer" => self.content(BlockPlacement::Message(Role::System), message, param)?,
            "user" => self.content(BlockPlacement::Message(Role::User), message, param)?,
            "assistant" => self.assistant(message, param)?,
            other => {
                let roles = ["system", "assistant", "user", "tool", "developer"];
                return Err(OpenAiError::invalid_value(&format!("{param}.role"), other, &roles));
            }
        }
        self.pieces.end_item();
        Ok(())
    }

    fn assistant(&mut self, message: &Value, param: &str) -> Result<(), OpenAiError> {
        let calls =
            message.get("tool_calls").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let says = message.get("content").is_some_and(|content| !content.is_null());
        if says {
            self.content(BlockPlacement::Message(Role::Assistant), message, param)?;
        } else if calls.is_empty() && message.get("refusal").is_none_or(Value::is_null) {
            return Err(OpenAiError::mistyped(&format!("{param}.content"), "a string"));
        }
        for (at, call) in calls.iter().enumerate() {
            let param = format!("{param}.tool_calls[{at}]");
            let id = required(call, "id", &format!("{param}.id"))?;
            let function =
                call.get("function").ok_or_else(|| OpenAiError::missing(&format!("{param}.function")))?;
            let name = required(function, "name", &format!("{param}.function.name"))?;
            let arguments = required(function, "arguments", &format!("{param}.function.arguments"))?;
            self.pieces.push(
                BlockPlacement::Message(Role::Assistant),
                &call_block(id, name, arguments),
                None,
            );
            self.waiting.push(id.to_owned());
        }
        Ok(())
    }

    fn result(&mut self, message: &Value, param: &str) -> Result<(), OpenAiError> {
        let id = required(message, "tool_call_id", &format!("{param}.tool_call_id"))?;
        let Some(at) = self.waiting.iter().position(|waiting| waiting == id) else {
            let text = "Invalid parameter: messages with role 'tool' must be a response to a preceding message with 'tool_calls'.";
            return Err(OpenAiError {
                code: None,
                ..OpenAiError::invalid("", format!("{param}.role"), text)
            });
        };
        self.waiting.remove(at);
        let mut mark = None;
        let content = match message.get("content") {
            Some(Value::String(text)) => Value::String(text.clone()),
            Some(Value::Array(parts)) => {
                let mut blocks = Vec::with_capacity(parts.len());
                for (at, part) in parts.iter().enumerate() {
                    let param = format!("{param}.content[{at}]");
                    let kind = required(part, "type", &format!("{param}.type"))?;
                    if kind != "text" {
                        return Err(OpenAiError::invalid_value(&format!("{param}.type"), kind, &["text"]));
                    }
                    blocks.push(content_block(part, &param)?);
                    mark = breakpoint(part, &param, self.card, self.wish)?.or(mark);
                }
                Value::Array(blocks)
            }
            _ => {
                return Err(OpenAiError::mistyped(
                    &format!("{param}.content"),
                    "a string or an array of objects",
                ));
            }
        };
        let block = json!({"type": "tool_result", "tool_use_id": id, "content": content});
        self.pieces.push(BlockPlacement::Message(Role::User), &block, mark);
        self.pieces.end_item();
        Ok(())
    }

    fn content(&mut self, place: BlockPlacement, message: &Value, param: &str) -> Result<(), OpenAiError> {
        match message.get("content") {
            Some(Value::String(text)) => self.pieces.push(place, &text_block(text), None),
            Some(Value::Array(parts)) => {
                for (at, part) in parts.iter().enumerate() {
                    let param = format!("{param}.content[{at}]");
                    let block = content_block(part, &param)?;
                    let mark = breakpoint(part, &param, self.card, self.wish)?;
                    self.pieces.push(place, &block, mark);
                }
            }
            _ => {
                return Err(OpenAiError::mistyped(
                    &format!("{param}.content"),
                    "a string or an array of objects",
                ));
            }
        }
        Ok(())
    }

    fn check_waiting(&self, last: usize) -> Result<(), OpenAiError> {
        if self.waiting.is_empty() {
            Ok(())
        } else {
            Err(unanswered(&self.waiting, &format!("messages[{last}]")))
        }
    }
}

fn unanswered(waiting: &[String], param: &str) -> OpenAiError {
    let message = format!(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: {}",
        waiting.join(", ")
    );
    OpenAiError { code: None, ..OpenAiError::invalid("", format!("{param}.role"), message) }
}

/// Converts a content part to a block.
fn content_block(part: &Value, param: &str) -> Result<Value, OpenAiError> {
    match required(part, "type", &format!("{param}.type"))? {
        "text" => Ok(text_block(required(part, "text", &format!("{param}.text"))?)),
        "refusal" => Ok(text_block(required(part, "refusal", &format!("{param}.refusal"))?)),
        "image_url" => {
            let image = part.get("image_url").unwrap_or(&Value::Null);
            Ok(image_block(required(image, "url", &format!("{param}.image_url.url"))?))
        }
        "file" => {
            let file = part.get("file").unwrap_or(&Value::Null);
            let name = string(file, "filename", &format!("{param}.file.filename"))?;
            match string(file, "file_data", &format!("{param}.file.file_data"))? {
                Some(data) => Ok(document_block(data, name)),
                None => {
                    let id = required(file, "file_id", &format!("{param}.file.file_id"))?;
                    Ok(json!({"type": "document", "source": {"type": "file", "file_id": id}}))
                }
            }
        }
        other => {
            let known = ["text", "image_url", "input_audio", "refusal", "audio", "file"];
            Err(OpenAiError::invalid_value(&format!("{param}.type"), other, &known))
        }
    }
}

/// Converts a tool definition; this dialect nests the function.
fn tool(tool: &Value, param: &str) -> Result<Value, OpenAiError> {
    let kind = required(tool, "type", &format!("{param}.type"))?;
    if kind != "function" {
        return Err(OpenAiError::invalid_value(&format!("{param}.type"), kind, &["function"]));
    }
    let param = format!("{param}.function");
    tool_block(tool.get("function").ok_or_else(|| OpenAiError::missing(&param))?, &param)
}
