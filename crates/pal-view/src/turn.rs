//! Normalisation of one turn: what the model said and what followed it, or what was said before it spoke.
//!
//! The branch is cut into turns where a request left or another response began, and what a turn becomes does not
//! depend on later turns. So old turns are never looked at again, and whatever the log holds, the messages that
//! come out follow the provider's rules (§1.7–1.16).
//!
//! What the system says goes where the card has a place for it (§6.4): its own sentences as messages of the system,
//! behind all that the user's side says in the turn, where the provider takes such messages and the model has spoken
//! already; elsewhere, and whenever they hand on what others wrote, as reminders, inside the nearest result or behind it. A message of the system must be the last one or be followed by
//! the model's: should the user's side speak next, because no answer came, the rope puts words to that effect between.

use pal_model::{BlockType, EARLIER_RESULT, Role, Text, ToolUseId, defuse, fields};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::clean::{Clean, Cleaner, Part, told_reference, wire_id};
use crate::effects::{Effects, RESULT_FIELDS};
use crate::ledger::Category;
use crate::node::{Node, Speaker};
use crate::rope::{Rope, Slab};
use crate::wire::{Builder, Object, array, result_content, text_block};

/// What ends a turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// A request left, or would leave now: the messages must stand as they are.
    Request,
    /// Another response began without one.
    Response,
}

const START: &str = "[The conversation starts here.]";
const GO_ON: &str = "[Go on.]";
const NOTHING_SAID: &str = "[An empty message.]";
const INTERRUPTED: &str = "[This tool call was interrupted before it returned a result.]";

/// Turns nodes into blocks of a rope.
pub(crate) struct Normaliser<'a> {
    pub(crate) cleaner: Cleaner<'a>,
    pub(crate) effects: &'a Effects,
    /// Calls that earlier turns made.
    pub(crate) seen: &'a FxHashSet<ToolUseId>,
}

/// One turn on its way: the model's blocks, the results in front, and what follows them.
#[derive(Default)]
struct Turn {
    model: Vec<Slab>,
    calls: Vec<ToolUseId>,
    /// The same, to look one up.
    called: FxHashSet<ToolUseId>,
    server_calls: FxHashSet<ToolUseId>,
    ends_in_server_result: bool,
    /// Results of calls that no earlier message makes, at the very beginning of the view.
    leading: Vec<Answer>,
    answers: Vec<Answer>,
    /// The calls that these and the leading ones answer.
    answered: FxHashSet<ToolUseId>,
    after_results: Vec<Slab>,
    rest: Vec<Slab>,
    /// What the system says in its own name, in reminders still.
    notices: Vec<Clean>,
    /// Edits of the provider's cache, which are no part of what is said.
    edits: Vec<Slab>,
    said_nothing: bool,
}

/// A tool result with the reminders that go into it.
struct Answer {
    id: ToolUseId,
    clean: Clean,
    reminders: Vec<Clean>,
}

impl Normaliser<'_> {
    /// Adds a turn to the rope and returns the calls that it made.
    pub(crate) fn add_turn<'n>(
        &self,
        rope: &mut Rope,
        nodes: impl Iterator<Item = &'n Node> + Clone,
        end: End,
    ) -> Vec<ToolUseId> {
        let is_first = rope.extent().blocks == 0;
        let mut turn = Turn::default();
        self.model_side(&mut turn, nodes.clone());
        let has_answer = rope.extent().has_answer || !turn.model.is_empty();
        for node in nodes.filter(|node| !matches!(node.speaker, Speaker::Model(_))) {
            if has_answer && self.is_notice(node) {
                turn.notices.extend(self.effects.apply(node, self.cleaner));
            } else {
                self.user_side(&mut turn, node, is_first);
            }
        }
        self.emit(turn, rope, is_first, end)
    }

    /// What the model said: repeated calls, unpaired server blocks and thinking at the end are taken out.
    fn model_side<'n>(&self, turn: &mut Turn, nodes: impl Iterator<Item = &'n Node>) {
        let mut parts: Vec<(Clean, Category)> = Vec::new();
        for node in nodes.filter(|node| matches!(node.speaker, Speaker::Model(_))) {
            for clean in self.effects.apply(node, self.cleaner) {
                let category = node.speaker.category(&clean.part);
                parts.push((clean, category));
            }
        }
        turn.server_calls = self.pair_server_blocks(&mut parts);
        parts.retain(|(clean, _)| {
            let Part::Call(id) = &clean.part else { return true };
            let is_new =
                !self.seen.contains(id) && !turn.server_calls.contains(id) && turn.called.insert(id.clone());
            if is_new {
                turn.calls.push(id.clone());
            }
            is_new
        });
        while parts.last().is_some_and(|(clean, _)| clean.part == Part::Thinking) {
            parts.pop();
        }
        turn.ends_in_server_result =
            parts.last().is_some_and(|(clean, _)| matches!(clean.part, Part::ServerResult(..)));
        turn.model = parts.into_iter().map(|(clean, category)| slab(clean, category)).collect();
    }

    /// A server call stands before its result in one message; what has no partner becomes text. Returns the
    /// calls that stay.
    fn pair_server_blocks(&self, parts: &mut [(Clean, Category)]) -> FxHashSet<ToolUseId> {
        let mut paired: Vec<bool> = vec![false; parts.len()];
        let mut calls: FxHashMap<(&ToolUseId, BlockType), usize> = FxHashMap::default();
        let mut used: FxHashSet<ToolUseId> = FxHashSet::default();
        for (at, (clean, _)) in parts.iter().enumerate() {
            match &clean.part {
                Part::ServerCall(id, answer) => {
                    calls.entry((id, *answer)).or_insert(at);
                }
                // An id that was used stays used: a second call of that id and its result are both text.
                Part::ServerResult(id, kind) if !used.contains(id) && !self.seen.contains(id) => {
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
            if paired[at] || !matches!(clean.part, Part::ServerCall(..) | Part::ServerResult(..)) {
                continue;
            }
            let text = format!("[server tool block without its partner, kept as text] {}", clean.text);
            *clean = self.text(&defuse(&text));
            *category = Category::AssistantText;
        }
        used
    }

    /// Whether the system says this in its own name. Such a message takes nothing but words.
    fn is_notice(&self, node: &Node) -> bool {
        self.cleaner.card.can.system_messages
            && node.speaker == Speaker::Notice
            && node.clean.iter().all(|clean| clean.part == Part::Reminder)
    }

    /// What followed: results in front, each once; attachments right behind the results or inside them.
    fn user_side(&self, turn: &mut Turn, node: &Node, is_first: bool) {
        let begins = is_first && turn.model.is_empty() && turn.rest.is_empty();
        turn.said_nothing |= node.clean.is_empty() && matches!(node.speaker, Speaker::User(_));
        for clean in self.effects.apply(node, self.cleaner) {
            let category = node.speaker.category(&clean.part);
            match clean.part.clone() {
                Part::Result(id) if turn.called.contains(&id) => {
                    if turn.answered.insert(id.clone()) {
                        turn.answers.push(Answer { id, clean, reminders: Vec::new() });
                    }
                }
                Part::Result(id) if begins && !self.seen.contains(&id) => {
                    if turn.answered.insert(id.clone()) {
                        turn.leading.push(Answer { id, clean, reminders: Vec::new() });
                    }
                }
                Part::Result(id) => turn.rest.extend(self.orphan(&id, &clean)),
                Part::Edits => turn.edits.push(slab(clean, category)),
                Part::Text | Part::Reminder if node.speaker.is_system() => {
                    self.place_reminder(turn, clean);
                }
                _ if node.speaker.is_system() && !turn.model.is_empty() => {
                    turn.after_results.push(slab(clean, category));
                }
                _ => turn.rest.push(slab(clean, category)),
            }
        }
    }

    /// A reminder goes into the nearest result before it, else behind the model's message, else stays.
    fn place_reminder(&self, turn: &mut Turn, clean: Clean) {
        let result = turn.answers.last_mut().or(turn.leading.last_mut());
        match result {
            Some(answer) => answer.reminders.push(clean),
            None if turn.model.is_empty() => turn.rest.push(slab(clean, Category::Attachments)),
            None => turn.after_results.push(slab(clean, Category::Attachments)),
        }
    }

    /// A result whose call is not in the view: what it says, as text, and the pictures that it holds.
    fn orphan(&self, id: &ToolUseId, clean: &Clean) -> Vec<Slab> {
        let mut said = format!("{EARLIER_RESULT}{}]", wire_id(id));
        let mut media = Vec::new();
        for block in result_content(&clean.text).blocks() {
            match self.cleaner.inside_result(block) {
                Some(clean) if clean.part == Part::Media => media.push(slab(clean, Category::ToolResults)),
                _ => {
                    said.push('\n');
                    match told_reference(block) {
                        Some(told) => said.push_str(&told),
                        None => said.push_str(&block.string("text").unwrap_or_default()),
                    }
                }
            }
        }
        media.insert(0, slab(self.text(&said), Category::ToolResults));
        media
    }

    fn emit(&self, turn: Turn, rope: &mut Rope, is_first: bool, end: End) -> Vec<ToolUseId> {
        let user = |rope: &mut Rope, text: &str| {
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
        if rope.extent().blocks == model_end && turn.said_nothing {
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
        if end == End::Request || !turn.edits.is_empty() {
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

    fn answer(&self, answer: Answer) -> Slab {
        let Answer { clean, reminders, .. } = answer;
        if reminders.is_empty() {
            return slab(clean, Category::ToolResults);
        }
        let mut parts: Vec<Text> = Vec::new();
        let mut result = Builder::of_type("tool_result");
        if let Ok(known) = fields(&clean.text).map(Object) {
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
        Slab { text, markable: true, category: Category::ToolResults, tokens: clean.tokens, attached }
    }

    fn interrupted_call(&self, id: &ToolUseId) -> Slab {
        let mut call = Builder::of_type("tool_use");
        call.string("id", &wire_id(id));
        call.string("name", "interrupted_call");
        call.raw("input", "{}");
        let tokens = self.cleaner.estimator.call("interrupted_call", "{}");
        slab(Clean { part: Part::Call(id.clone()), text: call.finish(), tokens }, Category::ToolCalls)
    }

    fn interrupted_result(&self, id: &ToolUseId) -> Slab {
        let mut result = Builder::of_type("tool_result");
        result.string("tool_use_id", &wire_id(id));
        result.string("content", INTERRUPTED);
        result.raw("is_error", "true");
        let tokens = self.cleaner.estimator.text(INTERRUPTED) + self.cleaner.estimator.result_frame();
        slab(Clean { part: Part::Result(id.clone()), text: result.finish(), tokens }, Category::ToolResults)
    }

    fn text(&self, text: &str) -> Clean {
        Clean { part: Part::Text, text: text_block(text), tokens: self.cleaner.estimator.text(text) }
    }
}

fn slab(clean: Clean, category: Category) -> Slab {
    let markable = !matches!(clean.part, Part::Thinking | Part::Edits);
    Slab { text: clean.text, markable, category, tokens: clean.tokens, attached: 0.0 }
}
