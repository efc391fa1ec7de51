//! Encoding of log messages as input items.

use pal_model::{BlockType, ContentBlock, Role};

use crate::WireConversation;
use crate::chunk_writer::{ChunkWriter, CommaSeparator};
use crate::content_part::{
    ContentPart, MediaSource, block_as_text, content_parts, system_parts, tool_result_parts, write_joined,
};
use crate::conversation_message::{BREAKPOINT, ConversationMessage};
use crate::tool_function::{write_call, write_string, write_tools};

/// Writes the members before the items.
pub(crate) fn head(writer: &mut ChunkWriter, conversation: &WireConversation<'_>) {
    let instructions = system_parts(conversation.system);
    if !instructions.is_empty() {
        writer.raw(r#""instructions":"#);
        write_joined(writer, &instructions, r"\n\n");
        writer.raw(",");
    }
    write_tools(writer, conversation, |writer, function| {
        writer.raw(r#"{"type":"function","#);
        function.write(writer);
        // Strict mode would require changes to the schemas.
        writer.raw(r#","strict":false}"#);
    });
    writer.raw(r#""input":["#);
}

/// Writes the members after the items.
pub(crate) fn closing(writer: &mut ChunkWriter, conversation: &WireConversation<'_>, has_breakpoint: bool) {
    writer.raw(r#""max_output_tokens":"#);
    writer.raw(&conversation.max_tokens.to_string());
    writer.raw(r#","store":false,"include":["reasoning.encrypted_content"]"#);
    if let Some(effort) = conversation.effort {
        writer.raw(r#","reasoning":{"effort":"#);
        writer.quoted(effort);
        writer.raw("}");
    }
    if let Some(key) = conversation.cache_key {
        writer.raw(r#","prompt_cache_key":"#);
        writer.quoted(key);
    }
    if has_breakpoint {
        writer.raw(r#","prompt_cache_options":{"mode":"explicit"}"#);
    }
    writer.raw(if conversation.stream { r#","stream":true}"# } else { "}" });
}

/// Writes a message as items; nothing if all of its blocks are omitted.
pub(crate) fn message(writer: &mut ChunkWriter, message: &ConversationMessage<'_>) {
    let mut items = ItemWriter { writer, commas: CommaSeparator::default(), open: None, message };
    for (at, piece) in message.pieces.iter().enumerate() {
        let block = ContentBlock::parse(piece.block.clone());
        if message.role == Role::Assistant {
            items.model_block(&block);
        } else {
            items.user_block(&block, message.has_breakpoint(at));
        }
    }
    items.close();
}

/// Writer of input items.
struct ItemWriter<'a> {
    writer: &'a mut ChunkWriter,
    commas: CommaSeparator,
    /// Separator of an open `message` item's content.
    open: Option<CommaSeparator>,
    message: &'a ConversationMessage<'a>,
}

impl ItemWriter<'_> {
    fn user_block(&mut self, block: &ContentBlock, has_breakpoint: bool) {
        if block.kind() == BlockType::ToolResult {
            return self.result(block, has_breakpoint);
        }
        let parts = content_parts(block);
        let last = parts.len();
        for (at, part) in parts.iter().enumerate() {
            self.content(part, "input_text", has_breakpoint && at + 1 == last);
        }
    }

    fn result(&mut self, block: &ContentBlock, has_breakpoint: bool) {
        self.item();
        self.writer.raw(r#"{"type":"function_call_output","call_id":"#);
        write_string(self.writer, block, "tool_use_id");
        self.writer.raw(r#","output":"#);
        let parts = tool_result_parts(block);
        // Only list parts can have a breakpoint; the form of a result must not depend on whether it has one.
        if parts.is_empty() || (!self.message.has_breakpoints && parts.iter().all(ContentPart::is_text)) {
            write_joined(self.writer, &parts, r"\n");
        } else {
            self.writer.raw("[");
            for (at, part) in parts.iter().enumerate() {
                self.writer.raw(if at > 0 { "," } else { "" });
                self.part(part, "input_text", has_breakpoint && at + 1 == parts.len());
            }
            self.writer.raw("]");
        }
        self.writer.raw("}");
    }

    fn model_block(&mut self, block: &ContentBlock) {
        // A raw item is sent back unchanged.
        if let Some(item) = block.field("item").filter(|item| item.starts_with('{')) {
            self.item();
            return self.writer.shared(block.raw(), item);
        }
        match block.kind() {
            // Thinking of another provider's model is useless here.
            BlockType::Thinking | BlockType::RedactedThinking | BlockType::Reasoning => {}
            BlockType::ToolUse => {
                self.item();
                self.writer.raw(r#"{"type":"function_call","call_id":"#);
                write_string(self.writer, block, "id");
                self.writer.raw(",");
                write_call(self.writer, block);
                self.writer.raw("}");
            }
            BlockType::Text => {
                for part in content_parts(block) {
                    self.content(&part, "output_text", false);
                }
            }
            _ => self.content(&ContentPart::Text(block_as_text(block)), "output_text", false),
        }
    }

    /// Begins an item other than a message.
    fn item(&mut self) {
        self.close();
        self.commas.next(self.writer);
    }

    /// Writes a content part into the open message, or a new one.
    fn content(&mut self, part: &ContentPart, text_type: &str, has_breakpoint: bool) {
        let mut commas = match self.open.take() {
            Some(commas) => commas,
            None => {
                self.item();
                self.writer.raw(match self.message.role {
                    Role::User => r#"{"type":"message","role":"user","content":["#,
                    Role::System => r#"{"type":"message","role":"developer","content":["#,
                    Role::Assistant => r#"{"type":"message","role":"assistant","content":["#,
                });
                CommaSeparator::default()
            }
        };
        commas.next(self.writer);
        self.open = Some(commas);
        self.part(part, text_type, has_breakpoint);
    }

    fn part(&mut self, part: &ContentPart, text_type: &str, has_breakpoint: bool) {
        let writer = &mut *self.writer;
        match part {
            ContentPart::Literal(_) | ContentPart::Text(_) => {
                writer.raw(r#"{"type":""#);
                writer.raw(text_type);
                writer.raw(r#"","text":""#);
                part.write(writer);
            }
            ContentPart::Image(medium) => {
                writer.raw(r#"{"type":"input_image","detail":"auto","image_url":""#);
                medium.write_address(writer);
            }
            ContentPart::File(medium @ MediaSource::Data { .. }, name) => {
                writer.raw(r#"{"type":"input_file","filename":""#);
                writer.shared(name, name);
                writer.raw(r#"","file_data":""#);
                medium.write_address(writer);
            }
            ContentPart::File(medium, _) => {
                writer.raw(r#"{"type":"input_file","file_url":""#);
                medium.write_address(writer);
            }
        }
        writer.raw("\"");
        writer.raw(if has_breakpoint { BREAKPOINT } else { "" });
        writer.raw("}");
    }

    /// Ends the open message, if any.
    fn close(&mut self) {
        if self.open.take().is_some() {
            self.writer.raw("]}");
        }
    }
}
