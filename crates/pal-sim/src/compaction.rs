//! Summaries that the provider makes: beyond a threshold, inside an answer; or on demand, instead of one.
//!
//! The words come from the model. The block carries where the conversation stood, so that thinking which is kept stays
//! valid.

use std::borrow::Cow;

use pal_model::{Iteration, Role, Text, Usage, escape_into};
use serde_json::{Value, json};

use crate::answer::{Limits, fit};
use crate::binding::{Chain, tool_changes_of};
use crate::cache::Served;
use crate::edits::Edit;
use crate::facts::Kind;
use crate::prompt::{Layer, Piece};
use crate::simulator::Simulator;
use crate::tokens;
use crate::turn::{Outcome, Turn};
use crate::usage::pass;
use crate::{Said, Stop};

/// What the model is told where the request says nothing about the summary.
const INSTRUCTIONS: &str = "Summarize the conversation so far, so that the work can go on from the summary alone: what \
    was asked, what was done and decided, which files matter, what failed, what is open.";

/// A pass that was to make a summary.
struct Summary {
    /// The words; none if the model did something else.
    words: Option<String>,
    stop_reason: &'static str,
    served: Served,
    pass: Iteration,
}

impl Summary {
    /// Of a history that the model cannot take in: nothing is read, and nothing is written.
    fn too_long() -> Summary {
        let served = Served::default();
        Summary {
            words: None,
            stop_reason: "model_context_window_exceeded",
            pass: pass("compaction", &served, 0),
            served,
        }
    }
}

impl Simulator {
    /// A request for a summary and nothing else.
    pub(crate) fn compact_on_demand(&mut self, turn: &Turn<'_>, instructions: Option<&str>) -> Outcome {
        let summary = self.summarize(turn, instructions);
        let block = summary.words.map(|words| self.signed_block(turn, &words));
        Outcome {
            stop_reason: if block.is_some() { "compaction" } else { summary.stop_reason },
            blocks: block.into_iter().map(Text::from).collect(),
            stop_sequence: None,
            thinking_tokens: 0,
            usage: Usage { iterations: Some(vec![summary.pass]), ..beside_nothing() },
            served: summary.served,
        }
    }

    /// Replaces the context by a summary, if the request wants that and the context is large enough; the pass, the
    /// block, and whether the answer pauses there. Afterwards the prompt of the turn is the short one.
    pub(crate) fn compact_at_threshold(&mut self, turn: &mut Turn<'_>, tokens: u64) -> Option<Compacted> {
        let edits = turn.wanted.edits.iter().flatten();
        let (trigger, pauses, instructions) = edits
            .filter_map(|edit| match edit {
                Edit::Compact { trigger, pauses, instructions } => {
                    Some((*trigger, *pauses, instructions.as_deref().map(str::to_owned)))
                }
                _ => None,
            })
            .next()?;
        if tokens < trigger {
            return None;
        }
        let summary = self.summarize(turn, instructions.as_deref());
        let state = turn.chain.summarized(turn.head, turn.card.can.bound_thinking, turn.incoming.scope);
        let state = crate::seal::Summarized { last_role: None, ..state };
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
            turn.chain = Chain::after_summary(&state, turn.head, facts.binding);
            replace_messages(turn, block.clone(), facts);
        }
        let pauses = pauses && summary.words.is_some();
        Some(Compacted { block, pass: summary.pass, served: summary.served, pauses })
    }

    fn summarize(&mut self, turn: &Turn<'_>, instructions: Option<&str>) -> Summary {
        let rendered = turn.prompt.render(&turn.card);
        if rendered.tokens > turn.card.window {
            return Summary::too_long();
        }
        let mut served = self.cache.serve(turn.incoming.now, &rendered, turn.card.look_back);
        let instructions = instructions.unwrap_or(INSTRUCTIONS);
        let asked = tokens::count(instructions, turn.card.generation);
        served.uncached += asked;
        let max_tokens = turn.wanted.max_tokens.unwrap_or(0);
        let mut ask = turn.prompt.ask(&turn.card.model);
        ask.max_tokens = max_tokens;
        ask.compaction = Some(Cow::Borrowed(instructions));
        let answer = self.model.answer(&ask);
        let limits = Limits {
            max_tokens,
            room: turn.card.window.saturating_sub(rendered.tokens + asked),
            stop_sequences: &[],
            thinks: false,
            generation: turn.card.generation,
        };
        let is_refused = matches!(answer.stop, Some(Stop::Refusal));
        let fitted = fit(answer, &limits);
        let words: String = fitted.said.iter().filter_map(|(said, _)| words_of(said)).collect();
        // A summary that was cut off is none, and neither is a call of a tool.
        let is_whole = fitted.stop_reason == "end_turn" && !is_refused && !words.trim().is_empty();
        Summary {
            words: is_whole.then_some(words),
            stop_reason: fitted.stop_reason,
            pass: pass("compaction", &served, fitted.tokens()),
            served,
        }
    }

    fn signed_block(&self, turn: &Turn<'_>, words: &str) -> String {
        let changes = Value::Array(tool_changes(turn));
        let state = turn.chain.summarized(turn.head, turn.card.can.bound_thinking, turn.incoming.scope);
        let unsigned = json!({"tool_changes": changes}).to_string();
        let signature = self.sealer.summary(&state, words, &tool_changes_of(&unsigned));
        json!({"type": "compaction", "content": words, "signature": signature, "tool_changes": changes})
            .to_string()
    }
}

/// A context that became a summary, or was to.
pub(crate) struct Compacted {
    /// The block.
    pub(crate) block: String,
    /// What it took.
    pub(crate) pass: Iteration,
    /// What the cache did for it.
    pub(crate) served: Served,
    /// Whether the answer ends here.
    pub(crate) pauses: bool,
}

/// The totals of a response without a message pass.
pub(crate) fn beside_nothing() -> Usage {
    Usage { cache_creation: Some(pal_model::CacheCreation::default()), ..Usage::default() }
}

fn words_of(said: &Said) -> Option<&str> {
    match said {
        Said::Text(text) => Some(text),
        Said::Thinking(_) | Said::ToolUse { .. } => None,
    }
}

/// The changes of tools in the range that is summarised, those of an earlier summary included.
fn tool_changes(turn: &Turn<'_>) -> Vec<Value> {
    let messages = turn.prompt.rendered().filter(|piece| piece.layer == Layer::Messages);
    messages
        .filter_map(|piece| {
            let block: Value = match piece.facts.kind {
                Kind::ToolAddition | Kind::ToolRemoval | Kind::Compaction => {
                    serde_json::from_str(&piece.raw).ok()?
                }
                _ => return None,
            };
            match piece.facts.kind {
                Kind::Compaction => block["tool_changes"].as_array().cloned(),
                _ => Some(vec![block]),
            }
        })
        .flatten()
        .collect()
}

/// Nothing of the messages is rendered but the summary, which opens the answer.
fn replace_messages(turn: &mut Turn<'_>, block: String, facts: crate::facts::Facts) {
    let mut next = 0;
    for piece in turn.prompt.pieces.iter_mut().filter(|piece| piece.layer == Layer::Messages) {
        piece.is_rendered = false;
        next = piece.message + 1;
    }
    turn.prompt.pieces.push(Piece {
        layer: Layer::Messages,
        role: Role::Assistant,
        message: next,
        index: 0,
        raw: Cow::Owned(block),
        facts,
        mark: None,
        id: Cow::Borrowed(""),
        name: Cow::Borrowed(""),
        is_turn_scoped: false,
        is_rendered: true,
    });
}
