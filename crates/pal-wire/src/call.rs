//! One HTTP call to a provider, before anybody sends it.

use pal_model::{Parts, Role, Text};

/// What an endpoint speaks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Dialect {
    /// Anthropic's Messages.
    Messages,
    /// OpenAI's Responses.
    Responses,
    /// OpenAI's Chat Completions, which most local servers speak, too.
    Chat,
}

/// A call: where to, with which headers, with which body. Keys are not part of it; the driver adds them.
#[derive(Clone, Debug)]
pub struct Call {
    /// In which dialect the answer comes.
    pub dialect: Dialect,
    /// The path below the base address, such as `/v1/messages`.
    pub path: &'static str,
    /// Headers besides those of every call.
    pub headers: Vec<(&'static str, String)>,
    /// The body, in shared parts.
    pub body: Parts,
    /// Whether the answer comes as a stream of events.
    pub stream: bool,
}

/// A conversation that a dialect spells: what the view rendered, and what is asked of the answer. Blocks are in the
/// form of the Messages dialect, which is the form of the log.
#[derive(Clone, Copy, Debug)]
pub struct Conversation<'a> {
    /// The model's name, as it is sent.
    pub model: &'a str,
    /// Most tokens that the answer may have.
    pub max_tokens: u64,
    /// Whether the answer is streamed.
    pub stream: bool,
    /// How hard the model shall think, where set.
    pub effort: Option<&'a str>,
    /// A stable key that steers requests with one prefix to one cache.
    pub cache_key: Option<&'a str>,
    /// The system blocks.
    pub system: &'a [Text],
    /// The tools.
    pub tools: &'a [Text],
    /// The blocks of the messages.
    pub pieces: &'a [Piece],
}

/// One block of a conversation.
#[derive(Clone, Debug)]
pub struct Piece {
    /// The role of the message that begins with this block, if one does.
    pub opens: Option<Role>,
    /// The block.
    pub block: Text,
    /// Whether the cache shall remember everything up to here.
    pub is_marked: bool,
}
