//! Entries of the view with their visibility, for the layers that decide about them.
//!
//! Only entries of the view are listed, in the model's order: those that a resumed session reads from disk.
//! So a decision based on them is the same before and after a restart.

use pal_model::{
    BlockType, Content, ContentBlock, Decision, DecisionCost, EntryBody, EntryDraft, EntryId, LogEntry,
    MessageOrigin, Timestamp, ToolUseId,
};

use smol_str::SmolStr;

pub use crate::derived_view::Visibility;
use crate::view::View;
use crate::view_node::{NodeSpeaker, ViewNode};
use crate::wire_block::WireBlockKind;

/// One entry of the view.
#[derive(Clone, Copy, Debug)]
pub struct VisibleEntry<'a> {
    /// The entry. A boundary may be listed up to three times: its lead, its summary, its restored content.
    pub entry: &'a LogEntry,
    /// Position in the branch held by the view; valid for comparison only, do not store it.
    pub position: usize,
    /// Part of the entry.
    pub part: VisiblePart,
    /// Round of the conversation: a round begins with each response. Entries before the first response are in
    /// round 0.
    pub round: usize,
    /// True if a request of the conversation covered it.
    pub is_sent: bool,
    /// Visibility under the decisions in force.
    pub visibility: Visibility,
    /// Estimated raw tokens as shown now, before the session's factor; 0 if snipped or folded.
    pub tokens: f64,
}

/// Part of an entry that is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VisiblePart {
    /// The entry's content; of a boundary, the summary.
    Content,
    /// Content that a boundary shows beside its summary.
    BesideSummary,
}

/// A tool result in the view.
#[derive(Clone, Debug)]
pub struct VisibleResult<'a> {
    /// Entry that holds it.
    pub entry: &'a LogEntry,
    /// The block.
    pub block: &'a ContentBlock,
    /// Estimated raw tokens as shown now, before the session's factor.
    pub tokens: f64,
    /// True if it was cleared.
    pub is_cleared: bool,
    /// True if it was deleted from the provider's cache.
    pub is_deleted: bool,
    /// Path of its full text relative to the session's directory, if it was spilled.
    pub spilled_to: Option<&'a str>,
    /// True if a request of the conversation covered it.
    pub is_sent: bool,
}

impl<'a> VisibleEntry<'a> {
    /// Content of the entry, or of the part that is shown.
    pub fn content(&self) -> Option<&'a Content> {
        match &self.entry.body {
            EntryBody::User(user) => Some(&user.content),
            EntryBody::Assistant(assistant) => Some(&assistant.content),
            EntryBody::Attachment(attachment) => Some(&attachment.content),
            EntryBody::Boundary(boundary) if self.part == VisiblePart::Content => Some(&boundary.summary),
            _ => None,
        }
    }

    /// Returns true for a message typed by a person.
    pub fn is_from_person(&self) -> bool {
        matches!(&self.entry.body, EntryBody::User(user) if user.origin == MessageOrigin::Person)
    }
}

impl View {
    /// Entries of the view in the model's order, including snipped and folded ones.
    pub fn visible_entries(&self) -> impl Iterator<Item = VisibleEntry<'_>> {
        let derived = self.derived();
        let cleaner = self.cleaner();
        let mut rounds = RoundCounter::default();
        let mut summaries_seen = false;
        derived.nodes_with_visibility().map(move |(node, nodes_with_visibility)| {
            let round = rounds.of(node);
            let entry = &self.branch()[node.position as usize];
            let is_summary = matches!(entry.body, EntryBody::Boundary(_));
            let is_first_lead = is_summary && self.is_lead(node, entry, summaries_seen);
            let part = if is_summary && (node.speaker != NodeSpeaker::Summary || is_first_lead) {
                VisiblePart::BesideSummary
            } else {
                VisiblePart::Content
            };
            summaries_seen |= is_summary;
            let tokens = match nodes_with_visibility {
                Visibility::Visible => {
                    derived.effects().apply(node, cleaner).iter().map(|clean| clean.tokens).sum()
                }
                Visibility::Snipped | Visibility::Folded(_) => 0.0,
            };
            let position = node.position as usize;
            VisibleEntry {
                entry,
                position,
                part,
                round,
                is_sent: self.is_sent(node),
                visibility: nodes_with_visibility,
                tokens,
            }
        })
    }

    fn is_lead(&self, node: &ViewNode, entry: &LogEntry, summaries_seen: bool) -> bool {
        let EntryBody::Boundary(boundary) = &entry.body else { return false };
        node.speaker == NodeSpeaker::Summary && !boundary.lead.blocks().is_empty() && !summaries_seen
    }

    fn is_sent(&self, node: &ViewNode) -> bool {
        self.derived().sent().is_some_and(|sent| node.position <= sent)
    }

    /// Estimated tokens of the visible entries behind an entry, without summaries; 0 if the entry is not in
    /// the branch.
    pub fn tokens_after(&self, entry: EntryId) -> u64 {
        let Some(after) = self.branch().iter().rposition(|other| other.id == entry) else { return 0 };
        let derived = self.derived();
        let newer =
            derived.nodes_with_visibility().rev().take_while(|(node, _)| node.position as usize > after);
        let said = newer.filter(|(node, nodes_with_visibility)| {
            let is_summary = matches!(self.branch()[node.position as usize].body, EntryBody::Boundary(_));
            *nodes_with_visibility == Visibility::Visible && !is_summary
        });
        let cleaner = self.cleaner();
        let tokens =
            |node: &ViewNode| derived.effects().apply(node, cleaner).iter().map(|clean| clean.tokens).sum();
        self.estimator().total(said.map(|(node, _)| -> f64 { tokens(node) }).sum())
    }

    /// Entries that the next request adds to the sent ones, oldest first.
    pub fn unsent_entries(&self) -> Vec<&LogEntry> {
        let unsent = self.derived().nodes().rev().take_while(|node| !self.is_sent(node));
        let mut unsent: Vec<&LogEntry> = unsent.map(|node| &self.branch()[node.position as usize]).collect();
        unsent.reverse();
        unsent
    }

    /// Returns true if the next request opens a user turn: a person has spoken since the last request, or
    /// there was none.
    pub fn opens_user_turn(&self) -> bool {
        let mut unsent = self.derived().nodes().rev().take_while(|node| !self.is_sent(node));
        // Behind a boundary nothing may have been sent yet, whether or not older entries are at hand.
        let is_first = self.derived().sent().is_none() && self.derived().boundary.is_none();
        unsent.any(|node| node.speaker == NodeSpeaker::User(MessageOrigin::Person)) || is_first
    }

    /// Time of the last request of the conversation, if the view reaches back to it.
    pub fn last_request_at(&self) -> Option<Timestamp> {
        self.derived().requests.last_request.map(|position| self.branch()[position as usize].at)
    }

    /// Time of the last cache read for the conversation: by its last request, or by a later keep-alive
    /// request.
    pub fn cache_touched_at(&self) -> Option<Timestamp> {
        self.last_request_at().map(|last| self.state().keepalive.last.map_or(last, |ping| ping.max(last)))
    }

    /// Names of the session's tools, in order.
    pub fn tool_names(&self) -> &[SmolStr] {
        &self.derived().head.tool_names
    }

    /// Block of the call with this id.
    pub fn call_block(&self, id: &ToolUseId) -> Option<&ContentBlock> {
        let node = self.derived().call_node(id)?;
        let EntryBody::Assistant(assistant) = &self.branch()[node.position as usize].body else {
            return None;
        };
        let is_call =
            |block: &&ContentBlock| block.kind() == BlockType::ToolUse && block.tool_use_id() == Some(id);
        assistant.content.blocks().iter().find(is_call)
    }

    /// The result of the call with this id.
    pub fn result(&self, id: &ToolUseId) -> Option<VisibleResult<'_>> {
        let node = self.derived().result_node(id)?;
        let entry = &self.branch()[node.position as usize];
        let content = match &entry.body {
            EntryBody::User(user) => &user.content,
            EntryBody::Attachment(attachment) => &attachment.content,
            _ => return None,
        };
        let is_result =
            |block: &&ContentBlock| block.kind() == BlockType::ToolResult && block.tool_use_id() == Some(id);
        let effects = self.derived().effects();
        let shown = effects.apply(node, self.cleaner());
        let shown =
            shown.iter().find(|clean| matches!(&clean.part, WireBlockKind::Result(shown) if shown == id))?;
        Some(VisibleResult {
            entry,
            block: content.blocks().iter().find(is_result)?,
            tokens: shown.tokens,
            is_cleared: effects.is_cleared(id),
            is_deleted: effects.is_deleted(id),
            spilled_to: effects.spilled_to(id),
            is_sent: self.is_sent(node),
        })
    }

    /// Ids of the visible results in the model's order, each once.
    pub fn result_ids(&self) -> impl DoubleEndedIterator<Item = &ToolUseId> {
        self.derived().results().map(|(id, _)| id)
    }

    /// Ids of the results that were sent and are neither cleared nor deleted, in the model's order.
    pub fn live_results(&self) -> impl DoubleEndedIterator<Item = &ToolUseId> {
        let effects = self.derived().effects();
        let results = self.derived().results().filter(|(_, node)| self.is_sent(node));
        results.map(|(id, _)| id).filter(|id| !effects.is_deleted(id) && !effects.is_cleared(id))
    }

    /// Returns true if a decision to spill or to keep the result exists.
    pub fn is_spill_decided(&self, id: &ToolUseId) -> bool {
        self.derived().effects().is_settled(id)
    }

    /// Returns true if the text of an entry was spilled.
    pub fn is_spilled(&self, entry: EntryId) -> bool {
        self.derived().effects().is_spilled_entry(entry)
    }

    /// Returns the view after a decision that is not in the log.
    pub fn with_decision(&self, decision: &Decision) -> View {
        self.with_draft(EntryDraft::decision(decision))
    }

    /// Returns the view after a boundary that is not in the log.
    pub fn with_boundary(&self, boundary: &pal_model::Boundary) -> View {
        self.with_draft(EntryDraft::boundary(boundary))
    }

    fn with_draft(&self, draft: EntryDraft) -> View {
        let mut view = self.clone();
        let at = self.branch().last().map_or(Timestamp::from_milliseconds(0), |entry| entry.at);
        // Cannot clash with an id of a log: the version bits are those of no UUID of ours.
        let id = EntryId::from_bits(u128::MAX - self.branch().len() as u128);
        if let Ok(entry) = draft.into_entry(id, self.newest_id(), at) {
            view.push(entry);
        }
        view
    }

    /// Cost of changing this view to `after`: tokens freed, tokens behind the first changed sent block, and
    /// thinking blocks lost.
    pub fn cost_of_change(&self, after: &View) -> DecisionCost {
        let (before_rope, after_rope) =
            (self.derived().current_rope(self.lens()), after.derived().current_rope(after.lens()));
        let sent = self.derived().closed_blocks();
        let pairs = before_rope.pieces().zip(after_rope.pieces());
        let common = pairs.take_while(|(before, after)| before.chain == after.chain).count();
        let estimator = self.estimator();
        let rewritten = match common < sent {
            true => after_rope.pieces().skip(common).fold(0.0, |sum, piece| sum + piece.tokens),
            false => 0.0,
        };
        let thinking = |rope: &crate::message_rope::MessageRope| {
            rope.pieces().filter(|piece| !piece.markable).count() as u64
        };
        let total = |rope: &crate::message_rope::MessageRope| rope.extent().sums.total();
        DecisionCost {
            tokens_freed: estimator.total((total(&before_rope) - total(&after_rope)).max(0.0)),
            tokens_rewritten: estimator.total(rewritten),
            thinking_dropped: thinking(&before_rope).saturating_sub(thinking(&after_rope)),
        }
    }
}

/// Counts rounds while iterating.
#[derive(Default)]
struct RoundCounter {
    round: usize,
    /// Current response, while no user content followed it.
    model: Option<Option<pal_model::ResponseId>>,
    user_followed: bool,
}

impl RoundCounter {
    fn of(&mut self, node: &ViewNode) -> usize {
        match &node.speaker {
            NodeSpeaker::Model(response) => {
                let goes_on = match (&self.model, response) {
                    (Some(Some(open)), Some(response)) => open == response,
                    (Some(_), _) => !self.user_followed,
                    (None, _) => false,
                };
                if !goes_on {
                    self.round += 1;
                }
                self.model = Some(response.clone());
                self.user_followed = false;
            }
            _ => self.user_followed = true,
        }
        self.round
    }
}
