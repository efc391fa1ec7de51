//! Encoding for the dialects that are not the log's own: OpenAI's Responses and Chat Completions.
//!
//! An encoder keeps what it spelled. A further request of the same conversation costs what is new in it: blocks are
//! compared with those of the last request, and only what stands behind the common beginning is spelled again. The
//! result is the same, byte for byte, as that of an encoder without a past.

use pal_model::{Parts, Text};

use crate::chat::ChatServer;
use crate::kept::Kept;
use crate::message::{Breakpoints, messages};
use crate::spell::Speller;
use crate::{Call, Conversation, Dialect, chat, responses};

/// Spells conversations in one dialect; one per session.
#[derive(Debug)]
pub struct Encoder {
    spelling: Spelling,
    breakpoints: Breakpoints,
    head: Option<Head>,
    messages: Kept,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Spelling {
    Responses,
    Chat(ChatServer),
}

/// What stands before the messages.
#[derive(Debug)]
struct Head {
    system: Vec<Text>,
    tools: Vec<Text>,
    parts: Vec<pal_model::Part>,
}

impl Encoder {
    /// An encoder for OpenAI's Responses, stateless: the provider stores nothing, and every request carries everything.
    pub fn responses(breakpoints: Breakpoints) -> Encoder {
        Encoder { spelling: Spelling::Responses, breakpoints, head: None, messages: Kept::default() }
    }

    /// An encoder for Chat Completions.
    pub fn chat(server: ChatServer, breakpoints: Breakpoints) -> Encoder {
        Encoder { spelling: Spelling::Chat(server), breakpoints, head: None, messages: Kept::default() }
    }

    /// The call that asks for the next answer in a conversation.
    pub fn encode(&mut self, conversation: &Conversation<'_>) -> Call {
        self.keep_head(conversation);
        let spelling = self.spelling;
        self.messages.update(messages(conversation.pieces, self.breakpoints), |speller, message| {
            match spelling {
                Spelling::Responses => responses::message(speller, message),
                Spelling::Chat(server) => chat::message(speller, message, server),
            }
        });
        let (dialect, path) = match self.spelling {
            Spelling::Responses => (Dialect::Responses, "/v1/responses"),
            Spelling::Chat(_) => (Dialect::Chat, "/v1/chat/completions"),
        };
        let (body, stream) = (self.body(conversation), conversation.stream);
        Call { dialect, path, headers: Vec::new(), body, stream }
    }

    /// Head, messages and the rest, put together.
    fn body(&self, conversation: &Conversation<'_>) -> Parts {
        let is_marked = self.breakpoints != Breakpoints::Never
            && conversation.pieces.iter().rev().any(|piece| piece.is_marked);
        let mut opening = Speller::default();
        opening.raw(r#"{"model":"#);
        opening.quoted(conversation.model);
        opening.raw(",");
        let mut closing = Speller::default();
        closing.raw("],");
        match self.spelling {
            Spelling::Responses => responses::closing(&mut closing, conversation, is_marked),
            Spelling::Chat(server) => chat::closing(&mut closing, conversation, server, is_marked),
        }
        let head = self.head.iter().flat_map(|head| &head.parts).cloned();
        // The system prompt is the first of Chat's messages.
        let has_first = self.spelling != Spelling::Responses && !conversation.system.is_empty();
        let parts = opening.finish().into_iter().chain(head).chain(self.messages.parts(has_first));
        parts.chain(closing.finish()).collect()
    }

    fn keep_head(&mut self, conversation: &Conversation<'_>) {
        if let Some(head) = &self.head
            && head.system == conversation.system
            && head.tools == conversation.tools
        {
            return;
        }
        let mut speller = Speller::default();
        match self.spelling {
            Spelling::Responses => responses::head(&mut speller, conversation),
            Spelling::Chat(server) => chat::head(&mut speller, conversation, server),
        }
        self.head = Some(Head {
            system: conversation.system.to_vec(),
            tools: conversation.tools.to_vec(),
            parts: speller.finish(),
        });
    }
}
