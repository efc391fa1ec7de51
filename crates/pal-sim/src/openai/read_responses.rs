//! Reads a Responses request: items become blocks, and what does not fit is refused.

use pal_model::{Card, Role};
use serde_json::{Value, json};
use std::collections::BTreeSet;

use super::error::Refusal;
use super::turn::{
    CacheWish, EFFORTS, Parameters, Pieces, Place, Turn, breakpoint, cache_wish, call_block, count,
    document_block, image_block, required, string, text_block, tool_block,
};
use crate::seal::Sealer;

/// Least value of `max_output_tokens`.
const OUTPUT_LEAST: u64 = 16;

/// Items that are carried without being understood.
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

/// Reads a request for this model.
pub(crate) fn read(body: &Value, card: &Card, sealer: Sealer) -> Result<Turn, Refusal> {
    if let Some(previous) = string(body, "previous_response_id", "previous_response_id")? {
        let message = format!("Previous response with id '{previous}' not found.");
        return Err(Refusal::invalid("previous_response_not_found", "previous_response_id", message));
    }
    let wish = cache_wish(body, card)?;
    let mut reader = Reader { card, wish: &wish, sealer, pieces: Pieces::default() };
    reader.pieces.push_tools(body, tool)?;
    if let Some(instructions) = string(body, "instructions", "instructions")? {
        reader.pieces.push(Place::System, &text_block(instructions), None);
        reader.pieces.end_item();
    }
    match body.get("input") {
        None | Some(Value::Null) => return Err(Refusal::missing("input")),
        Some(Value::String(text)) => {
            reader.pieces.push(Place::Message(Role::User), &text_block(text), None);
            reader.pieces.end_item();
        }
        Some(Value::Array(items)) => reader.items(items)?,
        Some(_) => return Err(Refusal::mistyped("input", "a string or an array of objects")),
    }
    let reasoning = body.get("reasoning").unwrap_or(&Value::Null);
    let effort = string(reasoning, "effort", "reasoning.effort")?.unwrap_or("medium");
    if !EFFORTS.contains(&effort) {
        return Err(Refusal::not_among("reasoning.effort", effort, &EFFORTS));
    }
    let pieces = reader.pieces.0;
    Ok(Turn {
        model: card.model.to_string(),
        pieces,
        max_tokens: count(body, "max_output_tokens", OUTPUT_LEAST)?,
        streams: body.get("stream") == Some(&Value::Bool(true)),
        stops: Vec::new(),
        parameters: Parameters {
            effort: effort.to_owned(),
            format: body.pointer("/text/format").map(Value::to_string).unwrap_or_default(),
            verbosity: body.pointer("/text/verbosity").map(Value::to_string).unwrap_or_default(),
            tier: string(body, "service_tier", "service_tier")?.unwrap_or_default().to_owned(),
        },
        wish,
    })
}

struct Reader<'a> {
    card: &'a Card,
    wish: &'a CacheWish,
    sealer: Sealer,
    pieces: Pieces,
}

impl Reader<'_> {
    fn items(&mut self, items: &[Value]) -> Result<(), Refusal> {
        check_pairs(items)?;
        for (at, item) in items.iter().enumerate() {
            let param = format!("input[{at}]");
            if !item.is_object() {
                return Err(Refusal::mistyped(&param, "an object"));
            }
            match string(item, "type", &format!("{param}.type"))?.unwrap_or("message") {
                "message" => self.message(item, &param)?,
                "function_call" => {
                    let id = required(item, "call_id", &format!("{param}.call_id"))?;
                    let name = required(item, "name", &format!("{param}.name"))?;
                    let arguments = required(item, "arguments", &format!("{param}.arguments"))?;
                    self.pieces.push(Place::Message(Role::Assistant), &call_block(id, name, arguments), None);
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
                    self.pieces.push(Place::Message(role), item, None);
                }
                other => {
                    let known: Vec<&str> = ["message", "function_call", "function_call_output", "reasoning"]
                        .into_iter()
                        .chain(OPAQUE)
                        .collect();
                    return Err(Refusal::not_among(&format!("{param}.type"), other, &known));
                }
            }
            self.pieces.end_item();
        }
        Ok(())
    }

    fn message(&mut self, item: &Value, param: &str) -> Result<(), Refusal> {
        let role = match required(item, "role", &format!("{param}.role"))? {
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "system" | "developer" => Role::System,
            other => {
                let roles = ["assistant", "system", "developer", "user"];
                return Err(Refusal::not_among(&format!("{param}.role"), other, &roles));
            }
        };
        match item.get("content") {
            Some(Value::String(text)) => self.pieces.push(Place::Message(role), &text_block(text), None),
            Some(Value::Array(parts)) => {
                for (at, part) in parts.iter().enumerate() {
                    let param = format!("{param}.content[{at}]");
                    let block = content_block(part, &param, role == Role::Assistant)?;
                    let mark = breakpoint(part, &param, self.card, self.wish)?;
                    self.pieces.push(Place::Message(role), &block, mark);
                }
            }
            Some(Value::Null) | None => return Err(Refusal::missing(&format!("{param}.content"))),
            Some(_) => {
                return Err(Refusal::mistyped(
                    &format!("{param}.content"),
                    "a string or an array of objects",
                ));
            }
        }
        Ok(())
    }

    fn output(&mut self, item: &Value, param: &str) -> Result<(), Refusal> {
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
            Some(Value::Null) | None => return Err(Refusal::missing(&format!("{param}.output"))),
            Some(_) => {
                return Err(Refusal::mistyped(&format!("{param}.output"), "a string or an array of objects"));
            }
        };
        let block = json!({"type": "tool_result", "tool_use_id": id, "content": content});
        self.pieces.push(Place::Message(Role::User), &block, mark);
        Ok(())
    }

    /// Reasoning comes back encrypted, as it was given, before what it led to.
    fn reasoning(&mut self, items: &[Value], at: usize, param: &str) -> Result<(), Refusal> {
        let item = items.get(at).unwrap_or(&Value::Null);
        let id = required(item, "id", &format!("{param}.id"))?;
        let Some(encrypted) = string(item, "encrypted_content", &format!("{param}.encrypted_content"))?
        else {
            return Err(not_kept(id));
        };
        if self.sealer.read_thought(encrypted, "", 0).is_none() {
            let message = format!(
                "The encrypted content for item {id} could not be verified. Reason: Encrypted content could not be decrypted or parsed."
            );
            return Err(Refusal::invalid("invalid_encrypted_content", param, message));
        }
        let next = items.get(at + 1).and_then(|next| {
            let kind = next.get("type").and_then(Value::as_str).unwrap_or("message");
            let is_own = kind != "message" || next.get("role").and_then(Value::as_str) == Some("assistant");
            (is_own && !kind.ends_with("output")).then_some(kind)
        });
        if next.is_none() {
            let message =
                format!("Item '{id}' of type 'reasoning' was provided without its required following item.");
            return Err(Refusal { code: None, ..Refusal::invalid("", "input", message) });
        }
        let block = json!({"type": "thinking", "thinking": "", "signature": encrypted});
        self.pieces.push(Place::Message(Role::Assistant), &block, None);
        Ok(())
    }
}

fn not_kept(id: &str) -> Refusal {
    let message = format!(
        "Item with id '{id}' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input."
    );
    Refusal::not_found(None, "input", message)
}

/// Calls and outputs belong together, whatever stands between them.
fn check_pairs(items: &[Value]) -> Result<(), Refusal> {
    let ids = |kind: &'static str| {
        let there = items.iter().filter(move |item| item.get("type").and_then(Value::as_str) == Some(kind));
        there.filter_map(|item| item.get("call_id").and_then(Value::as_str))
    };
    let (called, answered): (BTreeSet<&str>, BTreeSet<&str>) =
        (ids("function_call").collect(), ids("function_call_output").collect());
    let wrong = |message| Err(Refusal { code: None, ..Refusal::invalid("", "input", message) });
    if let Some(id) = ids("function_call_output").find(|id| !called.contains(id)) {
        return wrong(format!("No tool call found for function call output with call_id {id}."));
    }
    if let Some(id) = ids("function_call").find(|id| !answered.contains(id)) {
        return wrong(format!("No tool output found for function call {id}."));
    }
    Ok(())
}

/// A content part as a block.
fn content_block(part: &Value, param: &str, is_output: bool) -> Result<Value, Refusal> {
    let kind = required(part, "type", &format!("{param}.type"))?;
    let refused = |allowed: &[&str]| Err(Refusal::not_among(&format!("{param}.type"), kind, allowed));
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

/// A tool as this dialect spells it. One that the provider runs is run by nobody here, but takes its place in the prompt.
fn tool(tool: &Value, param: &str) -> Result<Value, Refusal> {
    match required(tool, "type", &format!("{param}.type"))? {
        "function" => tool_block(tool, param),
        _ => Ok(tool.clone()),
    }
}
