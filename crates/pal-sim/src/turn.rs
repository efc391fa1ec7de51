//! A request that was judged and read, on its way to an answer.

use pal_model::{Card, Text, Usage};
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_128;

use crate::answer::Fitted;
use crate::binding::{Chain, Dropped};
use crate::cache::Served;
use crate::facts::Kind;
use crate::http::Headers;
use crate::identity::mix;
use crate::prompt::Prompt;
use crate::recent::Print;
use crate::reply::Difference;
use crate::request::{Thinking, Wanted};
use crate::simulator::Incoming;

/// A request on its way.
pub(crate) struct Turn<'a> {
    pub(crate) incoming: Incoming<'a>,
    pub(crate) headers: Headers,
    pub(crate) card: Card,
    pub(crate) wanted: Wanted<'a>,
    /// What the model is going to see.
    pub(crate) prompt: Prompt<'a>,
    /// What the prompt consists of, once it is as the model is going to see it.
    pub(crate) print: Print,
    /// Where it first differs from the one that the request names, in the words of the wire.
    pub(crate) diagnosed: Option<Value>,
    /// The same, to the block.
    pub(crate) differs: Option<Difference>,
    /// The hash of its tools and its system prompt.
    pub(crate) head: u128,
    /// Where its conversation stands.
    pub(crate) chain: Chain,
    /// Thinking that was dropped.
    pub(crate) dropped: Vec<Dropped>,
    /// Tokens before the context was edited.
    pub(crate) sent_tokens: u64,
    /// What was done to the context.
    pub(crate) applied: Vec<Value>,
    /// Tokens that were deleted in the cache.
    pub(crate) deleted_tokens: u64,
}

/// An answer, before it is spoken.
pub(crate) struct Outcome {
    pub(crate) blocks: Vec<Text>,
    pub(crate) stop_reason: &'static str,
    pub(crate) stop_sequence: Option<String>,
    pub(crate) thinking_tokens: u64,
    pub(crate) usage: Usage,
    /// What the cache does, in all passes.
    pub(crate) served: Served,
}

impl Outcome {
    /// Of a message that follows on nothing else.
    pub(crate) fn message(blocks: Vec<Text>, fitted: Fitted, usage: Usage, served: Served) -> Outcome {
        Outcome {
            blocks,
            stop_reason: fitted.stop_reason,
            thinking_tokens: fitted.thinking_tokens(),
            stop_sequence: fitted.stop_sequence,
            usage,
            served,
        }
    }
}

impl Turn<'_> {
    /// What the prompt consists of as it is now.
    pub(crate) fn printed(&self) -> Print {
        let model = mix(xxh3_128(self.card.model.as_bytes()), u128::from(self.wanted.is_fast));
        Print::of(&self.prompt, model, self.wanted.parameters, self.card.generation)
    }

    /// Whether the model thinks before this answer.
    pub(crate) fn thinks(&self) -> bool {
        match self.wanted.thinking {
            Thinking::Never => false,
            Thinking::Adaptive | Thinking::Budget(_) => true,
            Thinking::BetweenTools => {
                let last = self.prompt.rendered().last();
                last.is_some_and(|piece| piece.facts.kind == Kind::ToolResult)
            }
        }
    }
}
