//! Provider-side compaction: above a threshold, inside an answer, or on demand, instead of one.
//!
//! The model writes the text. The signed block carries the conversation's position, so that retained thinking
//! stays valid.

use std::borrow::Cow;

use pal_model::{Role, SharedText, Usage, UsageIteration, escape_into};
use serde_json::{Value, json};

use crate::block_facts::BlockKind;
use crate::bound_thinking::{PrefixChain, canonical_tool_changes};
use crate::context_edits::ContextEdit;
use crate::fitted_answer::{FitLimits, fit_answer};
use crate::messages_turn::{MessagesOutcome, MessagesTurn};
use crate::parsed_prompt::{PromptBlock, PromptLayer};
use crate::prefix_cache::CacheLookup;
use crate::simulated_provider::SimulatedProvider;
use crate::token_counts;
use crate::usage_json::pass;
use crate::{OutputBlock, StopOverride};

/// Default summary instructions.
const INSTRUCTIONS: &str = "Summarize the conversation so far, so that the work can go on from the summary alone: what \
    was asked, what was done and decided, which files matter, what failed, what is open.";

/// A summary pass.
struct SummaryPass {
    /// Summary text; `None` if the model did not produce one.
    words: Option<String>,
    stop_reason: &'static str,
    served: CacheLookup,
    pass: UsageIteration,
}

impl SummaryPass {
    /// A history too long for the model: nothing is read or written.
    fn too_long() -> SummaryPass {
        let served = CacheLookup::default();
        SummaryPass {
            words: None,
            stop_reason: "model_context_window_exceeded",
            pass: pass("compaction", &served, 0),
            served,
        }
    }
}

impl SimulatedProvider {
    /// Answers a request for a summary only.
    pub(crate) fn compact_on_demand(
        &mut self,
        turn: &MessagesTurn<'_>,
        instructions: Option<&str>,
    ) -> MessagesOutcome {
        let summary = self.summarize(turn, instructions);
        let block = summary.words.map(|words| self.signed_block(turn, &words));
        MessagesOutcome {
            stop_reason: if block.is_some() { "compaction" } else { summary.stop_reason },
            blocks: block.into_iter().map(SharedText::from).collect(),
            stop_sequence: None,
            thinking_tokens: 0,
            usage: Usage { iterations: Some(vec![summary.pass]), ..usage_without_message() },
            lookup: summary.served,
        }
    }

    /// Replaces the context with a summary if the request asks for it and the prompt reaches the trigger.
    /// Afterwards the turn has the compacted prompt.
    pub(crate) fn compact_at_threshold(
        &mut self,
        turn: &mut MessagesTurn<'_>,
        tokens: u64,
    ) -> Option<ThresholdCompaction> {
        let edits = turn.options.edits.iter().flatten();
        let (trigger, pauses, instructions) = edits
            .filter_map(|edit| match edit {
                ContextEdit::Compact { trigger, pauses, instructions } => {
                    Some((*trigger, *pauses, instructions.as_deref().map(str::to_owned)))
                }
                _ => None,
            })
            .next()?;
        if tokens < trigger {
            return None;
        }
        let summary = self.summarize(turn, instructions.as_deref());
        let state = turn.chain.summary_claims(turn.head, turn.card.can.bound_thinking, turn.incoming.scope);
        let state = crate::block_signatures::SummaryClaims { last_role: None, ..state };
        let mut block = String::from(r#"{"type":"compaction","content":"#);
        match &summary.words {
            Some(words) => {
                escape_into(&mut block, words);
                block.push_str(r#","encrypted_content":"#);
                escape_into(&mut block, &self.sealer.summary(&state, words, ""));
            }
            None => block.push_str(r#"null,"encrypted_content":null"#),
        }
        block.push('}');
        if summary.words.is_some() {
            let facts = self.memo.block(&block);
            turn.chain = PrefixChain::after_summary(&state, turn.head, facts.binding);
            replace_messages(turn, block.clone(), facts);
        }
        let pauses = pauses && summary.words.is_some();
        Some(ThresholdCompaction { block, pass: summary.pass, lookup: summary.served, pauses })
    }

    fn summarize(&mut self, turn: &MessagesTurn<'_>, instructions: Option<&str>) -> SummaryPass {
        let rendered = turn.prompt.render(&turn.card);
        if rendered.tokens > turn.card.window {
            return SummaryPass::too_long();
        }
        let mut served = self.cache.look_up(turn.incoming.now, &rendered, turn.card.look_back);
        let instructions = instructions.unwrap_or(INSTRUCTIONS);
        let asked = token_counts::count(instructions, turn.card.generation);
        served.uncached += asked;
        let max_tokens = turn.options.max_tokens.unwrap_or(0);
        let mut ask = turn.prompt.to_model_prompt(&turn.card.model);
        ask.max_tokens = max_tokens;
        ask.compaction = Some(Cow::Borrowed(instructions));
        let answer = self.model.answer(&ask);
        let limits = FitLimits {
            max_tokens,
            room: turn.card.window.saturating_sub(rendered.tokens + asked),
            stop_sequences: &[],
            thinks: false,
            generation: turn.card.generation,
        };
        let is_refused = matches!(answer.stop, Some(StopOverride::Refusal));
        let fitted = fit_answer(answer, &limits);
        let words: String = fitted.blocks.iter().filter_map(|(said, _)| words_of(said)).collect();
        // A truncated summary or a tool call does not count as a summary.
        let is_whole = fitted.stop_reason == "end_turn" && !is_refused && !words.trim().is_empty();
        SummaryPass {
            words: is_whole.then_some(words),
            stop_reason: fitted.stop_reason,
            pass: pass("compaction", &served, fitted.tokens()),
            served,
        }
    }

    fn signed_block(&self, turn: &MessagesTurn<'_>, words: &str) -> String {
        let changes = Value::Array(tool_changes(turn));
        let state = turn.chain.summary_claims(turn.head, turn.card.can.bound_thinking, turn.incoming.scope);
        let unsigned = json!({"tool_changes": changes}).to_string();
        let signature = self.sealer.summary(&state, words, &canonical_tool_changes(&unsigned));
        json!({"type": "compaction", "content": words, "signature": signature, "tool_changes": changes})
            .to_string()
    }
}

/// Result of a threshold compaction, successful or not.
pub(crate) struct ThresholdCompaction {
    /// Compaction block, raw.
    pub(crate) block: String,
    /// Usage of the summary pass.
    pub(crate) pass: UsageIteration,
    pub(crate) lookup: CacheLookup,
    /// True if the answer ends with the summary.
    pub(crate) pauses: bool,
}

/// Usage totals of a response without a message pass.
pub(crate) fn usage_without_message() -> Usage {
    Usage { cache_creation: Some(pal_model::CacheCreation::default()), ..Usage::default() }
}

fn words_of(said: &OutputBlock) -> Option<&str> {
    match said {
        OutputBlock::Text(text) => Some(text),
        OutputBlock::Thinking(_) | OutputBlock::ToolUse { .. } | OutputBlock::ServerTool(_) => None,
    }
}

/// Tool changes in the summarized range, including those of an earlier summary.
fn tool_changes(turn: &MessagesTurn<'_>) -> Vec<Value> {
    let messages = turn.prompt.rendered_blocks().filter(|piece| piece.layer == PromptLayer::Messages);
    messages
        .filter_map(|piece| {
            let block: Value = match piece.facts.kind {
                BlockKind::ToolAddition | BlockKind::ToolRemoval | BlockKind::Compaction => {
                    serde_json::from_str(&piece.raw).ok()?
                }
                _ => return None,
            };
            match piece.facts.kind {
                BlockKind::Compaction => block["tool_changes"].as_array().cloned(),
                _ => Some(vec![block]),
            }
        })
        .flatten()
        .collect()
}

/// Replaces all rendered messages with the summary, which opens the answer.
fn replace_messages(turn: &mut MessagesTurn<'_>, block: String, facts: crate::block_facts::BlockFacts) {
    let mut next = 0;
    for piece in turn.prompt.pieces.iter_mut().filter(|piece| piece.layer == PromptLayer::Messages) {
        piece.is_rendered = false;
        next = piece.message + 1;
    }
    turn.prompt.pieces.push(PromptBlock {
        layer: PromptLayer::Messages,
        role: Role::Assistant,
        message: next,
        index: 0,
        raw: Cow::Owned(block),
        facts,
        breakpoint: None,
        id: Cow::Borrowed(""),
        name: Cow::Borrowed(""),
        is_turn_scoped: false,
        is_rendered: true,
    });
}
