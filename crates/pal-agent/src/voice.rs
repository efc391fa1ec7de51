//! How a rendered request becomes a call in the provider's dialect.

use pal_model::{Card, ResponseId, escape_into, fields, member_string};
use pal_view::Request;
use pal_wire::{Call, ChatServer, Conversation, Dialect, Encoder, Piece, messages_call_with};
use smol_str::SmolStr;

/// The member of a request that holds the effort.
const OUTPUT: &str = "output_config";

/// Speaks to one model in one dialect. What was spelled once is kept, so a long conversation costs what is new in it.
#[derive(Debug)]
pub struct Voice {
    card: Card,
    dialect: Dialect,
    encoder: Option<Encoder>,
    /// Steers what is said to one cache of the provider.
    cache_key: Option<String>,
}

impl Voice {
    /// A voice for a model.
    pub fn new(card: &Card, dialect: Dialect, cache_key: Option<String>) -> Voice {
        let encoder = match dialect {
            Dialect::Messages => None,
            Dialect::Responses => Some(Encoder::responses(card.caching.into())),
            Dialect::Chat => Some(Encoder::chat(ChatServer::Compatible, card.caching.into())),
        };
        Voice { card: card.clone(), dialect, encoder, cache_key }
    }

    /// The call that a request becomes; its answer is streamed.
    pub fn call(&mut self, request: &Request, betas: &[SmolStr]) -> Call {
        let Some(encoder) = &mut self.encoder else {
            return messages_call_with(betas, request.parts(), true);
        };
        let pieces: Vec<Piece> = request
            .pieces()
            .map(|(opens, block, is_marked)| Piece { opens, block: block.clone(), is_marked })
            .collect();
        let effort = effort(request);
        encoder.encode(&Conversation {
            model: &self.card.model,
            max_tokens: request.max_tokens(),
            stream: true,
            effort: effort.as_deref(),
            cache_key: self.cache_key.as_deref(),
            system: request.system(),
            tools: request.tools(),
            pieces: &pieces,
        })
    }

    /// The same request, asking the provider what it could not read of the one before, where it can say so.
    pub fn asking_why(&self, request: &Request, previous: Option<&ResponseId>) -> Request {
        if self.dialect != Dialect::Messages || !self.card.can.cache_diagnostics {
            return request.clone();
        }
        let mut value = String::from(r#"{"previous_message_id":"#);
        match previous {
            Some(previous) => escape_into(&mut value, previous.as_str()),
            None => value.push_str("null"),
        }
        value.push('}');
        request.clone().with_member("diagnostics", &value)
    }
}

/// The effort that a request asks for.
fn effort(request: &Request) -> Option<String> {
    let (_, value) = request.members().iter().find(|(name, _)| name == OUTPUT)?;
    member_string(&fields(value).ok()?, "effort").map(|effort| effort.into_owned())
}
