//! Interface between the simulated provider and the model behind it.

use std::borrow::Cow;

use pal_model::{BlockType, ContentBlock, Role, SharedText};

/// A model that answers requests. The same requests in the same order get the same answers.
pub trait SimulatedModel: Send {
    /// Answers one request.
    fn answer(&mut self, ask: &ModelPrompt<'_>) -> ModelOutput;
}

/// A request as the model sees it. Blocks have the Messages format in every dialect.
#[derive(Clone, Debug)]
pub struct ModelPrompt<'a> {
    /// Requested model.
    pub model: &'a str,
    /// System blocks, raw JSON.
    pub system: Vec<Cow<'a, str>>,
    /// Tool definitions, raw JSON.
    pub tools: Vec<Cow<'a, str>>,
    /// Messages, oldest first.
    pub messages: Vec<PromptMessage<'a>>,
    /// Maximum tokens of the answer.
    pub max_tokens: u64,
    /// True if the model may think before it answers.
    pub thinks: bool,
    /// Compaction instructions, if the request asks for a summary.
    pub compaction: Option<Cow<'a, str>>,
}

/// One message of a request.
#[derive(Clone, Debug)]
pub struct PromptMessage<'a> {
    /// Role of the author.
    pub role: Role,
    /// Blocks as raw JSON; string content has become a text block.
    pub blocks: Vec<Cow<'a, str>>,
}

/// A model's answer to one request.
#[derive(Clone, Debug, Default)]
pub struct ModelOutput {
    /// Blocks, in order.
    pub blocks: Vec<OutputBlock>,
    /// Stop reason; by default `tool_use` if a tool is called, else `end_turn`.
    pub stop: Option<StopOverride>,
}

/// One block of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputBlock {
    /// Text.
    Text(String),
    /// Thinking; the simulator signs it.
    Thinking(String),
    /// A tool call.
    ToolUse {
        /// Fixed id; generated if `None`.
        id: Option<String>,
        /// Tool name.
        name: String,
        /// Input, a JSON object.
        input: SharedText,
    },
    /// Call or result of a tool that the provider runs, as raw JSON.
    ServerTool(SharedText),
}

impl OutputBlock {
    /// Converts a recorded block; `None` for kinds that only a provider can produce and for blank text, which
    /// no request could send back.
    pub fn from_recorded(block: &ContentBlock) -> Option<OutputBlock> {
        match block.kind() {
            BlockType::Text => {
                let text = block.string("text").filter(|text| !text.trim().is_empty());
                text.map(|text| OutputBlock::Text(text.into_owned()))
            }
            BlockType::Thinking => {
                block.string("thinking").map(|text| OutputBlock::Thinking(text.into_owned()))
            }
            BlockType::ToolUse => Some(OutputBlock::ToolUse {
                id: block.tool_use_id().map(|id| id.as_str().to_owned()),
                name: block.string("name")?.into_owned(),
                input: SharedText::from(
                    block.field("input").filter(|input| input.starts_with('{')).unwrap_or("{}"),
                ),
            }),
            _ => None,
        }
    }
}

/// A stop reason that does not follow from the blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopOverride {
    /// `max_tokens`.
    MaxTokens,
    /// `pause_turn`.
    PauseTurn,
    /// `refusal`.
    Refusal,
    /// `model_context_window_exceeded`.
    WindowExceeded,
}
