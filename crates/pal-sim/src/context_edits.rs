//! Context edits that the provider applies on request: clearing old tool results and old thinking.
//!
//! The client keeps its full history and resends it; only the rendered prompt changes.

use std::borrow::Cow;

use pal_model::{ModelCard, Role, TokenGeneration, escape_into};
use pal_wire::JsonNode;
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Value, json};

use crate::block_facts::{BlockFacts, BlockKind, BlockMemo};
use crate::parsed_prompt::{ParsedPrompt, PromptBlock, PromptLayer};

/// A context edit requested by the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ContextEdit<'a> {
    /// Replaces old tool results with a placeholder.
    ClearToolUses(ToolUseClearing<'a>),
    /// Removes old thinking.
    ClearThinking {
        /// Number of turns whose thinking is kept; `None` keeps all.
        keep: Option<u64>,
    },
    /// Replaces the context with a summary.
    Compact {
        /// Prompt tokens that trigger it.
        trigger: u64,
        /// Stop after the summary.
        pauses: bool,
        /// Instructions for the summary.
        instructions: Option<Cow<'a, str>>,
    },
}

/// Parameters of clearing tool results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ToolUseClearing<'a> {
    trigger: ClearingTrigger,
    keep: u64,
    at_least: u64,
    exclude: FxHashSet<Cow<'a, str>>,
    inputs: InputClearing<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClearingTrigger {
    Tokens(u64),
    Uses(u64),
}

/// Tools whose inputs are cleared as well.
#[derive(Clone, Debug, PartialEq, Eq)]
enum InputClearing<'a> {
    Keep,
    ClearAll,
    ClearNamed(FxHashSet<Cow<'a, str>>),
}

impl<'a> ContextEdit<'a> {
    /// Parses a validated edit.
    pub(crate) fn read(edit: JsonNode<'a>) -> Option<ContextEdit<'a>> {
        let value = |name: &str| {
            let value = edit.get(name).and_then(|part| part.get("value")).and_then(JsonNode::integer);
            value.map(i64::unsigned_abs)
        };
        let kind = edit.get_text("type")?;
        if kind.is("clear_thinking_20251015") {
            let keeps_all = edit.get_text("keep").is_some()
                || edit.get("keep").and_then(|keep| keep.get_text("type")).is_some_and(|kind| kind.is("all"));
            return Some(ContextEdit::ClearThinking {
                keep: (!keeps_all).then(|| value("keep").unwrap_or(1)),
            });
        }
        if kind.is("compact_20260112") {
            return Some(ContextEdit::Compact {
                trigger: value("trigger").unwrap_or(150_000),
                pauses: edit.get("pause_after_compaction").is_some_and(JsonNode::is_true),
                instructions: edit.get_text("instructions").map(|text| text.decoded()),
            });
        }
        let names =
            |node: JsonNode<'a>| node.items().filter_map(JsonNode::text).map(|name| name.decoded()).collect();
        let by_uses = edit.get("trigger").and_then(|trigger| trigger.get_text("type"));
        let by_uses = by_uses.is_some_and(|kind| kind.is("tool_uses"));
        let trigger = value("trigger").unwrap_or(100_000);
        Some(ContextEdit::ClearToolUses(ToolUseClearing {
            trigger: if by_uses { ClearingTrigger::Uses(trigger) } else { ClearingTrigger::Tokens(trigger) },
            keep: value("keep").unwrap_or(3),
            at_least: value("clear_at_least").unwrap_or(0),
            exclude: edit.get("exclude_tools").map(names).unwrap_or_default(),
            inputs: match edit.get("clear_tool_inputs") {
                Some(inputs) if inputs.is_true() => InputClearing::ClearAll,
                Some(inputs) => InputClearing::ClearNamed(names(inputs)),
                None => InputClearing::Keep,
            },
        }))
    }
}

/// Removes content that is never rendered: expired turn-scoped messages, results deleted in the cache and, on
/// models that forget it, the thinking of earlier turns. Returns the tokens deleted in the cache.
pub(crate) fn remove_unrendered(prompt: &mut ParsedPrompt<'_>, card: &ModelCard) -> u64 {
    let is_users = |piece: &PromptBlock<'_>| piece.layer == PromptLayer::Messages && piece.role == Role::User;
    let last_user = prompt.pieces.iter().rfind(|piece| is_users(piece)).map_or(0, |piece| piece.message);
    let is_words = |piece: &PromptBlock<'_>| is_users(piece) && piece.facts.kind != BlockKind::ToolResult;
    let turn = prompt.pieces.iter().rfind(|piece| is_words(piece)).map_or(0, |piece| piece.message);
    for piece in prompt.pieces.iter_mut().filter(|piece| piece.layer == PromptLayer::Messages) {
        let is_over = piece.is_turn_scoped && piece.message < last_user;
        let is_stripped = card.can.forgets_thinking && piece.facts.kind.is_thinking() && piece.message < turn;
        piece.is_rendered &= !(is_over || is_stripped);
    }
    if card.can.cache_edits { delete_cached(prompt, card.generation) } else { 0 }
}

/// Deletes results in place: they stay in the prefix hash and lose their tokens.
fn delete_cached(prompt: &mut ParsedPrompt<'_>, generation: TokenGeneration) -> u64 {
    let edits =
        prompt.pieces.iter().filter(|piece| piece.facts.kind == BlockKind::CacheEdits && piece.is_rendered);
    let deleted: FxHashSet<String> = edits.flat_map(|piece| references(&piece.raw)).collect();
    let mut tokens = 0;
    let results = prompt.pieces.iter_mut().filter(|piece| piece.facts.kind == BlockKind::ToolResult);
    for piece in results.filter(|piece| piece.is_rendered && deleted.contains(&*piece.name)) {
        tokens += piece.facts.tokens(generation);
        piece.facts.clear_tokens();
        piece.raw = Cow::Owned(cleared_result(&piece.id));
    }
    tokens
}

/// References that a `cache_edits` block deletes.
fn references(raw: &str) -> Vec<String> {
    let block: Value = serde_json::from_str(raw).unwrap_or_default();
    let edits = block["edits"].as_array().map(Vec::as_slice).unwrap_or_default();
    edits.iter().filter_map(|edit| edit["cache_reference"].as_str().map(str::to_owned)).collect()
}

/// Applies the clearing edits in order. Returns the applied edits in wire form.
pub(crate) fn clear(
    prompt: &mut ParsedPrompt<'_>,
    edits: &[ContextEdit<'_>],
    card: &ModelCard,
    memo: &mut BlockMemo,
) -> Vec<Value> {
    let generation = card.generation;
    let done = edits.iter().filter_map(|edit| match edit {
        ContextEdit::ClearThinking { keep } => keep.and_then(|keep| clear_thinking(prompt, keep, generation)),
        ContextEdit::ClearToolUses(how) => clear_tool_uses(prompt, how, generation, memo),
        ContextEdit::Compact { .. } => None,
    });
    done.collect()
}

/// Clears the thinking of all but the newest turns that think. A turn lasts until the next user message that
/// is not a tool result.
fn clear_thinking(prompt: &mut ParsedPrompt<'_>, keep: u64, generation: TokenGeneration) -> Option<Value> {
    let thinks = |piece: &PromptBlock<'_>| piece.is_rendered && piece.facts.kind.is_thinking();
    let speaks = |piece: &PromptBlock<'_>| {
        piece.layer == PromptLayer::Messages
            && piece.role == Role::User
            && !matches!(piece.facts.kind, BlockKind::ToolResult | BlockKind::CacheEdits)
    };
    // Last thinking message of each turn that thinks.
    let mut turns: Vec<usize> = Vec::new();
    let mut is_new = true;
    for piece in &prompt.pieces {
        if speaks(piece) {
            is_new = true;
        } else if thinks(piece) {
            match turns.last_mut().filter(|_| !is_new) {
                Some(last) => *last = piece.message,
                None => turns.push(piece.message),
            }
            is_new = false;
        }
    }
    let n_cleared = turns.len().saturating_sub(usize::try_from(keep).unwrap_or(usize::MAX));
    let last_cleared = *turns.get(n_cleared.checked_sub(1)?)?;
    let before = prompt.tokens(generation);
    for piece in prompt.pieces.iter_mut().filter(|piece| thinks(piece) && piece.message <= last_cleared) {
        piece.is_rendered = false;
    }
    Some(json!({
        "type": "clear_thinking_20251015",
        "cleared_thinking_turns": n_cleared,
        "cleared_input_tokens": before.saturating_sub(prompt.tokens(generation)),
    }))
}

/// A shorter replacement for a block.
struct BlockReplacement {
    at: usize,
    raw: String,
    facts: BlockFacts,
}

/// Clears old tool results step by step: at the end of each user message, where a request could have been
/// sent, it clears what exceeded the trigger then. Clearing thus depends only on earlier content, so a later
/// request finds the same results cleared and reads their cache until the next step is due.
fn clear_tool_uses(
    prompt: &mut ParsedPrompt<'_>,
    how: &ToolUseClearing<'_>,
    generation: TokenGeneration,
    memo: &mut BlockMemo,
) -> Option<Value> {
    let pieces = &prompt.pieces;
    let mut calls: FxHashMap<&str, (usize, &str)> = FxHashMap::default();
    let mut results: Vec<usize> = Vec::new();
    // Tokens outside any block come before all blocks.
    let of_pieces: u64 =
        pieces.iter().filter(|piece| piece.is_rendered).map(|piece| piece.facts.tokens(generation)).sum();
    let mut tokens = prompt.tokens(generation).saturating_sub(of_pieces);
    let mut cleared = ClearedResults::default();
    for (at, piece) in pieces.iter().enumerate().filter(|(_, piece)| piece.is_rendered) {
        tokens += piece.facts.tokens(generation);
        match piece.facts.kind {
            BlockKind::ToolUse => {
                calls.insert(&*piece.id, (at, &*piece.name));
            }
            BlockKind::ToolResult => results.push(at),
            _ => {}
        }
        let ends_message = pieces.get(at + 1).is_none_or(|next| next.message != piece.message);
        let may_be_last = piece.layer == PromptLayer::Messages && piece.role == Role::User && ends_message;
        let is_due = match how.trigger {
            ClearingTrigger::Tokens(most) => tokens > most,
            ClearingTrigger::Uses(most) => (calls.len() - cleared.n_uses) as u64 > most,
        };
        if may_be_last && is_due {
            let n_old = results.len().saturating_sub(usize::try_from(how.keep).unwrap_or(usize::MAX));
            let old = results.get(cleared.n_seen..n_old).unwrap_or_default();
            let step = step(&ClearableResults { pieces, results: old, calls: &calls }, how, generation, memo);
            if step.n_uses > 0 && step.freed >= how.at_least {
                tokens = tokens.saturating_sub(step.freed);
                cleared.take(step, n_old);
            }
        }
    }
    if cleared.n_uses == 0 {
        return None;
    }
    let ClearedResults { n_uses, freed, shorter, .. } = cleared;
    for BlockReplacement { at, raw, facts } in shorter {
        if let Some(piece) = prompt.pieces.get_mut(at) {
            piece.raw = Cow::Owned(raw);
            piece.facts = facts;
        }
    }
    Some(json!({
        "type": "clear_tool_uses_20250919",
        "cleared_tool_uses": n_uses,
        "cleared_input_tokens": freed,
    }))
}

/// Outcome of clearing steps.
#[derive(Default)]
struct ClearedResults {
    n_uses: usize,
    freed: u64,
    shorter: Vec<BlockReplacement>,
    /// Results handled by earlier steps.
    n_seen: usize,
}

impl ClearedResults {
    fn take(&mut self, step: ClearedResults, n_seen: usize) {
        self.n_uses += step.n_uses;
        self.freed += step.freed;
        self.shorter.extend(step.shorter);
        self.n_seen = n_seen;
    }
}

/// Results that may be cleared, with their calls.
struct ClearableResults<'a, 'p> {
    pieces: &'a [PromptBlock<'p>],
    results: &'a [usize],
    calls: &'a FxHashMap<&'a str, (usize, &'a str)>,
}

/// Computes the effect of clearing these results.
fn step(
    old: &ClearableResults<'_, '_>,
    how: &ToolUseClearing<'_>,
    generation: TokenGeneration,
    memo: &mut BlockMemo,
) -> ClearedResults {
    let ClearableResults { pieces, results, calls } = old;
    let mut step = ClearedResults::default();
    for (at, result) in results.iter().filter_map(|at| Some((*at, pieces.get(*at)?))) {
        let call = calls.get(&*result.id).copied();
        if call.is_some_and(|(_, name)| how.exclude.contains(name)) {
            continue;
        }
        let input = call.filter(|(_, name)| how.inputs.has(name));
        let input = input.and_then(|(at, _)| pieces.get(at).map(|piece| (at, cleared_call(piece))));
        let before = step.shorter.len();
        for (at, raw) in [Some((at, cleared_result(&result.id))), input].into_iter().flatten() {
            let facts = memo.block(&raw);
            let old = pieces.get(at).map_or(0, |piece| piece.facts.tokens(generation));
            if let Some(gain) = old.checked_sub(facts.tokens(generation)).filter(|gain| *gain > 0) {
                step.freed += gain;
                step.shorter.push(BlockReplacement { at, raw, facts });
            }
        }
        step.n_uses += usize::from(step.shorter.len() > before);
    }
    step
}

impl InputClearing<'_> {
    fn has(&self, name: &str) -> bool {
        match self {
            InputClearing::Keep => false,
            InputClearing::ClearAll => true,
            InputClearing::ClearNamed(names) => names.contains(name),
        }
    }
}

/// Placeholder for a cleared result.
fn cleared_result(id: &str) -> String {
    let mut raw = String::from(r#"{"type":"tool_result","tool_use_id":"#);
    escape_into(&mut raw, id);
    raw.push_str(r#","content":"[Old tool result content cleared]"}"#);
    raw
}

/// Call with its input cleared.
fn cleared_call(piece: &PromptBlock<'_>) -> String {
    let mut raw = String::from(r#"{"type":"tool_use","id":"#);
    escape_into(&mut raw, &piece.id);
    raw.push_str(r#","name":"#);
    escape_into(&mut raw, &piece.name);
    raw.push_str(r#","input":{}}"#);
    raw
}
