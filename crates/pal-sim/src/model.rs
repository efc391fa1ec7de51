//! What a simulated model is asked and what it says.

use std::borrow::Cow;

use pal_model::{Block, BlockType, Role, Text};

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

impl Said {
    /// A recorded block as a model says it; none for kinds that only a provider can make, and for text without a
    /// word, which no request could send back.
    pub fn recorded(block: &Block) -> Option<Said> {
        match block.kind() {
            BlockType::Text => {
                let text = block.string("text").filter(|text| !text.trim().is_empty());
                text.map(|text| Said::Text(text.into_owned()))
            }
            BlockType::Thinking => block.string("thinking").map(|text| Said::Thinking(text.into_owned())),
            BlockType::ToolUse => Some(Said::ToolUse {
                id: block.tool_use_id().map(|id| id.as_str().to_owned()),
                name: block.string("name")?.into_owned(),
                input: Text::from(
                    block.field("input").filter(|input| input.starts_with('{')).unwrap_or("{}"),
                ),
            }),
            _ => None,
        }
    }
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
