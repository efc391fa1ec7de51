//! Encodes rendered requests in the provider's dialect.

use pal_model::{ModelCard, ResponseId, escape_into, member_string, object_fields};
use pal_view::Request;
use pal_wire::{
    ApiCall, ChatServer, ConversationBlock, Dialect, DialectEncoder, WireConversation, messages_call,
};
use smol_str::SmolStr;

/// Request member with the reasoning effort.
const OUTPUT: &str = "output_config";

/// Encoder for one model and dialect. Encoded parts are cached, so a long conversation costs only what is new.
#[derive(Debug)]
pub struct RequestEncoder {
    card: ModelCard,
    dialect: Dialect,
    encoder: Option<DialectEncoder>,
    /// Routes requests to one cache of the provider.
    cache_key: Option<String>,
}

impl RequestEncoder {
    /// Creates an encoder for a model.
    pub fn new(card: &ModelCard, dialect: Dialect, cache_key: Option<String>) -> RequestEncoder {
        let encoder = match dialect {
            Dialect::Messages => None,
            Dialect::Responses => Some(DialectEncoder::responses(card.caching.into())),
            Dialect::Chat => Some(DialectEncoder::chat(ChatServer::Compatible, card.caching.into())),
        };
        RequestEncoder { card: card.clone(), dialect, encoder, cache_key }
    }

    /// Encodes a request whose answer is streamed.
    pub fn encode(&mut self, request: &Request, betas: &[SmolStr]) -> ApiCall {
        let Some(encoder) = &mut self.encoder else {
            return messages_call(betas, request.parts(), true);
        };
        let pieces: Vec<ConversationBlock> = request
            .pieces()
            .map(|(opens, block, is_marked)| ConversationBlock {
                starts_message: opens,
                block: block.clone(),
                has_breakpoint: is_marked,
            })
            .collect();
        let effort = effort(request);
        encoder.encode(&WireConversation {
            model: &self.card.model,
            max_tokens: request.max_tokens(),
            stream: true,
            effort: effort.as_deref(),
            cache_key: self.cache_key.as_deref(),
            system: request.system_blocks(),
            tools: request.tools(),
            blocks: &pieces,
        })
    }

    /// Adds a cache diagnosis to a request, where the provider supports it.
    pub fn with_cache_diagnosis(&self, request: &Request, previous: Option<&ResponseId>) -> Request {
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

/// Reasoning effort of a request.
fn effort(request: &Request) -> Option<String> {
    let (_, value) = request.members().iter().find(|(name, _)| name == OUTPUT)?;
    member_string(&object_fields(value).ok()?, "effort").map(|effort| effort.into_owned())
}
