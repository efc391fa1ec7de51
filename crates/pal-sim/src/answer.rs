//! An answer on its way out: cut where the request or the window says so, counted, and written as blocks.

use pal_model::{Role, Text, TokenGeneration, escape_into};

use crate::binding::Chain;
use crate::facts::Memo;
use crate::ids::Ids;
use crate::seal::{Sealer, Thought};
use crate::tokens::{self, TOOL_BLOCK_TOKENS};
use crate::{Answer, Said, Stop};

/// What bounds an answer.
pub(crate) struct Limits<'a> {
    /// The most tokens, as asked for.
    pub(crate) max_tokens: u64,
    /// The most tokens, as the window has room.
    pub(crate) room: u64,
    /// Words that end it.
    pub(crate) stop_sequences: &'a [std::borrow::Cow<'a, str>],
    /// Whether the model may think.
    pub(crate) thinks: bool,
    /// How tokens are counted.
    pub(crate) generation: TokenGeneration,
}

/// An answer within its limits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fitted {
    /// The blocks with their tokens.
    pub(crate) said: Vec<(Said, u64)>,
    /// Why it stops.
    pub(crate) stop_reason: &'static str,
    /// The words that ended it.
    pub(crate) stop_sequence: Option<String>,
}

impl Fitted {
    /// All tokens.
    pub(crate) fn tokens(&self) -> u64 {
        self.said.iter().map(|(_, tokens)| tokens).sum()
    }

    /// Tokens of thinking.
    pub(crate) fn thinking_tokens(&self) -> u64 {
        let thinking = self.said.iter().filter(|(said, _)| matches!(said, Said::Thinking(_)));
        thinking.map(|(_, tokens)| tokens).sum()
    }
}

/// Cuts an answer to its limits. A call that does not fit is left out: half a call is none. So is text without a word:
/// it could not be sent back, and thinking after it would be bound to it.
pub(crate) fn fit(answer: Answer, limits: &Limits<'_>) -> Fitted {
    let most = limits.max_tokens.min(limits.room);
    let full = if limits.room < limits.max_tokens { "model_context_window_exceeded" } else { "max_tokens" };
    let mut fitted = Fitted::default();
    let mut used = 0;
    for said in answer.blocks {
        let (said, stop_sequence) = match said {
            Said::Thinking(_) if !limits.thinks => continue,
            Said::Text(text) => until_stop(text, limits.stop_sequences),
            said => (said, None),
        };
        let is_blank = matches!(&said, Said::Text(text) if text.trim().is_empty());
        let tokens = if is_blank { 0 } else { size(&said, limits.generation) };
        if used + tokens > most {
            let said = shorten(said, most - used, limits.generation);
            fitted.said.extend(said.map(|said| {
                let tokens = size(&said, limits.generation);
                (said, tokens)
            }));
            fitted.stop_reason = full;
            return fitted;
        }
        used += tokens;
        if !is_blank {
            fitted.said.push((said, tokens));
        }
        if stop_sequence.is_some() {
            fitted.stop_reason = "stop_sequence";
            fitted.stop_sequence = stop_sequence;
            return fitted;
        }
    }
    let calls = fitted.said.iter().any(|(said, _)| matches!(said, Said::ToolUse { .. }));
    fitted.stop_reason = match answer.stop {
        Some(Stop::MaxTokens) => "max_tokens",
        Some(Stop::PauseTurn) => "pause_turn",
        Some(Stop::Refusal) => "refusal",
        Some(Stop::WindowExceeded) => "model_context_window_exceeded",
        None if calls => "tool_use",
        None => "end_turn",
    };
    fitted
}

/// A text up to the first of the words that end it, and which it was.
fn until_stop(text: String, sequences: &[std::borrow::Cow<'_, str>]) -> (Said, Option<String>) {
    let found = sequences.iter().filter_map(|sequence| text.find(&**sequence).map(|at| (at, sequence)));
    match found.min_by_key(|(at, _)| *at) {
        Some((at, sequence)) => {
            let sequence = sequence.to_string();
            (Said::Text(text[..at].to_owned()), Some(sequence))
        }
        None => (Said::Text(text), None),
    }
}

fn size(said: &Said, generation: TokenGeneration) -> u64 {
    match said {
        Said::Text(text) | Said::Thinking(text) => tokens::count(text, generation),
        Said::ToolUse { name, input, .. } => {
            let words = tokens::words(name) + tokens::words(input);
            tokens::scaled(words, generation) + u64::from(TOOL_BLOCK_TOKENS)
        }
    }
}

fn shorten(said: Said, most: u64, generation: TokenGeneration) -> Option<Said> {
    let cut = |text: &str| {
        let kept = tokens::cut(text, most, generation);
        (!kept.is_empty()).then(|| kept.to_owned())
    };
    match said {
        Said::Text(text) => cut(&text).filter(|kept| !kept.trim().is_empty()).map(Said::Text),
        Said::Thinking(text) => cut(&text).map(Said::Thinking),
        Said::ToolUse { .. } => None,
    }
}

/// Writes blocks, and signs the thinking among them.
pub(crate) struct Writer<'a> {
    /// Where ids come from.
    pub(crate) ids: &'a mut Ids,
    /// What signs.
    pub(crate) sealer: Sealer,
    /// What is known of blocks.
    pub(crate) memo: &'a mut Memo,
    /// Where the conversation stands; goes on with each block.
    pub(crate) chain: &'a mut Chain,
    /// A thought of this model for this client, to be filled in.
    pub(crate) thought: Thought,
    /// Whether thinking is shown.
    pub(crate) shows_thinking: bool,
}

impl Writer<'_> {
    /// The blocks of an answer.
    pub(crate) fn blocks(&mut self, fitted: &Fitted) -> Vec<Text> {
        fitted.said.iter().map(|(said, tokens)| Text::from(self.block(said, *tokens))).collect()
    }

    fn block(&mut self, said: &Said, tokens: u64) -> String {
        let mut raw = String::new();
        match said {
            Said::Text(text) => {
                raw.push_str(r#"{"type":"text","text":"#);
                escape_into(&mut raw, text);
                raw.push('}');
            }
            Said::Thinking(text) => return self.thinking(text, tokens),
            Said::ToolUse { id, name, input } => {
                raw.push_str(r#"{"type":"tool_use","id":"#);
                escape_into(&mut raw, &id.clone().unwrap_or_else(|| self.ids.id("toolu")));
                raw.push_str(r#","name":"#);
                escape_into(&mut raw, name);
                raw.push_str(r#","input":"#);
                raw.push_str(if input.trim().is_empty() { "{}" } else { input });
                raw.push('}');
            }
        }
        let binding = self.memo.block(&raw).binding;
        self.chain.push(Role::Assistant, binding);
        raw
    }

    fn thinking(&mut self, text: &str, tokens: u64) -> String {
        let shown = if self.shows_thinking { text } else { "" };
        let prefix = self.chain.enter(Role::Assistant);
        let thought = Thought {
            id: self.ids.number(),
            previous: self.chain.last_thought(),
            tokens: u32::try_from(tokens).unwrap_or(u32::MAX),
            ..self.thought
        };
        self.chain.think(thought.id);
        let mut raw = String::from(r#"{"type":"thinking","thinking":"#);
        escape_into(&mut raw, shown);
        raw.push_str(r#","signature":"#);
        escape_into(&mut raw, &self.sealer.thought(&thought, shown, prefix));
        raw.push('}');
        raw
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::borrow::Cow;

    fn fitted(answer: Answer, max_tokens: u64, room: u64, stops: &[Cow<'_, str>]) -> (String, &'static str) {
        let limits = Limits {
            max_tokens,
            room,
            stop_sequences: stops,
            thinks: false,
            generation: TokenGeneration::O200k,
        };
        let fitted = fit(answer, &limits);
        assert!(fitted.tokens() <= max_tokens.min(room));
        let said = fitted.said.iter().map(|(said, _)| match said {
            Said::Text(text) | Said::Thinking(text) => text.clone(),
            Said::ToolUse { name, .. } => format!("<{name}>"),
        });
        (said.collect(), fitted.stop_reason)
    }

    fn answer() -> Answer {
        let call = Said::ToolUse { id: None, name: "Read".into(), input: Text::from("{}") };
        let blocks = vec![Said::Thinking("hm".into()), Said::Text("one two three four".into()), call];
        Answer { blocks, stop: None }
    }

    #[test]
    fn answers_end_where_they_must() {
        assert_eq!(fitted(answer(), 100, 100, &[]), ("one two three four<Read>".into(), "tool_use"));
        assert_eq!(fitted(answer(), 2, 100, &[]), ("one two".into(), "max_tokens"));
        assert_eq!(fitted(answer(), 10, 100, &[]), ("one two three four".into(), "max_tokens"));
        assert_eq!(fitted(answer(), 100, 2, &[]), ("one two".into(), "model_context_window_exceeded"));
        assert_eq!(fitted(answer(), 0, 100, &[]), (String::new(), "max_tokens"));
        let stops = ["four".into(), " three".into()];
        assert_eq!(fitted(answer(), 100, 100, &stops), ("one two".into(), "stop_sequence"));
        let refusal = Answer { blocks: Vec::new(), stop: Some(Stop::Refusal) };
        assert_eq!(fitted(refusal, 100, 100, &[]), (String::new(), "refusal"));
    }

    #[test]
    fn text_without_a_word_is_not_said() {
        let said = |text: &str| Answer { blocks: vec![Said::Text(text.into())], stop: None };
        let check = |text: &str, max_tokens, stops: &[Cow<'_, str>], stop_reason| {
            let limits = Limits {
                max_tokens,
                room: 100,
                stop_sequences: stops,
                thinks: false,
                generation: TokenGeneration::O200k,
            };
            let expected = Fitted {
                stop_reason,
                stop_sequence: stops.first().map(|stop| stop.to_string()),
                ..Fitted::default()
            };
            assert_eq!(fit(said(text), &limits), expected, "{text:?}");
        };
        check("", 100, &[], "end_turn");
        check(" \n\t\u{a0}", 100, &[], "end_turn");
        check("\n\n\n\n", 1, &[], "end_turn");
        check("  STOP here", 100, &["STOP".into()], "stop_sequence");
        check("\n\n\n\n\n\n words", 1, &[], "max_tokens");
    }
}
