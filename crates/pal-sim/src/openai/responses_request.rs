//! Parses and validates a Responses request: items become blocks.

use pal_model::{ModelCard, Role};
use serde_json::{Value, json};
use std::collections::BTreeSet;

use super::openai_error::OpenAiError;
use super::openai_request::{
    BlockPlacement, CacheParameters, EFFORTS, OpenAiRequest, RequestBlocks, RequestCaching, breakpoint,
    call_block, count, document_block, image_block, parse_cache_options, required, string, text_block,
    tool_block,
};
use crate::block_signatures::BlockSigner;

/// Minimum of `max_output_tokens`.
const OUTPUT_MIN: u64 = 16;

/// Item types that are passed through unparsed.
const OPAQUE: [&str; 9] = [
    "compaction",
    "custom_tool_call",
    "custom_tool_call_output",
    "tool_search_call",
    "tool_search_output",
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
    "additional_tools",
];

/// Parses a request for this model.
pub(crate) fn read(
    body: &Value,
    card: &ModelCard,
    sealer: BlockSigner,
) -> Result<OpenAiRequest, OpenAiError> {
    if let Some(previous) = string(body, "previous_response_id", "previous_response_id")? {
        let message = format!("Previous response with id '{previous}' not found.");
        return Err(OpenAiError::invalid("previous_response_not_found", "previous_response_id", message));
    }
    let wish = parse_cache_options(body, card)?;
    let mut reader = ResponsesReader { card, wish: &wish, sealer, pieces: RequestBlocks::default() };
    reader.pieces.push_tools(body, tool)?;
    if let Some(instructions) = string(body, "instructions", "instructions")? {
        reader.pieces.push(BlockPlacement::System, &text_block(instructions), None);
        reader.pieces.end_item();
    }
    match body.get("input") {
        None | Some(Value::Null) => return Err(OpenAiError::missing("input")),
        Some(Value::String(text)) => {
            reader.pieces.push(BlockPlacement::Message(Role::User), &text_block(text), None);
            reader.pieces.end_item();
        }
        Some(Value::Array(items)) => reader.items(items)?,
        Some(_) => return Err(OpenAiError::mistyped("input", "a string or an array of objects")),
    }
    let reasoning = body.get("reasoning").unwrap_or(&Value::Null);
    let effort = string(reasoning, "effort", "reasoning.effort")?.unwrap_or("medium");
    if !EFFORTS.contains(&effort) {
        return Err(OpenAiError::invalid_value("reasoning.effort", effort, &EFFORTS));
    }
    let pieces = reader.pieces.0;
    Ok(OpenAiRequest {
        model: card.model.to_string(),
        pieces,
        max_tokens: count(body, "max_output_tokens", OUTPUT_MIN)?,
        streams: body.get("stream") == Some(&Value::Bool(true)),
        stops: Vec::new(),
        parameters: CacheParameters {
            effort: effort.to_owned(),
            format: body.pointer("/text/format").map(Value::to_string).unwrap_or_default(),
            verbosity: body.pointer("/text/verbosity").map(Value::to_string).unwrap_or_default(),
            tier: string(body, "service_tier", "service_tier")?.unwrap_or_default().to_owned(),
        },
        caching: wish,
    })
}

struct ResponsesReader<'a> {
    card: &'a ModelCard,
    wish: &'a RequestCaching,
    sealer: BlockSigner,
    pieces: RequestBlocks,
}

impl ResponsesReader<'_> {
    fn items(&mut self, items: &[Value]) -> Result<(), OpenAiError> {
        check_pairs(items)?;
        for (at, item) in items.iter().enumerate() {
            let param = format!("input[{at}]");
            if !item.is_object() {
                return Err(OpenAiError::mistyped(&param, "an object"));
            }
            match string(item, "type", &format!("{param}.type"))?.unwrap_or("message") {
                "message" => self.message(item, &param)?,
                "function_call" => {
                    let id = required(item, "call_id", &format!("{param}.call_id"))?;
                    let name = required(item, "name", &format!("{param}.name"))?;
                    let arguments = required(item, "arguments", &format!("{param}.arguments"))?;
                    self.pieces.push(
                        BlockPlacement::Message(Role::Assistant),
                        &call_block(id, name, arguments),
                        None,
                    );
                }
                "function_call_output" => self.output(item, &param)?,
                "reasoning" => self.reasoning(items, at, &param)?,
                "item_reference" => {
                    let id = required(item, "id", &format!("{param}.id"))?;
                    return Err(not_kept(id));
                }
                other if OPAQUE.contains(&other) => {
                    let role = if other.ends_with("output") || other == "additional_tools" {
                        Role::User
                    } else {
                        Role::Assistant
                    };
                    self.pieces.push(BlockPlacement::Message(role), item, None);
                }
                other => {
                    let known: Vec<&str> = ["message", "function_call", "function_call_output", "reasoning"]
                        .into_iter()
                        .chain(OPAQUE)
                        .collect();
                    return Err(OpenAiError::invalid_value(&format!("{param}.type"), other, &known));
                }
            }
            self.pieces.end_item();
        }
        Ok(())
    }

    fn message(&mut self, item: &Value, param: &str) -> Result<(), OpenAiError> {
        let role = match required(item, "role", &format!("{param}.role"))? {
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "system" | "developer" => Role::System,
            other => {
                let roles = ["assistant", "system", "developer", "user"];
                return Err(OpenAiError::invalid_value(&format!("{param}.role"), other, &roles));
            }
        };
        match item.get("content") {
            Some(Value::String(text)) => {
                self.pieces.push(BlockPlacement::Message(role), &text_block(text), None)
            }
            Some(Value::Array(parts)) => {
                for (at, part) in parts.iter().enumerate() {
                    let param = format!("{param}.content[{at}]");
                    let block = content_block(part, &param, role == Role::Assistant)?;
                    let mark = breakpoint(part, &param, self.card, self.wish)?;
                    self.pieces.push(BlockPlacement::Message(role), &block, mark);
                }
            }
            Some(Value::Null) | None => return Err(OpenAiError::missing(&format!("{param}.content"))),
            Some(_) => {
                return Err(OpenAiError::mistyped(
                    &format!("{param}.content"),
                    "a string or an array of objects",
                ));
            }
        }
        Ok(())
    }

    fn output(&mut self, item: &Value, param: &str) -> Result<(), OpenAiError> {
        let id = required(item, "call_id", &format!("{param}.call_id"))?;
        let mut mark = None;
        let content = match item.get("output") {
            Some(Value::String(text)) => Value::String(text.clone()),
            Some(Value::Array(parts)) => {
                let mut blocks = Vec::with_capacity(parts.len());
                for (at, part) in parts.iter().enumerate() {
                    let param = format!("{param}.output[{at}]");
                    blocks.push(content_block(part, &param, false)?);
                    mark = breakpoint(part, &param, self.card, self.wish)?.or(mark);
                }
                Value::Array(blocks)
            }
            Some(Value::Null) | None => return Err(OpenAiError::missing(&format!("{param}.output"))),
            Some(_) => {
                return Err(OpenAiError::mistyped(
                    &format!("{param}.output"),
                    "a string or an array of objects",
                ));
            }
        };
        let block = json!({"type": "tool_result", "tool_use_id": id, "content": content});
        self.pieces.push(BlockPlacement::Message(Role::User), &block, mark);
        Ok(())
    }

    /// Checks returned reasoning: encrypted as sent, and followed by the item it led to.
    fn reasoning(&mut self, items: &[Value], at: usize, param: &str) -> Result<(), OpenAiError> {
        let item = items.get(at).unwrap_or(&Value::Null);
        let id = required(item, "id", &format!("{param}.id"))?;
        let Some(encrypted) = string(item, "encrypted_content", &format!("{param}.encrypted_content"))?
        else {
            return Err(not_kept(id));
        };
        if self.sealer.verify_thinking(encrypted, "", 0).is_none() {
            let message = format!(
                "The encrypted content for item {id} could not be verified. Reason: Encrypted content could not be decrypted or parsed."
            );
            return Err(OpenAiError::invalid("invalid_encrypted_content", param, message));
        }
        let next = items.get(at + 1).and_then(|next| {
            let kind = next.get("type").and_then(Value::as_str).unwrap_or("message");
            let is_own = kind != "message" || next.get("role").and_then(Value::as_str) == Some("assistant");
            (is_own && !kind.ends_with("output")).then_some(kind)
        });
        if next.is_none() {
            let message =
                format!("Item '{id}' of type 'reasoning' was provided without its required following item.");
            return Err(OpenAiError { code: None, ..OpenAiError::invalid("", "input", message) });
        }
        let block = json!({"type": "thinking", "thinking": "", "signature": encrypted});
        self.pieces.push(BlockPlacement::Message(Role::Assistant), &block, None);
        Ok(())
    }
}

fn not_kept(id: &str) -> OpenAiError {
    let message = format!(
        "Item with id '{id}' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input."
    );
    OpenAiError::not_found(None, "input", message)
}

/// Checks that calls and outputs are paired, in any order.
fn check_pairs(items: &[Value]) -> Result<(), OpenAiError> {
    let ids = |kind: &'static str| {
        let there = items.iter().filter(move |item| item.get("type").and_then(Value::as_str) == Some(kind));
        there.filter_map(|item| item.get("call_id").and_then(Value::as_str))
    };
    let (called, answered): (BTreeSet<&str>, BTreeSet<&str>) =
        (ids("function_call").collect(), ids("function_call_output").collect());
    let wrong = |message| Err(OpenAiError { code: None, ..OpenAiError::invalid("", "input", message) });
    if let Some(id) = ids("function_call_output").find(|id| !called.contains(id)) {
        return wrong(format!("No tool call found for function call output with call_id {id}."));
    }
    if let Some(id) = ids("function_call").find(|id| !answered.contains(id)) {
        return wrong(format!("No tool output found for function call {id}."));
    }
    Ok(())
}

/// Converts a content part to a block.
fn content_block(part: &Value, param: &str, is_output: bool) -> Result<Value, OpenAiError> {
    let kind = required(part, "type", &format!("{param}.type"))?;
    let refused = |allowed: &[&str]| Err(OpenAiError::invalid_value(&format!("{param}.type"), kind, allowed));
    match (kind, is_output) {
        ("output_text", true) | ("input_text", false) => {
            Ok(text_block(required(part, "text", &format!("{param}.text"))?))
        }
        ("refusal", true) => Ok(text_block(required(part, "refusal", &format!("{param}.refusal"))?)),
        ("input_image", false) => match string(part, "image_url", &format!("{param}.image_url"))? {
            Some(url) => Ok(image_block(url)),
            None => {
                let id = required(part, "file_id", &format!("{param}.image_url"))?;
                Ok(json!({"type": "image", "source": {"type": "file", "file_id": id}}))
            }
        },
        ("input_file", false) => {
            let name = string(part, "filename", &format!("{param}.filename"))?;
            let data = string(part, "file_data", &format!("{param}.file_data"))?;
            match data.or(string(part, "file_url", &format!("{param}.file_url"))?) {
                Some(url) => Ok(document_block(url, name)),
                None => {
                    let id = required(part, "file_id", &format!("{param}.file_data"))?;
                    Ok(json!({"type": "document", "source": {"type": "file", "file_id": id}}))
                }
            }
        }
        (_, true) => refused(&["output_text", "refusal"]),
        (_, false) => refused(&["input_text", "input_image", "input_file"]),
    }
}

/// Converts a tool definition. Provider-run tools are not executed here but stay in the prompt.
fn tool(tool: &Value, param: &str) -> Result<Value, OpenAiError> {
    match required(tool, "type", &format!("{param}.type"))? {
        "function" => tool_block(tool, param),
        _ => Ok(tool.clone()),
    }
}
