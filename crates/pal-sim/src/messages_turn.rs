//! State of one Messages request between parsing and the reply.

use pal_model::{ModelCard, SharedText, Usage};
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_128;

use crate::block_facts::BlockKind;
use crate::block_identity::mix;
use crate::bound_thinking::{DroppedThinking, PrefixChain};
use crate::cache_diagnostics::PromptFingerprint;
use crate::fitted_answer::FittedAnswer;
use crate::http_reply::PromptDifference;
use crate::http_request::RequestHeaders;
use crate::messages_request::{MessagesOptions, ThinkingMode};
use crate::parsed_prompt::ParsedPrompt;
use crate::prefix_cache::CacheLookup;
use crate::simulated_provider::IncomingRequest;

/// A valid, parsed Messages request.
pub(crate) struct MessagesTurn<'a> {
    pub(crate) incoming: IncomingRequest<'a>,
    pub(crate) headers: RequestHeaders,
    pub(crate) card: ModelCard,
    pub(crate) options: MessagesOptions<'a>,
    pub(crate) prompt: ParsedPrompt<'a>,
    /// Fingerprint of the prompt after edits and compaction.
    pub(crate) fingerprint: PromptFingerprint,
    /// `diagnostics` value for the reply.
    pub(crate) diagnostics: Option<Value>,
    /// First difference from the previous request, down to the block.
    pub(crate) difference: Option<PromptDifference>,
    /// Hash of tools and system prompt.
    pub(crate) head: u128,
    pub(crate) chain: PrefixChain,
    pub(crate) dropped: Vec<DroppedThinking>,
    /// Prompt tokens before context edits.
    pub(crate) sent_tokens: u64,
    /// Applied context edits, in wire form.
    pub(crate) applied: Vec<Value>,
    /// Tokens deleted by cache edits.
    pub(crate) deleted_tokens: u64,
}

/// An answer before encoding.
pub(crate) struct MessagesOutcome {
    pub(crate) blocks: Vec<SharedText>,
    pub(crate) stop_reason: &'static str,
    pub(crate) stop_sequence: Option<String>,
    pub(crate) thinking_tokens: u64,
    pub(crate) usage: Usage,
    /// Cache lookup over all passes.
    pub(crate) lookup: CacheLookup,
}

impl MessagesOutcome {
    /// Outcome of a plain message.
    pub(crate) fn message(
        blocks: Vec<SharedText>,
        fitted: FittedAnswer,
        usage: Usage,
        served: CacheLookup,
    ) -> MessagesOutcome {
        MessagesOutcome {
            blocks,
            stop_reason: fitted.stop_reason,
            thinking_tokens: fitted.thinking_tokens(),
            stop_sequence: fitted.stop_sequence,
            usage,
            lookup: served,
        }
    }
}

impl MessagesTurn<'_> {
    /// Fingerprint of the current prompt.
    pub(crate) fn fingerprint(&self) -> PromptFingerprint {
        let model = mix(xxh3_128(self.card.model.as_bytes()), u128::from(self.options.is_fast));
        PromptFingerprint::of(&self.prompt, model, self.options.parameters, self.card.generation)
    }

    /// True if the model thinks before this answer.
    pub(crate) fn thinks(&self) -> bool {
        match self.options.thinking {
            ThinkingMode::Never => false,
            ThinkingMode::Adaptive | ThinkingMode::Budget(_) => true,
            ThinkingMode::BetweenTools => {
                let last = self.prompt.rendered_blocks().last();
                last.is_some_and(|piece| piece.facts.kind == BlockKind::ToolResult)
            }
        }
    }
}
