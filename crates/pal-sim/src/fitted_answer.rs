//! Fits a model's answer to its limits, counts its tokens and writes it as blocks.

use pal_model::{Role, SharedText, TokenGeneration, escape_into};

use crate::block_facts::BlockMemo;
use crate::block_signatures::{BlockSigner, ThinkingClaims};
use crate::bound_thinking::PrefixChain;
use crate::id_generator::IdGenerator;
use crate::token_counts::{self, TOOL_BLOCK_TOKENS};
use crate::{ModelOutput, OutputBlock, StopOverride};

/// Limits of an answer.
pub(crate) struct FitLimits<'a> {
    /// Requested maximum of tokens.
    pub(crate) max_tokens: u64,
    /// Tokens left in the context window.
    pub(crate) room: u64,
    /// Stop sequences.
    pub(crate) stop_sequences: &'a [std::borrow::Cow<'a, str>],
    /// True if the model may think.
    pub(crate) thinks: bool,
    /// Token counting of the model.
    pub(crate) generation: TokenGeneration,
}

/// An answer within its limits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FittedAnswer {
    /// Blocks with their token counts.
    pub(crate) blocks: Vec<(OutputBlock, u64)>,
    /// Stop reason.
    pub(crate) stop_reason: &'static str,
    /// Stop sequence that ended it.
    pub(crate) stop_sequence: Option<String>,
}

impl FittedAnswer {
    /// Tokens of all blocks.
    pub(crate) fn tokens(&self) -> u64 {
        self.blocks.iter().map(|(_, tokens)| tokens).sum()
    }

    /// Tokens of thinking.
    pub(crate) fn thinking_tokens(&self) -> u64 {
        let thinking = self.blocks.iter().filter(|(said, _)| matches!(said, OutputBlock::Thinking(_)));
        thinking.map(|(_, tokens)| tokens).sum()
    }
}

/// Truncates an answer to its limits. A call that does not fit is left out. Blank text is left out too: it
/// could not be sent back, and later thinking would be bound to it.
pub(crate) fn fit_answer(answer: ModelOutput, limits: &FitLimits<'_>) -> FittedAnswer {
    let most = limits.max_tokens.min(limits.room);
    let full = if limits.room < limits.max_tokens { "model_context_window_exceeded" } else { "max_tokens" };
    let mut fitted = FittedAnswer::default();
    let mut used = 0;
    for said in answer.blocks {
        let (said, stop_sequence) = match said {
            OutputBlock::Thinking(_) if !limits.thinks => continue,
            OutputBlock::Text(text) => cut_at_stop_sequence(text, limits.stop_sequences),
            said => (said, None),
        };
        let is_blank = matches!(&said, OutputBlock::Text(text) if text.trim().is_empty());
        let tokens = if is_blank { 0 } else { size(&said, limits.generation) };
        if used + tokens > most {
            let said = shorten(said, most - used, limits.generation);
            fitted.blocks.extend(said.map(|said| {
                let tokens = size(&said, limits.generation);
                (said, tokens)
            }));
            fitted.stop_reason = full;
            return fitted;
        }
        used += tokens;
        if !is_blank {
            fitted.blocks.push((said, tokens));
        }
        if stop_sequence.is_some() {
            fitted.stop_reason = "stop_sequence";
            fitted.stop_sequence = stop_sequence;
            return fitted;
        }
    }
    let calls = fitted.blocks.iter().any(|(said, _)| matches!(said, OutputBlock::ToolUse { .. }));
    fitted.stop_reason = match answer.stop {
        Some(StopOverride::MaxTokens) => "max_tokens",
        Some(StopOverride::PauseTurn) => "pause_turn",
        Some(StopOverride::Refusal) => "refusal",
        Some(StopOverride::WindowExceeded) => "model_context_window_exceeded",
        None if calls => "tool_use",
        None => "end_turn",
    };
    fitted
}

/// Text before the first stop sequence, and that sequence.
fn cut_at_stop_sequence(
    text: String,
    sequences: &[std::borrow::Cow<'_, str>],
) -> (OutputBlock, Option<String>) {
    let found = sequences.iter().filter_map(|sequence| text.find(&**sequence).map(|at| (at, sequence)));
    match found.min_by_key(|(at, _)| *at) {
        Some((at, sequence)) => {
            let sequence = sequence.to_string();
            (OutputBlock::Text(text[..at].to_owned()), Some(sequence))
        }
        None => (OutputBlock::Text(text), None),
    }
}

fn size(said: &OutputBlock, generation: TokenGeneration) -> u64 {
    match said {
        OutputBlock::Text(text) | OutputBlock::Thinking(text) => token_counts::count(text, generation),
        OutputBlock::ToolUse { name, input, .. } => {
            let words = token_counts::count_word_tokens(name) + token_counts::count_word_tokens(input);
            token_counts::scaled(words, generation) + u64::from(TOOL_BLOCK_TOKENS)
        }
        OutputBlock::ServerTool(raw) => token_counts::count(raw, generation),
    }
}

fn shorten(said: OutputBlock, most: u64, generation: TokenGeneration) -> Option<OutputBlock> {
    let cut = |text: &str| {
        let kept = token_counts::cut(text, most, generation);
        (!kept.is_empty()).then(|| kept.to_owned())
    };
    match said {
        OutputBlock::Text(text) => cut(&text).filter(|kept| !kept.trim().is_empty()).map(OutputBlock::Text),
        OutputBlock::Thinking(text) => cut(&text).map(OutputBlock::Thinking),
        OutputBlock::ToolUse { .. } | OutputBlock::ServerTool(_) => None,
    }
}

/// Writes blocks as raw JSON and signs thinking.
pub(crate) struct BlockWriter<'a> {
    pub(crate) ids: &'a mut IdGenerator,
    pub(crate) sealer: BlockSigner,
    pub(crate) memo: &'a mut BlockMemo,
    /// Prefix chain; extended by each block.
    pub(crate) chain: &'a mut PrefixChain,
    /// Template of the claims for this model and client.
    pub(crate) thought: ThinkingClaims,
    /// True if thinking text is returned.
    pub(crate) shows_thinking: bool,
}

impl BlockWriter<'_> {
    /// Blocks of an answer, raw.
    pub(crate) fn blocks(&mut self, fitted: &FittedAnswer) -> Vec<SharedText> {
        fitted.blocks.iter().map(|(said, tokens)| SharedText::from(self.block(said, *tokens))).collect()
    }

    fn block(&mut self, said: &OutputBlock, tokens: u64) -> String {
        let mut raw = String::new();
        match said {
            OutputBlock::Text(text) => {
                raw.push_str(r#"{"type":"text","text":"#);
                escape_into(&mut raw, text);
                raw.push('}');
            }
            OutputBlock::Thinking(text) => return self.thinking(text, tokens),
            OutputBlock::ToolUse { id, name, input } => {
                raw.push_str(r#"{"type":"tool_use","id":"#);
                escape_into(&mut raw, &id.clone().unwrap_or_else(|| self.ids.id("toolu")));
                raw.push_str(r#","name":"#);
                escape_into(&mut raw, name);
                raw.push_str(r#","input":"#);
                raw.push_str(if input.trim().is_empty() { "{}" } else { input });
                raw.push('}');
            }
            OutputBlock::ServerTool(block) => raw.push_str(block),
        }
        let binding = self.memo.block(&raw).binding;
        self.chain.push(Role::Assistant, binding);
        raw
    }

    fn thinking(&mut self, text: &str, tokens: u64) -> String {
        let shown = if self.shows_thinking { text } else { "" };
        let prefix = self.chain.start_message(Role::Assistant);
        let thought = ThinkingClaims {
            id: self.ids.number(),
            previous: self.chain.last_thought(),
            tokens: u32::try_from(tokens).unwrap_or(u32::MAX),
            ..self.thought
        };
        self.chain.push_thinking(thought.id);
        let mut raw = String::from(r#"{"type":"thinking","thinking":"#);
        escape_into(&mut raw, shown);
        raw.push_str(r#","signature":"#);
        escape_into(&mut raw, &self.sealer.sign_thinking(&thought, shown, prefix));
        raw.push('}');
        raw
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::borrow::Cow;

    fn fitted(
        answer: ModelOutput,
        max_tokens: u64,
        room: u64,
        stops: &[Cow<'_, str>],
    ) -> (String, &'static str) {
        let limits = FitLimits {
            max_tokens,
            room,
            stop_sequences: stops,
            thinks: false,
            generation: TokenGeneration::O200k,
        };
        let fitted = fit_answer(answer, &limits);
        assert!(fitted.tokens() <= max_tokens.min(room));
        let said = fitted.blocks.iter().map(|(said, _)| match said {
            OutputBlock::Text(text) | OutputBlock::Thinking(text) => text.clone(),
            OutputBlock::ToolUse { name, .. } => format!("<{name}>"),
            OutputBlock::ServerTool(raw) => raw.to_string(),
        });
        (said.collect(), fitted.stop_reason)
    }

    fn answer() -> ModelOutput {
        let call = OutputBlock::ToolUse { id: None, name: "Read".into(), input: SharedText::from("{}") };
        let blocks =
            vec![OutputBlock::Thinking("hm".into()), OutputBlock::Text("one two three four".into()), call];
        ModelOutput { blocks, stop: None }
    }

    #[test]
    fn answers_stop_at_their_limits() {
        assert_eq!(fitted(answer(), 100, 100, &[]), ("one two three four<Read>".into(), "tool_use"));
        assert_eq!(fitted(answer(), 2, 100, &[]), ("one two".into(), "max_tokens"));
        assert_eq!(fitted(answer(), 10, 100, &[]), ("one two three four".into(), "max_tokens"));
        assert_eq!(fitted(answer(), 100, 2, &[]), ("one two".into(), "model_context_window_exceeded"));
        assert_eq!(fitted(answer(), 0, 100, &[]), (String::new(), "max_tokens"));
        let stops = ["four".into(), " three".into()];
        assert_eq!(fitted(answer(), 100, 100, &stops), ("one two".into(), "stop_sequence"));
        let refusal = ModelOutput { blocks: Vec::new(), stop: Some(StopOverride::Refusal) };
        assert_eq!(fitted(refusal, 100, 100, &[]), (String::new(), "refusal"));
    }

    #[test]
    fn blank_text_is_left_out() {
        let said = |text: &str| ModelOutput { blocks: vec![OutputBlock::Text(text.into())], stop: None };
        let check = |text: &str, max_tokens, stops: &[Cow<'_, str>], stop_reason| {
            let limits = FitLimits {
                max_tokens,
                room: 100,
                stop_sequences: stops,
                thinks: false,
                generation: TokenGeneration::O200k,
            };
            let expected = FittedAnswer {
                stop_reason,
                stop_sequence: stops.first().map(|stop| stop.to_string()),
                ..FittedAnswer::default()
            };
            assert_eq!(fit_answer(said(text), &limits), expected, "{text:?}");
        };
        check("", 100, &[], "end_turn");
        check(" \n\t\u{a0}", 100, &[], "end_turn");
        check("\n\n\n\n", 1, &[], "end_turn");
        check("  STOP here", 100, &["STOP".into()], "stop_sequence");
        check("\n\n\n\n\n\n words", 1, &[], "max_tokens");
    }
}
