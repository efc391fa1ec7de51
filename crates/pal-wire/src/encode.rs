//! Encoding for the dialects that are not the log's own: OpenAI's Responses and Chat Completions.
//!
//! An encoder keeps what it spelled. A further request of the same conversation costs what is new in it: blocks are
//! compared with those of the last request, and only what stands behind the common beginning is spelled again. The
//! result is the same, byte for byte, as that of an encoder without a past.

use pal_model::{Part, Role, Text};

use crate::chat::ChatServer;
use crate::message::{Breakpoints, Message, messages};
use crate::spell::Speller;
use crate::{Call, Conversation, Dialect, chat, responses};

/// Spells conversations in one dialect; one per session.
#[derive(Debug)]
pub struct Encoder {
    spelling: Spelling,
    breakpoints: Breakpoints,
    head: Option<Head>,
    messages: Vec<Spelled>,
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
    parts: Vec<Part>,
}

/// A message and how it is spelled.
#[derive(Debug)]
struct Spelled {
    role: Role,
    ends_request: bool,
    pieces: Vec<(Text, bool)>,
    parts: Vec<Part>,
}

impl Encoder {
    /// An encoder for OpenAI's Responses, stateless: the provider stores nothing, and every request carries everything.
    pub fn responses(breakpoints: Breakpoints) -> Encoder {
        Encoder { spelling: Spelling::Responses, breakpoints, head: None, messages: Vec::new() }
    }

    /// An encoder for Chat Completions.
    pub fn chat(server: ChatServer, breakpoints: Breakpoints) -> Encoder {
        Encoder { spelling: Spelling::Chat(server), breakpoints, head: None, messages: Vec::new() }
    }

    /// The call that asks for the next answer in a conversation.
    pub fn encode(&mut self, conversation: &Conversation<'_>) -> Call {
        self.keep_head(conversation);
        self.keep_messages(conversation.pieces);
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
        let (dialect, path) = match self.spelling {
            Spelling::Responses => (Dialect::Responses, "/v1/responses"),
            Spelling::Chat(_) => (Dialect::Chat, "/v1/chat/completions"),
        };
        let parts = opening.finish().into_iter().chain(self.kept_parts()).chain(closing.finish());
        Call { dialect, path, headers: Vec::new(), body: parts.collect(), stream: conversation.stream }
    }

    /// Head and messages, separated.
    fn kept_parts(&self) -> impl Iterator<Item = Part> {
        let head = self.head.iter().flat_map(|head| &head.parts).cloned();
        // The system prompt is the first of Chat's messages.
        let mut begun = self.spelling != Spelling::Responses
            && self.head.as_ref().is_some_and(|head| !head.system.is_empty());
        let messages = self.messages.iter().filter(|message| !message.parts.is_empty());
        let separated = messages.flat_map(move |message| {
            let comma = if std::mem::replace(&mut begun, true) { "," } else { "" };
            std::iter::once(Part::Fixed(comma)).chain(message.parts.iter().cloned())
        });
        head.chain(separated)
    }

    fn keep_head(&mut self, conversation: &Conversation<'_>) {
        if let Some(head) = &self.head
            && are_same(&head.system, conversation.system)
            && are_same(&head.tools, conversation.tools)
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

    fn keep_messages(&mut self, pieces: &[crate::Piece]) {
        let mut kept = 0;
        for message in messages(pieces, self.breakpoints) {
            if !self.messages.get(kept).is_some_and(|old| old.is_of(&message)) {
                self.messages.truncate(kept);
                let mut speller = Speller::default();
                match self.spelling {
                    Spelling::Responses => responses::message(&mut speller, &message),
                    Spelling::Chat(server) => chat::message(&mut speller, &message, server),
                }
                self.messages.push(Spelled::new(&message, speller.finish()));
            }
            kept += 1;
        }
        self.messages.truncate(kept);
    }
}

impl Spelled {
    fn new(message: &Message<'_>, parts: Vec<Part>) -> Spelled {
        Spelled {
            role: message.role,
            ends_request: message.ends_request,
            pieces: message.pieces.iter().map(|piece| (piece.block.clone(), piece.is_marked)).collect(),
            parts,
        }
    }

    /// Whether a message would be spelled like this one.
    fn is_of(&self, message: &Message<'_>) -> bool {
        self.role == message.role
            && self.ends_request == message.ends_request
            && self.pieces.len() == message.pieces.len()
            && self.pieces.iter().zip(message.pieces).all(|((block, was_marked), piece)| {
                (*was_marked == piece.is_marked || !message.has_breakpoints) && is_same(block, &piece.block)
            })
    }
}

/// Whether two texts are one slice of memory, or at least the same characters. Both are alive, so one address is one
/// text.
fn is_same(one: &Text, other: &Text) -> bool {
    (one.len() == other.len()) && (one.as_ptr() == other.as_ptr() || one == other)
}

fn are_same(some: &[Text], others: &[Text]) -> bool {
    some.len() == others.len() && some.iter().zip(others).all(|(one, other)| is_same(one, other))
}
