//! The view: the model's next input, as a pure function of the branch.
//!
//! A view grows incrementally with each entry. Rare events (a boundary, an undo, a rewind, a new prefix)
//! derive it from scratch. Either way the result equals [`View::from_branch`] over all entries: the first
//! property test checks that law.

use std::sync::Arc;

use pal_model::{
    DecisionKind, EntryBody, EntryId, LogEntry, MessageOrigin, PreservedPlacement, PromptPrefix,
    SessionSnapshot, UsageTotals,
};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::decision_effects::PositionRange;
use crate::derived_view::DerivedView;
use crate::lens::{Lens, ViewScope};
use crate::request_head::RequestHead;
use crate::view_node::{NodeSpeaker, ViewNode};
use crate::wire_block::{BlockCleaner, WireBlock};

/// Outcome of [`View::push`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PushOutcome {
    /// The entry was added to the branch.
    Added,
    /// The branch already holds an entry with this id.
    Duplicate,
    /// The entry's parent is not in this view: read the log again.
    NeedsHistory,
}

/// One step of the view's order: an entry, or content that a boundary shows beside its summary.
#[derive(Clone, Copy)]
struct ViewStep {
    position: usize,
    shows: StepContent,
}

/// The content that a step takes from its entry.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StepContent {
    /// The entry's own content; of a boundary, the summary.
    Entry,
    /// Content of an earlier boundary.
    Lead,
    /// Content that a compaction restored.
    Restored,
}

/// Usage of the entries that a resume skipped.
#[derive(Clone, Debug)]
struct SkippedHistory {
    /// Totals of the skipped entries.
    totals: UsageTotals,
    /// Number of entries read at resume; the provider's counts among them belong to a longer conversation.
    uncounted: usize,
}

/// The model's next input: a branch of the log seen through a [`Lens`].
#[derive(Clone, Debug)]
pub struct View {
    lens: Lens,
    branch: Vec<LogEntry>,
    positions: FxHashMap<EntryId, u32>,
    /// Set if a resume skipped entries.
    earlier: Option<SkippedHistory>,
    derived: DerivedView,
}

impl View {
    /// Creates an empty view.
    pub fn new(lens: Lens) -> View {
        View::from_branch(lens, [])
    }

    /// Derives the view of a branch in one pass. `branch` holds its entries in order: all of them, or those
    /// that resume reads (the prefix in force, the entries that the boundary in force keeps, and all that
    /// follow).
    pub fn from_branch(lens: Lens, branch: impl IntoIterator<Item = LogEntry>) -> View {
        View::with_earlier(lens, branch.into_iter().collect(), None)
    }

    /// Like [`View::from_branch`] for a branch of which a resume skipped entries; `left_out` is added to the
    /// totals.
    pub fn from_resumed_branch(
        lens: Lens,
        branch: impl IntoIterator<Item = LogEntry>,
        left_out: Option<UsageTotals>,
    ) -> View {
        let branch: Vec<LogEntry> = branch.into_iter().collect();
        let uncounted = branch.len();
        let earlier = left_out.map(|totals| SkippedHistory { totals, uncounted });
        View::with_earlier(lens, branch, earlier)
    }

    fn with_earlier(lens: Lens, branch: Vec<LogEntry>, earlier: Option<SkippedHistory>) -> View {
        let positions = branch.iter().enumerate().map(|(at, entry)| (entry.id, at as u32)).collect();
        let mut view = View { lens, branch, positions, earlier, derived: DerivedView::default() };
        view.derive();
        view
    }

    /// Adds an entry that was appended to the log. The cost is proportional to the entry, except for the rare
    /// events.
    pub fn push(&mut self, entry: LogEntry) -> PushOutcome {
        let continues = entry.parent == self.branch.last().map(|last| last.id);
        let pushed = self.add_to_branch(entry);
        if pushed == PushOutcome::Added {
            if continues { self.apply_newest() } else { self.derive() }
        }
        pushed
    }

    /// Derives the same branch through another lens.
    pub fn with_lens(&self, lens: Lens) -> View {
        View::with_earlier(lens, self.branch.clone(), self.earlier.clone())
    }

    /// The entries of the branch, as far as this view holds them.
    pub fn branch(&self) -> &[LogEntry] {
        &self.branch
    }

    /// Id of the newest entry.
    pub fn newest_id(&self) -> Option<EntryId> {
        self.branch.last().map(|entry| entry.id)
    }

    /// Lens that the view is derived through.
    pub fn lens(&self) -> &Lens {
        &self.lens
    }

    /// Session state besides messages; the next boundary carries it.
    pub fn state(&self) -> &SessionSnapshot {
        &self.derived.state
    }

    /// The boundary in force.
    pub fn boundary(&self) -> Option<&LogEntry> {
        self.derived.boundary.and_then(|position| self.branch.get(position as usize))
    }

    /// Returns true if part of the sent prefix (tools, system) is missing from the log.
    pub fn has_unseen_prefix(&self) -> bool {
        self.derived.state.prefix.is_none() || self.derived.head.unseen_tokens > 0
    }

    /// Returns true if the messages open with the provider's own compaction block.
    pub fn opens_with_provider_summary(&self) -> bool {
        self.derived.has_opening()
    }

    pub(crate) fn derived(&self) -> &DerivedView {
        &self.derived
    }

    /// Block cleaner for this view's model and tools.
    pub(crate) fn cleaner(&self) -> BlockCleaner<'_> {
        self.lens.cleaner(&self.derived.head.referable)
    }

    pub(crate) fn positions(&self) -> &FxHashMap<EntryId, u32> {
        &self.positions
    }

    fn position(&self, id: EntryId) -> Option<u32> {
        self.positions.get(&id).copied()
    }

    fn add_to_branch(&mut self, entry: LogEntry) -> PushOutcome {
        if self.positions.contains_key(&entry.id) {
            return PushOutcome::Duplicate;
        }
        if entry.parent != self.newest_id() && !self.branch.is_empty() {
            let keep = match entry.parent {
                None => 0,
                Some(parent) => match self.positions.get(&parent) {
                    Some(&position) => position as usize + 1,
                    None => return PushOutcome::NeedsHistory,
                },
            };
            for dropped in self.branch.drain(keep..) {
                self.positions.remove(&dropped.id);
            }
        }
        self.positions.insert(entry.id, self.branch.len() as u32);
        self.branch.push(entry);
        PushOutcome::Added
    }

    /// Applies the newest entry of the branch to the derived state.
    fn apply_newest(&mut self) {
        let position = self.branch.len() - 1;
        let entry = &self.branch[position];
        let changes_all = match &entry.body {
            EntryBody::Boundary(_) => self.lens.scope == ViewScope::Current,
            EntryBody::Decision(decision) => matches!(decision.kind, DecisionKind::Undo { .. }),
            EntryBody::Prefix(_) => true,
            _ => false,
        };
        if changes_all {
            return self.derive();
        }
        let derived = &mut self.derived;
        derived.make_room(position + 1);
        if !matches!(entry.body, EntryBody::Boundary(_)) {
            derived.apply_state(entry);
        }
        derived.apply_sent(entry, &self.positions);
        derived.apply_anchor(&self.branch, position as u32, &self.positions);
        let tools = Arc::clone(&derived.head.referable);
        let cleaner = self.lens.cleaner(&tools);
        match &entry.body {
            EntryBody::Decision(_) => {
                derived.add_item(entry, position as u32, cleaner);
                if let Some(item) =
                    derived.apply_decision(entry, position as u32, &self.positions, &self.lens.card)
                {
                    derived.truncate_to(item);
                }
            }
            _ => derived.add_item(entry, position as u32, cleaner),
        }
        derived.grow(cleaner);
    }

    /// Derives everything from the branch.
    fn derive(&mut self) {
        let undone = self.undone();
        let counts = |entry: &LogEntry| !undone.contains(&entry.id);
        let mut derived = DerivedView::default();
        if let Some(earlier) = &self.earlier {
            derived.state.totals = earlier.totals;
        }
        derived.make_room(self.branch.len());
        let boundary = match self.lens.scope {
            ViewScope::Whole => None,
            ViewScope::Current => self.branch.iter().rposition(|entry| {
                matches!(&entry.body, EntryBody::Boundary(boundary) if boundary.has_summary())
                    && counts(entry)
            }),
        };
        derived.boundary = boundary.map(|position| position as u32);
        let order = self.order(boundary);
        derived.open_with(boundary.and_then(|boundary| self.opening_summary(boundary, &order)));
        let state_from = boundary.unwrap_or(0);
        for entry in self.branch[state_from..].iter().filter(|entry| counts(entry)) {
            if !matches!(entry.body, EntryBody::Boundary(_)) || self.lens.scope == ViewScope::Current {
                derived.apply_state(entry);
            }
        }
        let uncounted = self.earlier.as_ref().map_or(0, |earlier| earlier.uncounted);
        let anchor_from = boundary.map_or(uncounted, |position| position + 1);
        for (at, _) in self.branch.iter().enumerate().skip(anchor_from).filter(|(_, entry)| counts(entry)) {
            derived.apply_anchor(&self.branch, at as u32, &self.positions);
        }
        derived.set_head(self.head(&derived.state), &self.lens.estimator);
        let tools = Arc::clone(&derived.head.referable);
        let cleaner = self.lens.cleaner(&tools);
        for ViewStep { position, shows } in order {
            match shows {
                // Messages cannot be undone; a cache edit can.
                StepContent::Entry
                    if self.branch[position].decision().is_some() && !counts(&self.branch[position]) => {}
                StepContent::Entry => derived.add_item(&self.branch[position], position as u32, cleaner),
                StepContent::Lead | StepContent::Restored => self.add_beside(&mut derived, position, shows),
            }
        }
        self.apply_all_decisions(&mut derived, &counts);
        derived.undone.clone_from(&undone);
        derived.start_rope(cleaner);
        derived.grow(cleaner);
        self.derived = derived;
    }

    /// The prompt prefix in force, if the log holds it.
    pub fn prefix(&self) -> Option<&PromptPrefix> {
        self.prefix_of(&self.derived.state)
    }

    fn prefix_of(&self, state: &SessionSnapshot) -> Option<&PromptPrefix> {
        let position = self.position(state.prefix?.id)?;
        match &self.branch[position as usize].body {
            EntryBody::Prefix(prefix) => Some(prefix),
            _ => None,
        }
    }

    fn head(&self, state: &SessionSnapshot) -> RequestHead {
        self.prefix_of(state)
            .map_or(RequestHead::default(), |prefix| RequestHead::new(prefix, self.lens.cleaner(&[])))
    }

    /// The provider's own summary, if the first step begins with one.
    fn opening_summary(&self, boundary: usize, order: &[ViewStep]) -> Option<WireBlock> {
        let contents = order.iter().map(|step| match (&self.branch[step.position].body, step.shows) {
            _ if step.position != boundary => None,
            (EntryBody::Boundary(boundary), StepContent::Lead) => Some(&boundary.lead),
            (EntryBody::Boundary(boundary), StepContent::Entry) => Some(&boundary.summary),
            _ => None,
        });
        let mut contents =
            contents.filter(|content| content.is_none_or(|content| !content.blocks().is_empty()));
        let first = contents.next()??.blocks().first()?;
        self.lens.cleaner(&[]).opening_summary(first)
    }

    /// Adds the content that a boundary shows beside its summary.
    fn add_beside(&self, derived: &mut DerivedView, position: usize, shows: StepContent) {
        let entry = &self.branch[position];
        let EntryBody::Boundary(boundary) = &entry.body else { return };
        let (speaker, content) = match shows {
            // Not as a reminder: that would be placed inside the last kept tool result.
            StepContent::Restored => (NodeSpeaker::User(MessageOrigin::Agent), &boundary.restored),
            StepContent::Lead | StepContent::Entry => (NodeSpeaker::Summary, &boundary.lead),
        };
        if !content.blocks().is_empty() {
            let node = ViewNode::new(
                entry.id,
                position as u32,
                speaker,
                content,
                self.lens.cleaner(&derived.head.referable),
            );
            derived.add_node(node);
        }
    }

    /// Steps in the order in which the model sees them.
    fn order(&self, boundary: Option<usize>) -> Vec<ViewStep> {
        let entries = |positions: std::ops::Range<usize>| {
            positions.map(|position| ViewStep { position, shows: StepContent::Entry })
        };
        let Some(at) = boundary else { return entries(0..self.branch.len()).collect() };
        let EntryBody::Boundary(boundary) = &self.branch[at].body else { return Vec::new() };
        let kept = boundary.preserved.as_ref().and_then(|preserved| {
            let head = self.position(preserved.head)? as usize;
            let tail = self.position(preserved.tail)? as usize;
            (head <= tail && tail < at).then_some((head..tail + 1, preserved.placement))
        });
        let own = |shows| ViewStep { position: at, shows };
        let (kept, placement) = kept.unwrap_or((0..0, PreservedPlacement::AfterSummary));
        let mut order = vec![own(StepContent::Lead)];
        match placement {
            PreservedPlacement::AfterSummary => {
                order.push(own(StepContent::Entry));
                order.extend(entries(kept));
            }
            PreservedPlacement::BeforeSummary => {
                order.extend(entries(kept));
                order.push(own(StepContent::Entry));
            }
        }
        order.push(own(StepContent::Restored));
        order.extend(entries(at + 1..self.branch.len()));
        order
    }

    /// Entries that an undo in force reverts. Later undos are visited first, so an undo of an undo restores
    /// the first one's target.
    fn undone(&self) -> FxHashSet<EntryId> {
        let mut undone = FxHashSet::default();
        for entry in self.branch.iter().rev() {
            if let Some(DecisionKind::Undo { target }) = entry.decision()
                && !undone.contains(&entry.id)
                && self.position(*target) < self.position(entry.id)
            {
                undone.insert(*target);
            }
        }
        undone
    }

    fn apply_all_decisions(&self, derived: &mut DerivedView, counts: &impl Fn(&LogEntry) -> bool) {
        for (position, entry) in self.branch.iter().enumerate() {
            let position = position as u32;
            derived.apply_sent(entry, &self.positions);
            match &entry.body {
                EntryBody::Decision(decision) if counts(entry) => match decision.kind {
                    DecisionKind::Undo { target } => self.void_by_undo(derived, target, position),
                    _ => {
                        derived.apply_decision(entry, position, &self.positions, &self.lens.card);
                    }
                },
                EntryBody::Boundary(boundary) if Some(position) == derived.boundary => {
                    self.void_by_boundary(derived, boundary, position);
                }
                _ => {}
            }
        }
    }

    /// Voids thinking behind the target: undoing a decision changes sent content just as making it did.
    fn void_by_undo(&self, derived: &mut DerivedView, target: EntryId, position: u32) {
        let Some(undone) = self.position(target).filter(|undone| *undone < position) else { return };
        let from = match &self.branch[undone as usize].body {
            // An older boundary than the one in force hid nothing that is in the view.
            EntryBody::Boundary(boundary) => {
                (boundary.has_summary() && Some(undone) > derived.boundary).then_some(undone)
            }
            // It changed the block that it was sent as, unless that left with everything before it.
            EntryBody::Decision(decision) if matches!(decision.kind, DecisionKind::CacheEdit { .. }) => {
                derived.has_item_until(undone).then_some(undone)
            }
            EntryBody::Decision(decision) => {
                derived.target_positions(&decision.kind, undone, &self.positions).into_iter().min()
            }
            _ => None,
        };
        if let Some(from) = from
            && self.lens.card.can.bound_thinking
        {
            derived.void_thinking(PositionRange { from, to: position });
        }
    }

    /// Voids the thinking of messages kept behind a summary: the content before them is new. Behind the
    /// provider's own summary they would keep it only if they followed at once, and our text stands between.
    fn void_by_boundary(&self, derived: &mut DerivedView, boundary: &pal_model::Boundary, position: u32) {
        if self.lens.card.can.bound_thinking
            && boundary
                .preserved
                .as_ref()
                .is_some_and(|kept| kept.placement == PreservedPlacement::AfterSummary)
        {
            derived.void_thinking(PositionRange { from: 0, to: position });
        }
    }
}
