//! An answer before encoding in an OpenAI dialect: output items with ids, and usage.

use serde_json::{Value, json};

use super::openai_cache::OpenAiCacheLookup;
use crate::OutputBlock;
use crate::block_signatures::{BlockSigner, ThinkingClaims};
use crate::fitted_answer::FittedAnswer;
use crate::id_generator::IdGenerator;

/// One output item.
#[derive(Clone, Debug)]
pub(crate) enum OutputItem {
    Reasoning { id: String, text: String, encrypted: String },
    Message { id: String, text: String },
    Call { id: String, call: String, name: String, arguments: String },
}

/// A complete answer.
#[derive(Clone, Debug)]
pub(crate) struct OpenAiOutcome {
    pub(crate) id: String,
    pub(crate) model: String,
    /// Seconds since 1970.
    pub(crate) created: i64,
    pub(crate) items: Vec<OutputItem>,
    /// Stop reason, in Messages terms.
    pub(crate) stop_reason: String,
    pub(crate) lookup: OpenAiCacheLookup,
    pub(crate) output_tokens: u64,
    pub(crate) reasoning_tokens: u64,
    /// Cache comparison with another response.
    pub(crate) diagnostics: Option<Value>,
}

/// Converts a fitted answer to output items.
pub(crate) fn items(
    fitted: &FittedAnswer,
    ids: &mut IdGenerator,
    sealer: BlockSigner,
    thought: ThinkingClaims,
) -> Vec<OutputItem> {
    let item = |(said, tokens): &(OutputBlock, u64)| match said {
        OutputBlock::Text(text) => OutputItem::Message { id: ids.id("msg"), text: text.clone() },
        OutputBlock::Thinking(text) => {
            let tokens = u32::try_from(*tokens).unwrap_or(u32::MAX);
            let encrypted =
                sealer.sign_thinking(&ThinkingClaims { id: ids.number(), tokens, ..thought }, "", 0);
            OutputItem::Reasoning { id: ids.id("rs"), text: text.clone(), encrypted }
        }
        OutputBlock::ToolUse { id, name, input } => OutputItem::Call {
            id: ids.id("fc"),
            call: id.clone().unwrap_or_else(|| ids.id("call")),
            name: name.clone(),
            arguments: if input.trim().is_empty() { String::from("{}") } else { input.to_string() },
        },
        // Only the Messages dialect has these blocks.
        OutputBlock::ServerTool(raw) => OutputItem::Message { id: ids.id("msg"), text: raw.to_string() },
    };
    fitted.blocks.iter().map(item).collect()
}

impl OpenAiOutcome {
    /// Prompt tokens, including cached ones.
    pub(crate) fn input_tokens(&self) -> u64 {
        self.written() + self.lookup.read + self.lookup.uncached
    }

    /// Tokens written to the cache.
    pub(crate) fn written(&self) -> u64 {
        self.lookup.written_short + self.lookup.written_long
    }

    /// Usage in Responses form.
    pub(crate) fn responses_usage(&self) -> Value {
        let mut usage = json!({
            "input_tokens": self.input_tokens(),
            "input_tokens_details": {"cached_tokens": self.lookup.read, "cache_write_tokens": self.written()},
            "output_tokens": self.output_tokens,
            "output_tokens_details": {"reasoning_tokens": self.reasoning_tokens},
            "total_tokens": self.input_tokens() + self.output_tokens,
        });
        if self.written() > 0 {
            usage["input_tokens_details"]["cache_write_tokens_details"] = json!({"ttl_30m_tokens": self.lookup.written_short, "ttl_12h_tokens": self.lookup.written_long});
        }
        usage
    }

    /// Usage in Chat Completions form.
    pub(crate) fn chat_usage(&self) -> Value {
        json!({
            "prompt_tokens": self.input_tokens(),
            "completion_tokens": self.output_tokens,
            "total_tokens": self.input_tokens() + self.output_tokens,
            "prompt_tokens_details": {"cached_tokens": self.lookup.read, "cache_write_tokens": self.written(), "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": self.reasoning_tokens, "audio_tokens": 0,
                "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0},
        })
    }
}
