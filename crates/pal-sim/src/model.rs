//! What a simulated model is asked and what it says.

use std::borrow::Cow;

use pal_model::{Role, Text};

/// Something that answers requests. The same questions in the same order get the same answers.
pub trait Model: Send {
    /// The answer to one request.
    fn answer(&mut self, ask: &Ask<'_>) -> Answer;
}

/// A request as the model sees it: whatever the dialect, blocks have the form of the Messages dialect.
#[derive(Clone, Debug)]
pub struct Ask<'a> {
    /// The model that was asked for.
    pub model: &'a str,
    /// The system blocks, raw.
    pub system: Vec<Cow<'a, str>>,
    /// The tools, raw.
    pub tools: Vec<Cow<'a, str>>,
    /// The messages.
    pub messages: Vec<AskMessage<'a>>,
    /// Most tokens that the answer may have.
    pub max_tokens: u64,
    /// Whether the model thinks before it speaks.
    pub thinks: bool,
    /// The instructions of a compaction, if the request asks for one.
    pub compaction: Option<Cow<'a, str>>,
}

/// One message of a request.
#[derive(Clone, Debug)]
pub struct AskMessage<'a> {
    /// Whose it is.
    pub role: Role,
    /// Its blocks, raw JSON objects; a content that is a string has become a text block.
    pub blocks: Vec<Cow<'a, str>>,
}

/// What a model says to one request.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// The blocks, in order.
    pub blocks: Vec<Said>,
    /// Why it stops; by default `tool_use` if a tool is called and `end_turn` otherwise.
    pub stop: Option<Stop>,
}

/// One block of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// Words.
    Text(String),
    /// Thinking; the simulator signs it.
    Thinking(String),
    /// A call of a tool.
    ToolUse {
        /// The id, where it has to be a certain one.
        id: Option<String>,
        /// The tool.
        name: String,
        /// What it is called with: a JSON object.
        input: Text,
    },
}

/// Why an answer stops, where the blocks do not say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// `max_tokens`.
    MaxTokens,
    /// `pause_turn`.
    PauseTurn,
    /// `refusal`.
    Refusal,
    /// `model_context_window_exceeded`.
    WindowExceeded,
}
