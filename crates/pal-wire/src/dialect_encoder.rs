//! Encoding for OpenAI's Responses and Chat Completions, the dialects that differ from the log's own form.
//!
//! An encoder keeps its output. Blocks are compared with those of the last request, and only those after the common
//! prefix are encoded again. The result is byte for byte that of a new encoder.

use pal_model::{ChunkedText, SharedText};

use crate::chat::ChatServer;
use crate::chunk_writer::ChunkWriter;
use crate::conversation_message::{BreakpointMode, group_messages};
use crate::encoded_messages::EncodedMessages;
use crate::{ApiCall, Dialect, WireConversation, chat, responses};

/// Encodes the conversation of one session in one dialect.
#[derive(Debug)]
pub struct DialectEncoder {
    target: TargetDialect,
    breakpoints: BreakpointMode,
    head: Option<EncodedPrefix>,
    messages: EncodedMessages,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum TargetDialect {
    Responses,
    Chat(ChatServer),
}

/// Encoded content before the messages.
#[derive(Debug)]
struct EncodedPrefix {
    system: Vec<SharedText>,
    tools: Vec<SharedText>,
    parts: Vec<pal_model::TextChunk>,
}

impl DialectEncoder {
    /// Creates an encoder for OpenAI's Responses, stateless: the provider stores nothing, every request is complete.
    pub fn responses(breakpoints: BreakpointMode) -> DialectEncoder {
        DialectEncoder {
            target: TargetDialect::Responses,
            breakpoints,
            head: None,
            messages: EncodedMessages::default(),
        }
    }

    /// Creates an encoder for Chat Completions.
    pub fn chat(server: ChatServer, breakpoints: BreakpointMode) -> DialectEncoder {
        DialectEncoder {
            target: TargetDialect::Chat(server),
            breakpoints,
            head: None,
            messages: EncodedMessages::default(),
        }
    }

    /// Encodes a conversation into the call for the next response.
    pub fn encode(&mut self, conversation: &WireConversation<'_>) -> ApiCall {
        self.keep_head(conversation);
        let target = self.target;
        self.messages.update(group_messages(conversation.blocks, self.breakpoints), |writer, message| {
            match target {
                TargetDialect::Responses => responses::message(writer, message),
                TargetDialect::Chat(server) => chat::message(writer, message, server),
            }
        });
        let (dialect, path) = match self.target {
            TargetDialect::Responses => (Dialect::Responses, "/v1/responses"),
            TargetDialect::Chat(_) => (Dialect::Chat, "/v1/chat/completions"),
        };
        let (body, stream) = (self.body(conversation), conversation.stream);
        ApiCall { dialect, path, headers: Vec::new(), body, stream }
    }

    /// Joins prefix, messages and closing members.
    fn body(&self, conversation: &WireConversation<'_>) -> ChunkedText {
        let has_breakpoint = self.breakpoints != BreakpointMode::Never
            && conversation.blocks.iter().rev().any(|piece| piece.has_breakpoint);
        let mut opening = ChunkWriter::default();
        opening.raw(r#"{"model":"#);
        opening.quoted(conversation.model);
        opening.raw(",");
        let mut closing = ChunkWriter::default();
        closing.raw("],");
        match self.target {
            TargetDialect::Responses => responses::closing(&mut closing, conversation, has_breakpoint),
            TargetDialect::Chat(server) => chat::closing(&mut closing, conversation, server, has_breakpoint),
        }
        let head = self.head.iter().flat_map(|head| &head.parts).cloned();
        // The system prompt is the first of Chat's messages.
        let has_first = self.target != TargetDialect::Responses && !conversation.system.is_empty();
        let parts = opening.finish().into_iter().chain(head).chain(self.messages.parts(has_first));
        parts.chain(closing.finish()).collect()
    }

    fn keep_head(&mut self, conversation: &WireConversation<'_>) {
        if let Some(head) = &self.head
            && head.system == conversation.system
            && head.tools == conversation.tools
        {
            return;
        }
        let mut writer = ChunkWriter::default();
        match self.target {
            TargetDialect::Responses => responses::head(&mut writer, conversation),
            TargetDialect::Chat(server) => chat::head(&mut writer, conversation, server),
        }
        self.head = Some(EncodedPrefix {
            system: conversation.system.to_vec(),
            tools: conversation.tools.to_vec(),
            parts: writer.finish(),
        });
    }
}
