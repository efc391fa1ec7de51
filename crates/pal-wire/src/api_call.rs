//! HTTP calls to providers as data; the driver sends them.

use pal_model::{ChunkedText, Role, SharedText};

/// API dialect of an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Dialect {
    /// Anthropic Messages.
    Messages,
    /// OpenAI Responses.
    Responses,
    /// OpenAI Chat Completions, also used by most local servers.
    Chat,
}

/// An HTTP call: path, headers and body. The driver adds base address and API key.
#[derive(Clone, Debug)]
pub struct ApiCall {
    /// Dialect of the response.
    pub dialect: Dialect,
    /// Path below the base address, such as `/v1/messages`.
    pub path: &'static str,
    /// Headers of this call in addition to the common ones.
    pub headers: Vec<(&'static str, String)>,
    /// JSON body in shared chunks.
    pub body: ChunkedText,
    /// True if the response is a stream of events.
    pub stream: bool,
}

/// Input of an encoder: the rendered conversation and the request parameters. Blocks are in the form of the Messages
/// dialect, which is also the form of the log.
#[derive(Clone, Copy, Debug)]
pub struct WireConversation<'a> {
    /// Model name as sent.
    pub model: &'a str,
    /// Maximum output tokens.
    pub max_tokens: u64,
    /// Requests a streamed response.
    pub stream: bool,
    /// Reasoning effort; none for the provider's default.
    pub effort: Option<&'a str>,
    /// Stable key that routes requests with the same prefix to one cache.
    pub cache_key: Option<&'a str>,
    /// System blocks.
    pub system: &'a [SharedText],
    /// Tool definitions.
    pub tools: &'a [SharedText],
    /// Blocks of all messages, in order.
    pub blocks: &'a [ConversationBlock],
}

/// One block of a conversation.
#[derive(Clone, Debug)]
pub struct ConversationBlock {
    /// Role of the message that starts with this block; none if the block continues a message.
    pub starts_message: Option<Role>,
    /// Raw JSON of the block.
    pub block: SharedText,
    /// True if a cache breakpoint follows this block.
    pub has_breakpoint: bool,
}
