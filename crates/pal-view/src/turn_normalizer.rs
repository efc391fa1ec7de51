//! Normalization of one turn: the model's response and the entries that follow it, or the entries before the
//! first response.
//!
//! The branch is cut into turns where a request left or another response began, and the result for a turn
//! does not depend on later turns. So old turns are never visited again, and for any log the resulting
//! messages follow the provider's rules (§1.7–1.16).
//!
//! Notices of the program go where the card has a place for them (§6.4): its own sentences as messages of the
//! system, behind all user content of the turn, where the provider accepts such messages and the model has
//! spoken already; elsewhere, and whenever they quote other sources, as reminders inside the nearest result
//! or behind it. A system message must be the last one or be followed by the model's; if the user's side
//! speaks next because no response came, the rope inserts a short assistant text between.

use pal_model::{BlockType, EARLIER_RESULT_PREFIX, Role, SharedText, ToolUseId, escape_tags, object_fields};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::decision_effects::{DecisionEffects, RESULT_FIELDS};
use crate::json_object::{BlockBuilder, JsonObject, array, result_content, text_block};
use crate::message_rope::{MessageRope, RopeBlock};
use crate::token_category::Category;
use crate::view_node::{NodeSpeaker, ViewNode};
use crate::wire_block::{BlockCleaner, WireBlock, WireBlockKind, reference_as_text, wire_id};

/// Event that ends a turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TurnEnd {
    /// A request left, or would leave now: the messages must be complete.
    Request,
    /// Another response began without a request in between.
    Response,
}

const START: &str = "[The conversation starts here.]";
const GO_ON: &str = "[Go on.]";
const NOTHING_SAID: &str = "[An empty message.]";
const INTERRUPTED: &str = "[This tool call was interrupted before it returned a result.]";

/// Turns nodes into blocks of a rope.
pub(crate) struct TurnNormalizer<'a> {
    pub(crate) cleaner: BlockCleaner<'a>,
    pub(crate) effects: &'a DecisionEffects,
    /// Ids of the calls that earlier turns made.
    pub(crate) seen: &'a FxHashSet<ToolUseId>,
}

/// A turn under construction: the model's blocks, the results, and what follows them.
#[derive(Default)]
struct TurnDraft {
    model: Vec<RopeBlock>,
    calls: Vec<ToolUseId>,
    /// The same as a set, for lookups.
    called: FxHashSet<ToolUseId>,
    server_calls: FxHashSet<ToolUseId>,
    ends_in_server_result: bool,
    /// Results at the very beginning of the view whose calls are in no earlier message.
    leading: Vec<PendingResult>,
    answers: Vec<PendingResult>,
    /// Ids of the calls that these and the leading results answer.
    answered: FxHashSet<ToolUseId>,
    after_results: Vec<RopeBlock>,
    rest: Vec<RopeBlock>,
    /// The program's own notices, still formatted as reminders.
    notices: Vec<WireBlock>,
    /// Cache edits; they are no message content.
    edits: Vec<RopeBlock>,
    empty_result_text: bool,
}

/// A tool result with the reminders placed inside it.
struct PendingResult {
    id: ToolUseId,
    clean: WireBlock,
    reminders: Vec<WireBlock>,
}

impl TurnNormalizer<'_> {
    /// Adds a turn to the rope and returns the calls that it made.
    pub(crate) fn add_turn<'n>(
        &self,
        rope: &mut MessageRope,
        nodes: impl Iterator<Item = &'n ViewNode> + Clone,
        end: TurnEnd,
    ) -> Vec<ToolUseId> {
        let is_first = rope.extent().blocks == 0;
        let mut turn = TurnDraft::default();
        self.model_side(&mut turn, nodes.clone());
        let has_answer = rope.extent().has_answer || !turn.model.is_empty();
        for node in nodes.filter(|node| !matches!(node.speaker, NodeSpeaker::Model(_))) {
            if has_answer && self.is_notice(node) {
                turn.notices.extend(self.effects.apply(node, self.cleaner));
            } else {
                self.user_side(&mut turn, node, is_first);
            }
        }
        self.emit(turn, rope, is_first, end)
    }

    /// Adds the model's blocks; removes repeated calls, unpaired server blocks and trailing thinking.
    fn model_side<'n>(&self, turn: &mut TurnDraft, nodes: impl Iterator<Item = &'n ViewNode>) {
        let mut parts: Vec<(WireBlock, Category)> = Vec::new();
        for node in nodes.filter(|node| matches!(node.speaker, NodeSpeaker::Model(_))) {
            for clean in self.effects.apply(node, self.cleaner) {
                let category = node.speaker.category(&clean.part);
                parts.push((clean, category));
            }
        }
        turn.server_calls = self.pair_server_blocks(&mut parts);
        parts.retain(|(clean, _)| {
            let WireBlockKind::Call(id) = &clean.part else { return true };
            let is_new =
                !self.seen.contains(id) && !turn.server_calls.contains(id) && turn.called.insert(id.clone());
            if is_new {
                turn.calls.push(id.clone());
            }
            is_new
        });
        while parts.last().is_some_and(|(clean, _)| clean.part == WireBlockKind::Thinking) {
            parts.pop();
        }
        turn.ends_in_server_result =
            parts.last().is_some_and(|(clean, _)| matches!(clean.part, WireBlockKind::ServerResult(..)));
        turn.model = parts.into_iter().map(|(clean, category)| slab(clean, category)).collect();
    }

    /// Pairs server calls with their results in one message; unpaired blocks become text. Returns the ids of
    /// the calls that stay.
    fn pair_server_blocks(&self, parts: &mut [(WireBlock, Category)]) -> FxHashSet<ToolUseId> {
        let mut paired: Vec<bool> = vec![false; parts.len()];
        let mut calls: FxHashMap<(&ToolUseId, BlockType), usize> = FxHashMap::default();
        let mut used: FxHashSet<ToolUseId> = FxHashSet::default();
        for (at, (clean, _)) in parts.iter().enumerate() {
            match &clean.part {
                WireBlockKind::ServerCall(id, answer) => {
                    calls.entry((id, *answer)).or_insert(at);
                }
                // An id that was used stays used: a second call of that id and its result are both text.
                WireBlockKind::ServerResult(id, kind) if !used.contains(id) && !self.seen.contains(id) => {
                    if let Some(&call) = calls.get(&(id, *kind)) {
                        paired[call] = true;
                        paired[at] = true;
                        used.insert(id.clone());
                    }
                }
                _ => {}
            }
        }
        for (at, (clean, category)) in parts.iter_mut().enumerate() {
            if paired[at]
                || !matches!(clean.part, WireBlockKind::ServerCall(..) | WireBlockKind::ServerResult(..))
            {
                continue;
            }
            let text = format!("[server tool block without its partner, kept as text] {}", clean.text);
            *clean = self.text(&escape_tags(&text));
            *category = Category::AssistantText;
        }
        used
    }

    /// Returns true if the program says this in its own name. Such a message holds text only.
    fn is_notice(&self, node: &ViewNode) -> bool {
        self.cleaner.card.can.system_messages
            && node.speaker == NodeSpeaker::Notice
            && node.clean.iter().all(|clean| clean.part == WireBlockKind::Reminder)
    }

    /// Adds user-side content: results first, each once; attachments behind the results or inside them.
    fn user_side(&self, turn: &mut TurnDraft, node: &ViewNode, is_first: bool) {
        let begins = is_first && turn.model.is_empty() && turn.rest.is_empty();
        turn.empty_result_text |= node.clean.is_empty() && matches!(node.speaker, NodeSpeaker::User(_));
        for clean in self.effects.apply(node, self.cleaner) {
            let category = node.speaker.category(&clean.part);
            match clean.part.clone() {
                WireBlockKind::Result(id) if turn.called.contains(&id) => {
                    if turn.answered.insert(id.clone()) {
                        turn.answers.push(PendingResult { id, clean, reminders: Vec::new() });
                    }
                }
                WireBlockKind::Result(id) if begins && !self.seen.contains(&id) => {
                    if turn.answered.insert(id.clone()) {
                        turn.leading.push(PendingResult { id, clean, reminders: Vec::new() });
                    }
                }
                WireBlockKind::Result(id) => turn.rest.extend(self.orphan(&id, &clean)),
                WireBlockKind::Edits => turn.edits.push(slab(clean, category)),
                WireBlockKind::Text | WireBlockKind::Reminder if node.speaker.is_system() => {
                    self.place_reminder(turn, clean);
                }
                _ if node.speaker.is_system() && !turn.model.is_empty() => {
                    turn.after_results.push(slab(clean, category));
                }
                _ => turn.rest.push(slab(clean, category)),
            }
        }
    }

    /// Places a reminder inside the nearest result before it, else behind the model's message, else in place.
    fn place_reminder(&self, turn: &mut TurnDraft, clean: WireBlock) {
        let result = turn.answers.last_mut().or(turn.leading.last_mut());
        match result {
            Some(answer) => answer.reminders.push(clean),
            None if turn.model.is_empty() => turn.rest.push(slab(clean, Category::Attachments)),
            None => turn.after_results.push(slab(clean, Category::Attachments)),
        }
    }

    /// Converts a result without a visible call to text; its images stay.
    fn orphan(&self, id: &ToolUseId, clean: &WireBlock) -> Vec<RopeBlock> {
        let mut said = format!("{EARLIER_RESULT_PREFIX}{}]", wire_id(id));
        let mut media = Vec::new();
        for block in result_content(&clean.text).blocks() {
            match self.cleaner.inside_result(block) {
                Some(clean) if matches!(clean.part, WireBlockKind::Media(_)) => {
                    media.push(slab(clean, Category::ToolResults))
                }
                _ => {
                    said.push('\n');
                    match reference_as_text(block) {
                        Some(told) => said.push_str(&told),
                        None => said.push_str(&block.string("text").unwrap_or_default()),
                    }
                }
            }
        }
        media.insert(0, slab(self.text(&said), Category::ToolResults));
        media
    }

    fn emit(&self, turn: TurnDraft, rope: &mut MessageRope, is_first: bool, end: TurnEnd) -> Vec<ToolUseId> {
        let user = |rope: &mut MessageRope, text: &str| {
            rope.push(Role::User, slab(self.text(text), Category::Attachments));
        };
        if is_first && (!turn.model.is_empty() || !turn.leading.is_empty()) {
            user(rope, START);
        }
        let mut made = turn.calls.clone();
        made.extend(turn.server_calls);
        for answer in &turn.leading {
            rope.push(Role::Assistant, self.interrupted_call(&answer.id));
            made.push(answer.id.clone());
        }
        for slab in turn.model {
            rope.push(Role::Assistant, slab);
        }
        if turn.ends_in_server_result {
            rope.allow_end();
        }
        let model_end = rope.extent().blocks;
        for answer in turn.leading.into_iter().chain(turn.answers) {
            rope.push(Role::User, self.answer(answer));
        }
        for id in turn.calls.iter().filter(|id| !turn.answered.contains(*id)) {
            rope.push(Role::User, self.interrupted_result(id));
        }
        for slab in turn.after_results.into_iter().chain(turn.rest) {
            rope.push(Role::User, slab);
        }
        if rope.extent().blocks == model_end && turn.empty_result_text {
            user(rope, NOTHING_SAID);
        }
        // Behind the model's message the system has no place of its own.
        let (notices, reminders) = match rope.extent().last_role {
            Some(Role::User | Role::System) => (turn.notices, Vec::new()),
            Some(Role::Assistant) | None => (Vec::new(), turn.notices),
        };
        for reminder in reminders {
            rope.push(Role::User, slab(reminder, Category::Attachments));
        }
        if end == TurnEnd::Request || !turn.edits.is_empty() {
            match (rope.extent().last_role, rope.extent().may_end_here) {
                (None, _) => user(rope, START),
                (Some(_), false) => user(rope, GO_ON),
                (Some(_), true) => {}
            }
        }
        for slab in turn.edits {
            rope.push(Role::User, slab);
        }
        for notice in notices {
            rope.push(Role::System, slab(self.cleaner.unwrapped(&notice), Category::Attachments));
        }
        made
    }

    fn answer(&self, answer: PendingResult) -> RopeBlock {
        let PendingResult { clean, reminders, .. } = answer;
        if reminders.is_empty() {
            return slab(clean, Category::ToolResults);
        }
        let mut parts: Vec<SharedText> = Vec::new();
        let mut result = BlockBuilder::of_type("tool_result");
        if let Ok(known) = object_fields(&clean.text).map(JsonObject) {
            for block in result_content(&clean.text).blocks() {
                // An empty string as content is the one block that may not be sent.
                parts.extend(self.cleaner.inside_result(block).map(|clean| clean.text));
            }
            for name in RESULT_FIELDS {
                if let Some(value) = known.get(name) {
                    result.raw(name, value);
                }
            }
        }
        let attached = reminders.iter().map(|reminder| reminder.tokens).sum();
        parts.extend(reminders.into_iter().map(|reminder| reminder.text));
        result.raw("content", &array(&parts));
        let text = result.finish();
        RopeBlock { text, markable: true, category: Category::ToolResults, tokens: clean.tokens, attached }
    }

    fn interrupted_call(&self, id: &ToolUseId) -> RopeBlock {
        let mut call = BlockBuilder::of_type("tool_use");
        call.string("id", &wire_id(id));
        call.string("name", "interrupted_call");
        call.raw("input", "{}");
        let tokens = self.cleaner.estimator.call("interrupted_call", "{}");
        slab(
            WireBlock { part: WireBlockKind::Call(id.clone()), text: call.finish(), tokens },
            Category::ToolCalls,
        )
    }

    fn interrupted_result(&self, id: &ToolUseId) -> RopeBlock {
        let mut result = BlockBuilder::of_type("tool_result");
        result.string("tool_use_id", &wire_id(id));
        result.string("content", INTERRUPTED);
        result.raw("is_error", "true");
        let tokens = self.cleaner.estimator.text(INTERRUPTED) + self.cleaner.estimator.result_frame();
        slab(
            WireBlock { part: WireBlockKind::Result(id.clone()), text: result.finish(), tokens },
            Category::ToolResults,
        )
    }

    fn text(&self, text: &str) -> WireBlock {
        WireBlock {
            part: WireBlockKind::Text,
            text: text_block(text),
            tokens: self.cleaner.estimator.text(text),
        }
    }
}

fn slab(clean: WireBlock, category: Category) -> RopeBlock {
    let markable = !matches!(clean.part, WireBlockKind::Thinking | WireBlockKind::Edits);
    RopeBlock { text: clean.text, markable, category, tokens: clean.tokens, attached: 0.0 }
}
