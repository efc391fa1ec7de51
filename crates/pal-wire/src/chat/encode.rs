//! Encoding of log messages as chat messages.

use pal_model::{BlockType, ContentBlock, Role};

use crate::WireConversation;
use crate::chunk_writer::{ChunkWriter, CommaSeparator};
use crate::content_part::{
    ContentPart, MediaSource, block_as_text, content_parts, system_parts, tool_result_parts, write_joined,
};
use crate::conversation_message::{BREAKPOINT, ConversationMessage};
use crate::tool_function::{write_call, write_string, write_tools};

/// Server that a Chat Completions request is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChatServer {
    /// OpenAI: role `developer` for operators, `max_completion_tokens` for the output limit.
    OpenAi,
    /// Compatible server (Ollama, llama.cpp, vLLM …): `system` and `max_tokens`, and plain strings for text-only content.
    Compatible,
}

/// Writes the members before the messages, and the system prompt as the first message.
pub(crate) fn head(writer: &mut ChunkWriter, conversation: &WireConversation<'_>, server: ChatServer) {
    write_tools(writer, conversation, |writer, function| {
        writer.raw(r#"{"type":"function","function":{"#);
        function.write(writer);
        writer.raw("}}");
    });
    writer.raw(r#""messages":["#);
    if !conversation.system.is_empty() {
        writer.raw(r#"{"role":"#);
        writer.quoted(operator(server));
        writer.raw(r#","content":"#);
        write_joined(writer, &system_parts(conversation.system), r"\n\n");
        writer.raw("}");
    }
}

/// Writes the members after the messages.
pub(crate) fn closing(
    writer: &mut ChunkWriter,
    conversation: &WireConversation<'_>,
    server: ChatServer,
    has_breakpoint: bool,
) {
    writer.raw(match server {
        ChatServer::OpenAi => r#""max_completion_tokens":"#,
        ChatServer::Compatible => r#""max_tokens":"#,
    });
    writer.raw(&conversation.max_tokens.to_string());
    if let Some(effort) = conversation.effort {
        writer.raw(r#","reasoning_effort":"#);
        writer.quoted(effort);
    }
    if server == ChatServer::OpenAi {
        writer.raw(r#","store":false"#);
        if let Some(key) = conversation.cache_key {
            writer.raw(r#","prompt_cache_key":"#);
            writer.quoted(key);
        }
        if has_breakpoint {
            writer.raw(r#","prompt_cache_options":{"mode":"explicit"}"#);
        }
    }
    writer.raw(if conversation.stream {
        r#","stream":true,"stream_options":{"include_usage":true}}"#
    } else {
        "}"
    });
}

/// Writes a message; nothing if all of its blocks are omitted.
pub(crate) fn message(writer: &mut ChunkWriter, message: &ConversationMessage<'_>, server: ChatServer) {
    match message.role {
        Role::Assistant => model_message(writer, message),
        Role::User => user_message(writer, message, "user"),
        Role::System => user_message(writer, message, operator(server)),
    }
}

/// Role of operator messages.
fn operator(server: ChatServer) -> &'static str {
    match server {
        ChatServer::OpenAi => "developer",
        ChatServer::Compatible => "system",
    }
}

/// Writes tool results first, each as its own message, because they must directly follow their calls; the rest becomes
/// one message after them.
fn user_message(writer: &mut ChunkWriter, message: &ConversationMessage<'_>, role: &str) {
    let mut commas = CommaSeparator::default();
    let mut rest: Vec<(ContentPart, bool)> = Vec::new();
    for (at, piece) in message.pieces.iter().enumerate() {
        let block = ContentBlock::parse(piece.block.clone());
        let has_breakpoint = message.has_breakpoint(at);
        let parts = if block.kind() == BlockType::ToolResult {
            commas.next(writer);
            result(writer, &block, message, has_breakpoint)
        } else {
            content_parts(&block)
        };
        let last = parts.len();
        rest.extend(parts.into_iter().enumerate().map(|(at, part)| (part, has_breakpoint && at + 1 == last)));
    }
    if rest.is_empty() {
        return;
    }
    commas.next(writer);
    writer.raw(r#"{"role":"#);
    writer.quoted(role);
    writer.raw(r#","content":"#);
    content(writer, &rest, message.has_breakpoints);
    writer.raw("}");
}

/// Writes a tool result as a message and returns its media parts, since tool messages accept only text.
fn result(
    writer: &mut ChunkWriter,
    block: &ContentBlock,
    message: &ConversationMessage<'_>,
    has_breakpoint: bool,
) -> Vec<ContentPart> {
    let (words, mut media): (Vec<ContentPart>, Vec<ContentPart>) =
        tool_result_parts(block).into_iter().partition(ContentPart::is_text);
    let mut words: Vec<(ContentPart, bool)> = words.into_iter().map(|part| (part, false)).collect();
    if !media.is_empty() {
        words.push((ContentPart::Text(String::from("[what else it returned follows the results]")), false));
        let id = block.string("tool_use_id").unwrap_or_default();
        media.insert(0, ContentPart::Text(format!("[from the result of {id}]")));
    } else if let Some(last) = words.last_mut() {
        last.1 = has_breakpoint;
    }
    writer.raw(r#"{"role":"tool","tool_call_id":"#);
    write_string(writer, block, "tool_use_id");
    writer.raw(r#","content":"#);
    content(writer, &words, message.has_breakpoints);
    writer.raw("}");
    media
}

/// Writes content: a string if it is text only and breakpoints are not used.
fn content(writer: &mut ChunkWriter, parts: &[(ContentPart, bool)], has_breakpoints: bool) {
    if parts.is_empty() || (!has_breakpoints && parts.iter().all(|(part, _)| part.is_text())) {
        let words: Vec<ContentPart> = parts.iter().map(|(part, _)| part.clone()).collect();
        return write_joined(writer, &words, r"\n");
    }
    let mut commas = CommaSeparator::default();
    writer.raw("[");
    for (part, has_breakpoint) in parts {
        commas.next(writer);
        write_part(writer, part);
        writer.raw(if *has_breakpoint { BREAKPOINT } else { "" });
        writer.raw("}");
    }
    writer.raw("]");
}

/// Writes a content part without its closing brace.
fn write_part(writer: &mut ChunkWriter, part: &ContentPart) {
    match part {
        ContentPart::Image(medium) => {
            writer.raw(r#"{"type":"image_url","image_url":{"url":""#);
            medium.write_address(writer);
            writer.raw(r#""}"#);
        }
        ContentPart::File(medium @ MediaSource::Data { .. }, name) => {
            writer.raw(r#"{"type":"file","file":{"filename":""#);
            writer.shared(name, name);
            writer.raw(r#"","file_data":""#);
            medium.write_address(writer);
            writer.raw(r#""}"#);
        }
        // This dialect accepts no file URLs, so the URL is written as text.
        ContentPart::Literal(_) | ContentPart::Text(_) | ContentPart::File(MediaSource::Address(_), _) => {
            writer.raw(r#"{"type":"text","text":""#);
            part.write(writer);
            writer.raw("\"");
        }
    }
}

/// Writes model output: text in one string, tool calls in one list. Reasoning is omitted.
fn model_message(writer: &mut ChunkWriter, message: &ConversationMessage<'_>) {
    let blocks: Vec<ContentBlock> =
        message.pieces.iter().map(|piece| ContentBlock::parse(piece.block.clone())).collect();
    let mut words: Vec<ContentPart> = Vec::new();
    for block in &blocks {
        match block.kind() {
            BlockType::Thinking | BlockType::RedactedThinking | BlockType::Reasoning | BlockType::ToolUse => {
            }
            BlockType::Text => words.extend(content_parts(block)),
            _ => words.push(ContentPart::Text(block_as_text(block))),
        }
    }
    let mut calls = blocks.iter().filter(|block| block.kind() == BlockType::ToolUse).peekable();
    if words.is_empty() && calls.peek().is_none() {
        return;
    }
    writer.raw(r#"{"role":"assistant","content":"#);
    write_joined(writer, &words, r"\n\n");
    let mut commas = CommaSeparator::default();
    for call in calls {
        writer.raw(if commas.is_first() { r#","tool_calls":["# } else { "" });
        commas.next(writer);
        writer.raw(r#"{"id":"#);
        write_string(writer, call, "id");
        writer.raw(r#","type":"function","function":{"#);
        write_call(writer, call);
        writer.raw("}}");
    }
    writer.raw(if commas.is_first() { "}" } else { "]}" });
}
