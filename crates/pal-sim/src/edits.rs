//! What the provider does to a context before the model sees it: clearing old results and old thinking, on request.
//!
//! The client's history stays as it is and comes again whole with the next request; only what is rendered changes.

use std::borrow::Cow;

use pal_model::{Card, Role, TokenGeneration, escape_into};
use pal_wire::Node;
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Value, json};

use crate::facts::{Facts, Kind, Memo};
use crate::prompt::{Layer, Piece, Prompt};

/// An edit that a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Edit<'a> {
    /// Old results of tools become a placeholder.
    ClearToolUses(ClearToolUses<'a>),
    /// Old thinking goes.
    ClearThinking {
        /// Turns whose thinking stays; none for all.
        keep: Option<u64>,
    },
    /// The whole context becomes a summary.
    Compact {
        /// Tokens of the prompt from which on it happens.
        trigger: u64,
        /// Whether the answer ends with the summary.
        pauses: bool,
        /// What the summary shall hold.
        instructions: Option<Cow<'a, str>>,
    },
}

/// How results are cleared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClearToolUses<'a> {
    trigger: Trigger,
    keep: u64,
    at_least: u64,
    exclude: FxHashSet<Cow<'a, str>>,
    inputs: Inputs<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trigger {
    Tokens(u64),
    Uses(u64),
}

/// Whose inputs are cleared, too.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Inputs<'a> {
    Nobodys,
    Everybodys,
    Of(FxHashSet<Cow<'a, str>>),
}

impl<'a> Edit<'a> {
    /// Reads an edit whose shape was checked.
    pub(crate) fn read(edit: Node<'a>) -> Option<Edit<'a>> {
        let value = |name: &str| {
            let value = edit.get(name).and_then(|part| part.get("value")).and_then(Node::integer);
            value.map(i64::unsigned_abs)
        };
        let kind = edit.get_text("type")?;
        if kind.is("clear_thinking_20251015") {
            let keeps_all = edit.get_text("keep").is_some()
                || edit.get("keep").and_then(|keep| keep.get_text("type")).is_some_and(|kind| kind.is("all"));
            return Some(Edit::ClearThinking { keep: (!keeps_all).then(|| value("keep").unwrap_or(1)) });
        }
        if kind.is("compact_20260112") {
            return Some(Edit::Compact {
                trigger: value("trigger").unwrap_or(150_000),
                pauses: edit.get("pause_after_compaction").is_some_and(Node::is_true),
                instructions: edit.get_text("instructions").map(|text| text.decoded()),
            });
        }
        let names = |node: Node<'a>| node.items().filter_map(Node::text).map(|name| name.decoded()).collect();
        let by_uses = edit.get("trigger").and_then(|trigger| trigger.get_text("type"));
        let by_uses = by_uses.is_some_and(|kind| kind.is("tool_uses"));
        let trigger = value("trigger").unwrap_or(100_000);
        Some(Edit::ClearToolUses(ClearToolUses {
            trigger: if by_uses { Trigger::Uses(trigger) } else { Trigger::Tokens(trigger) },
            keep: value("keep").unwrap_or(3),
            at_least: value("clear_at_least").unwrap_or(0),
            exclude: edit.get("exclude_tools").map(names).unwrap_or_default(),
            inputs: match edit.get("clear_tool_inputs") {
                Some(inputs) if inputs.is_true() => Inputs::Everybodys,
                Some(inputs) => Inputs::Of(names(inputs)),
                None => Inputs::Nobodys,
            },
        }))
    }
}

/// Takes out what is never rendered: turn-scoped messages whose turn is over, results deleted in the cache, and, on
/// models that forget it, the thinking of earlier turns. The tokens that were deleted in the cache.
pub(crate) fn settle(prompt: &mut Prompt<'_>, card: &Card) -> u64 {
    let is_users = |piece: &Piece<'_>| piece.layer == Layer::Messages && piece.role == Role::User;
    let last_user = prompt.pieces.iter().rfind(|piece| is_users(piece)).map_or(0, |piece| piece.message);
    let is_words = |piece: &Piece<'_>| is_users(piece) && piece.facts.kind != Kind::ToolResult;
    let turn = prompt.pieces.iter().rfind(|piece| is_words(piece)).map_or(0, |piece| piece.message);
    for piece in prompt.pieces.iter_mut().filter(|piece| piece.layer == Layer::Messages) {
        let is_over = piece.is_turn_scoped && piece.message < last_user;
        let is_stripped = card.can.forgets_thinking && piece.facts.kind.is_thinking() && piece.message < turn;
        piece.is_rendered &= !(is_over || is_stripped);
    }
    if card.can.cache_edits { delete_cached(prompt, card.generation) } else { 0 }
}

/// Deletes results in place: they keep their part in the hash of the prefix and lose their tokens.
fn delete_cached(prompt: &mut Prompt<'_>, generation: TokenGeneration) -> u64 {
    let edits =
        prompt.pieces.iter().filter(|piece| piece.facts.kind == Kind::CacheEdits && piece.is_rendered);
    let deleted: FxHashSet<String> = edits.flat_map(|piece| references(&piece.raw)).collect();
    let mut tokens = 0;
    let results = prompt.pieces.iter_mut().filter(|piece| piece.facts.kind == Kind::ToolResult);
    for piece in results.filter(|piece| piece.is_rendered && deleted.contains(&*piece.name)) {
        tokens += piece.facts.tokens(generation);
        piece.facts.hollow();
        piece.raw = Cow::Owned(cleared_result(&piece.id));
    }
    tokens
}

/// The references that a block of cache edits deletes.
fn references(raw: &str) -> Vec<String> {
    let block: Value = serde_json::from_str(raw).unwrap_or_default();
    let edits = block["edits"].as_array().map(Vec::as_slice).unwrap_or_default();
    edits.iter().filter_map(|edit| edit["cache_reference"].as_str().map(str::to_owned)).collect()
}

/// Applies the clearing edits, in order; what each did, in the words of the wire.
pub(crate) fn clear(prompt: &mut Prompt<'_>, edits: &[Edit<'_>], card: &Card, memo: &mut Memo) -> Vec<Value> {
    let generation = card.generation;
    let done = edits.iter().filter_map(|edit| match edit {
        Edit::ClearThinking { keep } => keep.and_then(|keep| clear_thinking(prompt, keep, generation)),
        Edit::ClearToolUses(how) => clear_tool_uses(prompt, how, generation, memo),
        Edit::Compact { .. } => None,
    });
    done.collect()
}

/// Clears the thinking of all turns but the newest ones that think. A turn is all that the model says until a person
/// speaks again: a loop of tools is one turn.
fn clear_thinking(prompt: &mut Prompt<'_>, keep: u64, generation: TokenGeneration) -> Option<Value> {
    let thinks = |piece: &Piece<'_>| piece.is_rendered && piece.facts.kind.is_thinking();
    let speaks = |piece: &Piece<'_>| {
        piece.layer == Layer::Messages
            && piece.role == Role::User
            && !matches!(piece.facts.kind, Kind::ToolResult | Kind::CacheEdits)
    };
    // The last thinking message of each turn that thinks.
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

/// A block that is to become shorter.
struct Shorter {
    at: usize,
    raw: String,
    facts: Facts,
}

/// Clears old results, step by step: at the end of each message of the user, where a request could have left, what was
/// then too much is cleared. So what is cleared depends on what stands before it alone: a later request finds the same
/// results cleared and reads their cache, until the next step is due.
fn clear_tool_uses(
    prompt: &mut Prompt<'_>,
    how: &ClearToolUses<'_>,
    generation: TokenGeneration,
    memo: &mut Memo,
) -> Option<Value> {
    let pieces = &prompt.pieces;
    let mut calls: FxHashMap<&str, (usize, &str)> = FxHashMap::default();
    let mut results: Vec<usize> = Vec::new();
    // What no piece accounts for stands before all of them.
    let of_pieces: u64 =
        pieces.iter().filter(|piece| piece.is_rendered).map(|piece| piece.facts.tokens(generation)).sum();
    let mut tokens = prompt.tokens(generation).saturating_sub(of_pieces);
    let mut cleared = Cleared::default();
    for (at, piece) in pieces.iter().enumerate().filter(|(_, piece)| piece.is_rendered) {
        tokens += piece.facts.tokens(generation);
        match piece.facts.kind {
            Kind::ToolUse => {
                calls.insert(&*piece.id, (at, &*piece.name));
            }
            Kind::ToolResult => results.push(at),
            _ => {}
        }
        let ends_message = pieces.get(at + 1).is_none_or(|next| next.message != piece.message);
        let may_be_last = piece.layer == Layer::Messages && piece.role == Role::User && ends_message;
        let is_due = match how.trigger {
            Trigger::Tokens(most) => tokens > most,
            Trigger::Uses(most) => (calls.len() - cleared.n_uses) as u64 > most,
        };
        if may_be_last && is_due {
            let n_old = results.len().saturating_sub(usize::try_from(how.keep).unwrap_or(usize::MAX));
            let old = results.get(cleared.n_seen..n_old).unwrap_or_default();
            let step = step(&Old { pieces, results: old, calls: &calls }, how, generation, memo);
            if step.n_uses > 0 && step.freed >= how.at_least {
                tokens = tokens.saturating_sub(step.freed);
                cleared.take(step, n_old);
            }
        }
    }
    if cleared.n_uses == 0 {
        return None;
    }
    let Cleared { n_uses, freed, shorter, .. } = cleared;
    for Shorter { at, raw, facts } in shorter {
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

/// What was cleared.
#[derive(Default)]
struct Cleared {
    n_uses: usize,
    freed: u64,
    shorter: Vec<Shorter>,
    /// Results that earlier steps have dealt with.
    n_seen: usize,
}

impl Cleared {
    fn take(&mut self, step: Cleared, n_seen: usize) {
        self.n_uses += step.n_uses;
        self.freed += step.freed;
        self.shorter.extend(step.shorter);
        self.n_seen = n_seen;
    }
}

/// Results that may be cleared, and the calls that they answer.
struct Old<'a, 'p> {
    pieces: &'a [Piece<'p>],
    results: &'a [usize],
    calls: &'a FxHashMap<&'a str, (usize, &'a str)>,
}

/// What clearing these results would do.
fn step(old: &Old<'_, '_>, how: &ClearToolUses<'_>, generation: TokenGeneration, memo: &mut Memo) -> Cleared {
    let Old { pieces, results, calls } = old;
    let mut step = Cleared::default();
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
                step.shorter.push(Shorter { at, raw, facts });
            }
        }
        step.n_uses += usize::from(step.shorter.len() > before);
    }
    step
}

impl Inputs<'_> {
    fn has(&self, name: &str) -> bool {
        match self {
            Inputs::Nobodys => false,
            Inputs::Everybodys => true,
            Inputs::Of(names) => names.contains(name),
        }
    }
}

/// What stands in place of a result that was cleared.
fn cleared_result(id: &str) -> String {
    let mut raw = String::from(r#"{"type":"tool_result","tool_use_id":"#);
    escape_into(&mut raw, id);
    raw.push_str(r#","content":"[Old tool result content cleared]"}"#);
    raw
}

/// What stands in place of a call whose input was cleared.
fn cleared_call(piece: &Piece<'_>) -> String {
    let mut raw = String::from(r#"{"type":"tool_use","id":"#);
    escape_into(&mut raw, &piece.id);
    raw.push_str(r#","name":"#);
    escape_into(&mut raw, &piece.name);
    raw.push_str(r#","input":{}}"#);
    raw
}
