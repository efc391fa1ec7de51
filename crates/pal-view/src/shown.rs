//! What the view shows, entry by entry, for those who decide about it.
//!
//! Only entries that the view needs are shown, in the order in which the model sees them: what a resumed session reads
//! from disk. So a decision that rests on them is the same before and after a restart.

use pal_model::{
    Block, BlockType, Body, Content, Cost, Decision, Draft, Entry, EntryId, Origin, Timestamp, ToolUseId,
};

use smol_str::SmolStr;

use crate::clean::Part;
pub use crate::derived::Showing;
use crate::node::{Node, Speaker};
use crate::view::View;

/// One entry as the view shows it.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    /// The entry. A boundary may be shown up to three times: what it leads with, its summary, what it restored.
    pub entry: &'a Entry,
    /// Where it stands in the branch, as far as the view holds that: to compare with others, not to be kept.
    pub position: usize,
    /// Which part of it.
    pub part: ShownPart,
    /// Which round of the conversation it belongs to: a round begins where another response begins. What stands before
    /// the first response is round 0.
    pub round: usize,
    /// Whether a request of the conversation covered it.
    pub is_sent: bool,
    /// Whether it shows itself.
    pub showing: Showing,
    /// Estimated tokens as shown now, before the session's factor; nothing while it is snipped or folded.
    pub tokens: f64,
}

/// Which part of an entry is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ShownPart {
    /// What was said; of a boundary, the summary.
    Said,
    /// What a boundary shows beside its summary.
    Beside,
}

/// A tool result as the view shows it.
#[derive(Clone, Debug)]
pub struct ShownResult<'a> {
    /// The entry that holds it.
    pub entry: &'a Entry,
    /// The block.
    pub block: &'a Block,
    /// Estimated tokens as shown now, before the session's factor.
    pub tokens: f64,
    /// Whether it was cleared.
    pub is_cleared: bool,
    /// Whether it was deleted from the provider's cache.
    pub is_deleted: bool,
    /// Where its full text lies, relative to the session's folder, if it was spilled.
    pub spilled_to: Option<&'a str>,
    /// Whether a request of the conversation covered it.
    pub is_sent: bool,
}

impl<'a> Shown<'a> {
    /// What it says: the blocks of the entry, or of the part that is shown.
    pub fn content(&self) -> Option<&'a Content> {
        match &self.entry.body {
            Body::User(user) => Some(&user.content),
            Body::Assistant(assistant) => Some(&assistant.content),
            Body::Attachment(attachment) => Some(&attachment.content),
            Body::Boundary(boundary) if self.part == ShownPart::Said => Some(&boundary.summary),
            _ => None,
        }
    }

    /// Whether a person said it.
    pub fn is_of_a_person(&self) -> bool {
        matches!(&self.entry.body, Body::User(user) if user.origin == Origin::Person)
    }
}

impl View {
    /// What the view shows, in the model's order; snipped and folded entries are among them.
    pub fn shown(&self) -> impl Iterator<Item = Shown<'_>> {
        let derived = self.derived();
        let cleaner = self.cleaner();
        let mut rounds = Rounds::default();
        let mut summaries_seen = false;
        derived.showing().map(move |(node, showing)| {
            let round = rounds.of(node);
            let entry = &self.branch()[node.position as usize];
            let is_summary = matches!(entry.body, Body::Boundary(_));
            let is_first_lead = is_summary && self.is_lead(node, entry, summaries_seen);
            let part = if is_summary && (node.speaker != Speaker::Summary || is_first_lead) {
                ShownPart::Beside
            } else {
                ShownPart::Said
            };
            summaries_seen |= is_summary;
            let tokens = match showing {
                Showing::Itself => {
                    derived.effects().apply(node, cleaner).iter().map(|clean| clean.tokens).sum()
                }
                Showing::Snipped | Showing::Folded(_) => 0.0,
            };
            let position = node.position as usize;
            Shown { entry, position, part, round, is_sent: self.is_sent(node), showing, tokens }
        })
    }

    fn is_lead(&self, node: &Node, entry: &Entry, summaries_seen: bool) -> bool {
        let Body::Boundary(boundary) = &entry.body else { return false };
        node.speaker == Speaker::Summary && !boundary.lead.blocks().is_empty() && !summaries_seen
    }

    fn is_sent(&self, node: &Node) -> bool {
        self.derived().sent().is_some_and(|sent| node.position <= sent)
    }

    /// Estimated tokens of what was said behind an entry and is shown, summaries left out; nothing if the entry is not there.
    pub fn tokens_said_after(&self, entry: EntryId) -> u64 {
        let Some(after) = self.branch().iter().rposition(|other| other.id == entry) else { return 0 };
        let derived = self.derived();
        let newer = derived.showing().rev().take_while(|(node, _)| node.position as usize > after);
        let said = newer.filter(|(node, showing)| {
            let is_summary = matches!(self.branch()[node.position as usize].body, Body::Boundary(_));
            *showing == Showing::Itself && !is_summary
        });
        let cleaner = self.cleaner();
        let tokens =
            |node: &Node| derived.effects().apply(node, cleaner).iter().map(|clean| clean.tokens).sum();
        self.estimator().total(said.map(|(node, _)| -> f64 { tokens(node) }).sum())
    }

    /// What the next request adds to what was sent, oldest first.
    pub fn unsent(&self) -> Vec<&Entry> {
        let unsent = self.derived().nodes().rev().take_while(|node| !self.is_sent(node));
        let mut unsent: Vec<&Entry> = unsent.map(|node| &self.branch()[node.position as usize]).collect();
        unsent.reverse();
        unsent
    }

    /// Whether the next request opens a turn of the user: a person has spoken since the last one, or there was none.
    pub fn opens_user_turn(&self) -> bool {
        let mut unsent = self.derived().nodes().rev().take_while(|node| !self.is_sent(node));
        // Behind a boundary nothing may have been sent yet, whether or not older entries are at hand.
        let is_first = self.derived().sent().is_none() && self.derived().boundary.is_none();
        unsent.any(|node| node.speaker == Speaker::User(Origin::Person)) || is_first
    }

    /// When the last request of the conversation left, as far as the view reaches back.
    pub fn last_request_at(&self) -> Option<Timestamp> {
        self.derived().last_request.map(|position| self.branch()[position as usize].at)
    }

    /// When the provider's cache was last read for the conversation: by its last request, or by one that only kept the cache
    /// warm since.
    pub fn cache_touched_at(&self) -> Option<Timestamp> {
        self.last_request_at().map(|last| self.state().pings.last.map_or(last, |ping| ping.max(last)))
    }

    /// The names of the tools that the session declares, in order.
    pub fn tool_names(&self) -> &[SmolStr] {
        &self.derived().head.tool_names
    }

    /// The call with this id.
    pub fn call(&self, id: &ToolUseId) -> Option<&Block> {
        let node = self.derived().call_node(id)?;
        let Body::Assistant(assistant) = &self.branch()[node.position as usize].body else { return None };
        let is_call = |block: &&Block| block.kind() == BlockType::ToolUse && block.tool_use_id() == Some(id);
        assistant.content.blocks().iter().find(is_call)
    }

    /// The result of the call with this id.
    pub fn result(&self, id: &ToolUseId) -> Option<ShownResult<'_>> {
        let node = self.derived().result_node(id)?;
        let entry = &self.branch()[node.position as usize];
        let content = match &entry.body {
            Body::User(user) => &user.content,
            Body::Attachment(attachment) => &attachment.content,
            _ => return None,
        };
        let is_result =
            |block: &&Block| block.kind() == BlockType::ToolResult && block.tool_use_id() == Some(id);
        let effects = self.derived().effects();
        let shown = effects.apply(node, self.cleaner());
        let shown = shown.iter().find(|clean| matches!(&clean.part, Part::Result(shown) if shown == id))?;
        Some(ShownResult {
            entry,
            block: content.blocks().iter().find(is_result)?,
            tokens: shown.tokens,
            is_cleared: effects.is_cleared(id),
            is_deleted: effects.is_deleted(id),
            spilled_to: effects.spilled_to(id),
            is_sent: self.is_sent(node),
        })
    }

    /// The ids of the results that show themselves, in the model's order, each once.
    pub fn result_ids(&self) -> impl DoubleEndedIterator<Item = &ToolUseId> {
        self.derived().results().map(|(id, _)| id)
    }

    /// The results that the provider was sent whole and still keeps so, in the model's order.
    pub fn live_results(&self) -> impl DoubleEndedIterator<Item = &ToolUseId> {
        let effects = self.derived().effects();
        let results = self.derived().results().filter(|(_, node)| self.is_sent(node));
        results.map(|(id, _)| id).filter(|id| !effects.is_deleted(id) && !effects.is_cleared(id))
    }

    /// Whether it was decided that a result goes to disk, or that it does not.
    pub fn is_settled(&self, id: &ToolUseId) -> bool {
        self.derived().effects().is_settled(id)
    }

    /// Whether the text of an entry went to disk.
    pub fn is_spilled(&self, entry: EntryId) -> bool {
        self.derived().effects().is_spilled_entry(entry)
    }

    /// Whether the media of an entry were taken out.
    pub fn is_stripped(&self, entry: EntryId) -> bool {
        self.derived().effects().is_stripped(entry)
    }

    /// The view after a decision that is not in the log.
    pub fn with(&self, decision: &Decision) -> View {
        self.with_draft(Draft::decision(decision))
    }

    /// The view after a boundary that is not in the log.
    pub fn with_boundary(&self, boundary: &pal_model::Boundary) -> View {
        self.with_draft(Draft::boundary(boundary))
    }

    fn with_draft(&self, draft: Draft) -> View {
        let mut view = self.clone();
        let at = self.branch().last().map_or(Timestamp::from_milliseconds(0), |entry| entry.at);
        // No log gives such an id: its version bits say that it is no UUID of ours.
        let id = EntryId::from_bits(u128::MAX - self.branch().len() as u128);
        if let Ok(entry) = draft.into_entry(id, self.newest(), at) {
            view.push(entry);
        }
        view
    }

    /// What a change of the view costs: tokens that it frees, tokens behind the first changed block of what was sent,
    /// and thinking that leaves with it.
    pub fn cost_of(&self, after: &View) -> Cost {
        let (before_rope, after_rope) =
            (self.derived().rope_now(self.lens()), after.derived().rope_now(after.lens()));
        let sent = self.derived().closed_blocks();
        let pairs = before_rope.pieces().zip(after_rope.pieces());
        let common = pairs.take_while(|(before, after)| before.chain == after.chain).count();
        let estimator = self.estimator();
        let rewritten = match common < sent {
            true => after_rope.pieces().skip(common).fold(0.0, |sum, piece| sum + piece.tokens),
            false => 0.0,
        };
        let thinking =
            |rope: &crate::rope::Rope| rope.pieces().filter(|piece| !piece.markable).count() as u64;
        let total = |rope: &crate::rope::Rope| rope.extent().sums.total();
        Cost {
            tokens_freed: estimator.total((total(&before_rope) - total(&after_rope)).max(0.0)),
            tokens_rewritten: estimator.total(rewritten),
            thinking_dropped: thinking(&before_rope).saturating_sub(thinking(&after_rope)),
        }
    }
}

/// Counts rounds.
#[derive(Default)]
struct Rounds {
    round: usize,
    /// The response that speaks, while nothing of the user's side followed it.
    model: Option<Option<pal_model::ResponseId>>,
    user_followed: bool,
}

impl Rounds {
    fn of(&mut self, node: &Node) -> usize {
        match &node.speaker {
            Speaker::Model(response) => {
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
