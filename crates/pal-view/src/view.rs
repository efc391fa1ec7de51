//! The view: what the model sees next, as a pure function of the branch.
//!
//! A view grows with each entry by what the entry adds. Rare events (a boundary, an undo, a rewind, a new prefix)
//! derive everything anew. Either way the result equals [`View::of`] all entries: that law is the first property test.

use std::sync::Arc;

use pal_model::{Body, DecisionKind, Entry, EntryId, Origin, Placement, Prefix, Snapshot, Totals};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::clean::{Clean, Cleaner};
use crate::derived::Derived;
use crate::effects::Stretch;
use crate::head::Head;
use crate::lens::{Lens, Scope};
use crate::node::{Node, Speaker};

/// What became of an entry that was pushed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pushed {
    /// It is part of the branch now.
    Added,
    /// An entry with this id is part of the branch already.
    Repeated,
    /// It continues an entry that this view does not hold: read the log again.
    NeedsHistory,
}

/// One step of what the model sees: an entry, or what a boundary shows beside its summary.
#[derive(Clone, Copy)]
struct Step {
    position: usize,
    shows: Shows,
}

/// What a step shows of its entry.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shows {
    /// What it says; of a boundary, the summary.
    Entry,
    /// What an earlier boundary showed.
    Lead,
    /// What a compaction put back into sight.
    Restored,
}

/// What a resume left out of a branch that no window holds.
#[derive(Clone, Debug)]
struct Earlier {
    /// What it used up.
    totals: Totals,
    /// Entries that were read with it: what the provider counted there was another conversation.
    uncounted: usize,
}

/// What the model sees next.
#[derive(Clone, Debug)]
pub struct View {
    lens: Lens,
    branch: Vec<Entry>,
    positions: FxHashMap<EntryId, u32>,
    /// What a resume left out, if something.
    earlier: Option<Earlier>,
    derived: Derived,
}

impl View {
    /// An empty view.
    pub fn new(lens: Lens) -> View {
        View::of(lens, [])
    }

    /// The view of a branch, derived in one pass. The entries are those of the branch in order, all of them or
    /// those that resume reads: the prefix in force, what the boundary in force keeps, and what follows.
    pub fn of(lens: Lens, branch: impl IntoIterator<Item = Entry>) -> View {
        View::with_earlier(lens, branch.into_iter().collect(), None)
    }

    /// The same for a branch of which a resume left something out: what that used up is part of the totals.
    pub fn resumed(lens: Lens, branch: impl IntoIterator<Item = Entry>, left_out: Option<Totals>) -> View {
        let branch: Vec<Entry> = branch.into_iter().collect();
        let uncounted = branch.len();
        let earlier = left_out.map(|totals| Earlier { totals, uncounted });
        View::with_earlier(lens, branch, earlier)
    }

    fn with_earlier(lens: Lens, branch: Vec<Entry>, earlier: Option<Earlier>) -> View {
        let positions = branch.iter().enumerate().map(|(at, entry)| (entry.id, at as u32)).collect();
        let mut view = View { lens, branch, positions, earlier, derived: Derived::default() };
        view.derive();
        view
    }

    /// Adds an entry that was appended to the log. Costs what the entry adds.
    pub fn push(&mut self, entry: Entry) -> Pushed {
        let continues = entry.parent == self.branch.last().map(|last| last.id);
        let pushed = self.add_to_branch(entry);
        if pushed == Pushed::Added {
            if continues { self.take_newest() } else { self.derive() }
        }
        pushed
    }

    /// The same branch seen through another lens.
    pub fn through(&self, lens: Lens) -> View {
        View::with_earlier(lens, self.branch.clone(), self.earlier.clone())
    }

    /// The entries of the branch, as far as this view holds them.
    pub fn branch(&self) -> &[Entry] {
        &self.branch
    }

    /// The newest entry.
    pub fn newest(&self) -> Option<EntryId> {
        self.branch.last().map(|entry| entry.id)
    }

    /// The lens.
    pub fn lens(&self) -> &Lens {
        &self.lens
    }

    /// State that is no message; what the next boundary carries.
    pub fn state(&self) -> &Snapshot {
        &self.derived.state
    }

    /// The boundary in force.
    pub fn boundary(&self) -> Option<&Entry> {
        self.derived.boundary.and_then(|position| self.branch.get(position as usize))
    }

    /// Whether a part of what stands before the messages was sent but is not in the log.
    pub fn has_unseen_prefix(&self) -> bool {
        self.derived.state.prefix.is_none() || self.derived.head.unseen_tokens > 0
    }

    /// Whether the messages open with the provider's own summary, as the block that it is.
    pub fn opens_with_provider_summary(&self) -> bool {
        self.derived.has_opening()
    }

    pub(crate) fn derived(&self) -> &Derived {
        &self.derived
    }

    /// What makes blocks fit for the wire, for this view's model and tools.
    pub(crate) fn cleaner(&self) -> Cleaner<'_> {
        self.lens.cleaner(&self.derived.head.referable)
    }

    pub(crate) fn positions(&self) -> &FxHashMap<EntryId, u32> {
        &self.positions
    }

    fn position(&self, id: EntryId) -> Option<u32> {
        self.positions.get(&id).copied()
    }

    fn add_to_branch(&mut self, entry: Entry) -> Pushed {
        if self.positions.contains_key(&entry.id) {
            return Pushed::Repeated;
        }
        if entry.parent != self.newest() && !self.branch.is_empty() {
            let keep = match entry.parent {
                None => 0,
                Some(parent) => match self.positions.get(&parent) {
                    Some(&position) => position as usize + 1,
                    None => return Pushed::NeedsHistory,
                },
            };
            for dropped in self.branch.drain(keep..) {
                self.positions.remove(&dropped.id);
            }
        }
        self.positions.insert(entry.id, self.branch.len() as u32);
        self.branch.push(entry);
        Pushed::Added
    }

    /// Takes the newest entry of the branch into what was derived before it.
    fn take_newest(&mut self) {
        let position = self.branch.len() - 1;
        let entry = &self.branch[position];
        let changes_all = match &entry.body {
            Body::Boundary(_) => self.lens.scope == Scope::Current,
            Body::Decision(decision) => matches!(decision.kind, DecisionKind::Undo { .. }),
            Body::Prefix(_) => true,
            _ => false,
        };
        if changes_all {
            return self.derive();
        }
        let derived = &mut self.derived;
        derived.make_room(position + 1);
        if !matches!(entry.body, Body::Boundary(_)) {
            derived.take_state(entry);
        }
        derived.take_sent(entry, &self.positions);
        derived.take_anchor(entry, position as u32);
        let tools = Arc::clone(&derived.head.referable);
        let cleaner = self.lens.cleaner(&tools);
        match &entry.body {
            Body::Decision(_) => {
                derived.add_item(entry, position as u32, cleaner);
                if let Some(item) =
                    derived.take_decision(entry, position as u32, &self.positions, &self.lens.card)
                {
                    derived.cut_back_to(item);
                }
            }
            _ => derived.add_item(entry, position as u32, cleaner),
        }
        derived.grow(cleaner);
    }

    /// Derives everything from the branch.
    fn derive(&mut self) {
        let undone = self.undone();
        let counts = |entry: &Entry| !undone.contains(&entry.id);
        let mut derived = Derived::default();
        if let Some(earlier) = &self.earlier {
            derived.state.totals = earlier.totals;
        }
        derived.make_room(self.branch.len());
        let boundary = match self.lens.scope {
            Scope::Whole => None,
            Scope::Current => self.branch.iter().rposition(|entry| {
                matches!(&entry.body, Body::Boundary(boundary) if boundary.stands()) && counts(entry)
            }),
        };
        derived.boundary = boundary.map(|position| position as u32);
        let order = self.order(boundary);
        derived.open_with(boundary.and_then(|boundary| self.opening_summary(boundary, &order)));
        let state_from = boundary.unwrap_or(0);
        for entry in self.branch[state_from..].iter().filter(|entry| counts(entry)) {
            if !matches!(entry.body, Body::Boundary(_)) || self.lens.scope == Scope::Current {
                derived.take_state(entry);
            }
        }
        let uncounted = self.earlier.as_ref().map_or(0, |earlier| earlier.uncounted);
        let anchor_from = boundary.map_or(uncounted, |position| position + 1);
        for (at, entry) in self.branch.iter().enumerate().skip(anchor_from).filter(|(_, entry)| counts(entry))
        {
            derived.take_anchor(entry, at as u32);
        }
        derived.set_head(self.head(&derived.state), &self.lens.estimator);
        let tools = Arc::clone(&derived.head.referable);
        let cleaner = self.lens.cleaner(&tools);
        for Step { position, shows } in order {
            match shows {
                // What was said cannot be taken back; an edit of the cache can.
                Shows::Entry
                    if self.branch[position].decision().is_some() && !counts(&self.branch[position]) => {}
                Shows::Entry => derived.add_item(&self.branch[position], position as u32, cleaner),
                Shows::Lead | Shows::Restored => self.add_beside(&mut derived, position, shows),
            }
        }
        self.take_all_decisions(&mut derived, &counts);
        derived.undone.clone_from(&undone);
        derived.start_rope(cleaner);
        derived.grow(cleaner);
        self.derived = derived;
    }

    /// What stands before the messages, as far as the log holds it.
    pub fn prefix(&self) -> Option<&Prefix> {
        self.prefix_of(&self.derived.state)
    }

    fn prefix_of(&self, state: &Snapshot) -> Option<&Prefix> {
        let position = self.position(state.prefix?.id)?;
        match &self.branch[position as usize].body {
            Body::Prefix(prefix) => Some(prefix),
            _ => None,
        }
    }

    fn head(&self, state: &Snapshot) -> Head {
        self.prefix_of(state).map_or(Head::default(), |prefix| Head::new(prefix, self.lens.cleaner(&[])))
    }

    /// The provider's own summary, if what is shown first begins with one.
    fn opening_summary(&self, boundary: usize, order: &[Step]) -> Option<Clean> {
        let contents = order.iter().map(|step| match (&self.branch[step.position].body, step.shows) {
            _ if step.position != boundary => None,
            (Body::Boundary(boundary), Shows::Lead) => Some(&boundary.lead),
            (Body::Boundary(boundary), Shows::Entry) => Some(&boundary.summary),
            _ => None,
        });
        let mut contents =
            contents.filter(|content| content.is_none_or(|content| !content.blocks().is_empty()));
        let first = contents.next()??.blocks().first()?;
        self.lens.cleaner(&[]).opening_summary(first)
    }

    /// What a boundary shows besides its summary.
    fn add_beside(&self, derived: &mut Derived, position: usize, shows: Shows) {
        let entry = &self.branch[position];
        let Body::Boundary(boundary) = &entry.body else { return };
        let (speaker, content) = match shows {
            // Not as a reminder: that would go into the last kept result, and these are no words of that tool.
            Shows::Restored => (Speaker::User(Origin::Agent), &boundary.restored),
            Shows::Lead | Shows::Entry => (Speaker::Summary, &boundary.lead),
        };
        if !content.blocks().is_empty() {
            let node = Node::new(
                entry.id,
                position as u32,
                speaker,
                content,
                self.lens.cleaner(&derived.head.referable),
            );
            derived.add_node(node);
        }
    }

    /// Positions in the order in which the model sees them.
    fn order(&self, boundary: Option<usize>) -> Vec<Step> {
        let entries = |positions: std::ops::Range<usize>| {
            positions.map(|position| Step { position, shows: Shows::Entry })
        };
        let Some(at) = boundary else { return entries(0..self.branch.len()).collect() };
        let Body::Boundary(boundary) = &self.branch[at].body else { return Vec::new() };
        let kept = boundary.preserved.as_ref().and_then(|preserved| {
            let head = self.position(preserved.head)? as usize;
            let tail = self.position(preserved.tail)? as usize;
            (head <= tail && tail < at).then_some((head..tail + 1, preserved.placement))
        });
        let own = |shows| Step { position: at, shows };
        let (kept, placement) = kept.unwrap_or((0..0, Placement::AfterSummary));
        let mut order = vec![own(Shows::Lead)];
        match placement {
            Placement::AfterSummary => {
                order.push(own(Shows::Entry));
                order.extend(entries(kept));
            }
            Placement::BeforeSummary => {
                order.extend(entries(kept));
                order.push(own(Shows::Entry));
            }
        }
        order.push(own(Shows::Restored));
        order.extend(entries(at + 1..self.branch.len()));
        order
    }

    /// Entries that an undo in force has taken back. Later undos are looked at first, so an undo of an undo
    /// brings the first one's target back.
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

    fn take_all_decisions(&self, derived: &mut Derived, counts: &impl Fn(&Entry) -> bool) {
        for (position, entry) in self.branch.iter().enumerate() {
            let position = position as u32;
            derived.take_sent(entry, &self.positions);
            match &entry.body {
                Body::Decision(decision) if counts(entry) => match decision.kind {
                    DecisionKind::Undo { target } => self.void_by_undo(derived, target, position),
                    _ => {
                        derived.take_decision(entry, position, &self.positions, &self.lens.card);
                    }
                },
                Body::Boundary(boundary) if Some(position) == derived.boundary => {
                    self.void_by_boundary(derived, boundary, position);
                }
                _ => {}
            }
        }
    }

    /// Taking a decision back changes what was sent, just as making it did.
    fn void_by_undo(&self, derived: &mut Derived, target: EntryId, position: u32) {
        let Some(undone) = self.position(target).filter(|undone| *undone < position) else { return };
        let from = match &self.branch[undone as usize].body {
            // An older boundary than the one in force hid nothing that is in the view.
            Body::Boundary(boundary) => {
                (boundary.stands() && Some(undone) > derived.boundary).then_some(undone)
            }
            // What it changed is the block that it was sent as, unless that has gone with everything before it.
            Body::Decision(decision) if matches!(decision.kind, DecisionKind::CacheEdit { .. }) => {
                derived.has_item_until(undone).then_some(undone)
            }
            Body::Decision(decision) => {
                derived.target_positions(&decision.kind, undone, &self.positions).into_iter().min()
            }
            _ => None,
        };
        if let Some(from) = from
            && self.lens.card.can.bound_thinking
        {
            derived.void_thinking(Stretch { from, to: position });
        }
    }

    /// Messages kept behind a summary lose their thinking: what stands before them is new. Behind the provider's own
    /// they would keep it only if they followed it at once, and our words stand between.
    fn void_by_boundary(&self, derived: &mut Derived, boundary: &pal_model::Boundary, position: u32) {
        if self.lens.card.can.bound_thinking
            && boundary.preserved.as_ref().is_some_and(|kept| kept.placement == Placement::AfterSummary)
        {
            derived.void_thinking(Stretch { from: 0, to: position });
        }
    }
}
