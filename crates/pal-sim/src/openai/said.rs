//! An answer before it is spoken in one of OpenAI's dialects: its items with their ids, and what it took.

use serde_json::{Value, json};

use super::cache::Served;
use crate::Said;
use crate::answer::Fitted;
use crate::ids::Ids;
use crate::seal::{Sealer, Thought};

/// One item of an answer.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    Reasoning { id: String, text: String, encrypted: String },
    Message { id: String, text: String },
    Call { id: String, call: String, name: String, arguments: String },
}

/// A whole answer.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) id: String,
    pub(crate) model: String,
    /// Seconds since 1970.
    pub(crate) created: i64,
    pub(crate) items: Vec<Item>,
    /// Why it stops, in the words of the Messages dialect.
    pub(crate) stop_reason: String,
    pub(crate) served: Served,
    pub(crate) output_tokens: u64,
    pub(crate) reasoning_tokens: u64,
    /// What is said about the cache compared with another response.
    pub(crate) diagnostics: Option<Value>,
}

/// What the model said, as items.
pub(crate) fn items(fitted: &Fitted, ids: &mut Ids, sealer: Sealer, thought: Thought) -> Vec<Item> {
    let item = |(said, tokens): &(Said, u64)| match said {
        Said::Text(text) => Item::Message { id: ids.id("msg"), text: text.clone() },
        Said::Thinking(text) => {
            let tokens = u32::try_from(*tokens).unwrap_or(u32::MAX);
            let encrypted = sealer.thought(&Thought { id: ids.number(), tokens, ..thought }, "", 0);
            Item::Reasoning { id: ids.id("rs"), text: text.clone(), encrypted }
        }
        Said::ToolUse { id, name, input } => Item::Call {
            id: ids.id("fc"),
            call: id.clone().unwrap_or_else(|| ids.id("call")),
            name: name.clone(),
            arguments: if input.trim().is_empty() { String::from("{}") } else { input.to_string() },
        },
    };
    fitted.said.iter().map(item).collect()
}

impl Outcome {
    /// Prompt tokens, cached ones included.
    pub(crate) fn input_tokens(&self) -> u64 {
        self.written() + self.served.read + self.served.uncached
    }

    /// Tokens written to the cache.
    pub(crate) fn written(&self) -> u64 {
        self.served.written_short + self.served.written_long
    }

    /// The usage of the Responses dialect.
    pub(crate) fn responses_usage(&self) -> Value {
        let mut usage = json!({
            "input_tokens": self.input_tokens(),
            "input_tokens_details": {"cached_tokens": self.served.read, "cache_write_tokens": self.written()},
            "output_tokens": self.output_tokens,
            "output_tokens_details": {"reasoning_tokens": self.reasoning_tokens},
            "total_tokens": self.input_tokens() + self.output_tokens,
        });
        if self.written() > 0 {
            usage["input_tokens_details"]["cache_write_tokens_details"] = json!({"ttl_30m_tokens": self.served.written_short, "ttl_12h_tokens": self.served.written_long});
        }
        usage
    }

    /// The usage of Chat Completions.
    pub(crate) fn chat_usage(&self) -> Value {
        json!({
            "prompt_tokens": self.input_tokens(),
            "completion_tokens": self.output_tokens,
            "total_tokens": self.input_tokens() + self.output_tokens,
            "prompt_tokens_details": {"cached_tokens": self.served.read, "cache_write_tokens": self.written(), "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": self.reasoning_tokens, "audio_tokens": 0,
                "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0},
        })
    }
}
