//! Everything that follows from a branch: the items of the view, the decisions in force, and the rope that grows
//! with them.
//!
//! Whatever was frozen when a request left is not looked at again, unless a decision changes it: then the rope is
//! cut back to the last checkpoint before the change and grown again from there.

use pal_model::{Body, Card, DecisionKind, Entry, EntryId, ResponseId, Role, Snapshot, ToolUseId};
use rustc_hash::{FxHashMap, FxHashSet};
use xxhash_rust::xxh3::xxh3_128;

use crate::clean::{Clean, Cleaner, Part};
use crate::effects::{Effects, Stretch, Target, targets};
use crate::estimate::Estimator;
use crate::head::{Head, Joined};
use crate::ledger::Category;
use crate::lens::Lens;
use crate::node::{Node, Speaker};
use crate::rope::{Extent, Rope, Slab};
use crate::state;
use crate::turn::{End, Normaliser};
use crate::wire::text_block;

/// Everything that follows from the branch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Derived {
    /// Position of the boundary in force.
    pub(crate) boundary: Option<u32>,
    pub(crate) state: Snapshot,
    pub(crate) head: Head,
    /// The provider's own summary, which stands before all other messages.
    opening: Option<Clean>,
    /// The members that the head becomes, and their fingerprint.
    joined: Option<(Joined, u128)>,
    items: Vec<Item>,
    /// For each position of the branch, its item.
    item_at: Vec<Option<u32>>,
    result_items: FxHashMap<ToolUseId, u32>,
    /// The items that make calls.
    call_items: FxHashMap<ToolUseId, u32>,
    /// Position of the newest request of the conversation that the view reaches back to.
    pub(crate) last_request: Option<u32>,
    effects: Effects,
    /// For each item inside a fold, the fold.
    fold_of: Vec<Option<u32>>,
    /// For each fold, the first item that shows it.
    fold_starts: Vec<Option<usize>>,
    /// Position of the newest entry that a request of the conversation covers.
    sent: Option<u32>,
    /// Position of the newest response of the conversation, behind the boundary, that reports its prompt.
    pub(crate) anchor: Option<u32>,
    /// Whether the provider cleared something itself since the boundary: what it reports is less than what we show.
    pub(crate) provider_clears: bool,
    /// Decisions and boundaries that were taken back.
    pub(crate) undone: FxHashSet<EntryId>,
    grown: Grown,
}

/// One step of the view: something said, or the point where a request left.
#[derive(Clone, Debug)]
enum Item {
    Said(Box<Node>),
    Sent,
}

/// What grows with the items.
#[derive(Clone, Debug, Default)]
struct Grown {
    rope: Rope,
    seen: FxHashSet<ToolUseId>,
    seen_order: Vec<ToolUseId>,
    checkpoints: Vec<Checkpoint>,
    /// The first item of the open turn.
    open_from: usize,
    /// Items taken in so far.
    taken: usize,
    open: OpenTurn,
}

/// What is known of the open turn.
#[derive(Clone, Debug, Default)]
struct OpenTurn {
    has_nodes: bool,
    /// The response that the turn belongs to, once the model spoke.
    model: Option<Option<ResponseId>>,
    user_followed: bool,
}

/// A state of the rope to return to: all turns before `item` are in it.
#[derive(Clone, Debug)]
struct Checkpoint {
    item: usize,
    /// One more than the item that ended the last of these turns.
    closed_by: usize,
    extent: Extent,
    seen: usize,
}

impl Derived {
    /// Makes room for a branch of this length, and a little more: branches grow.
    pub(crate) fn make_room(&mut self, length: usize) {
        if self.item_at.capacity() < length {
            self.item_at.reserve(length - self.item_at.len() + 64);
        }
        self.item_at.resize(length, None);
    }

    pub(crate) fn set_head(&mut self, head: Head, estimator: &Estimator) {
        let joined = head.joined(false, estimator);
        let print = xxh3_128(joined.text.as_bytes());
        self.joined = Some((joined, print));
        self.head = head;
    }

    /// Has the messages open with the provider's own summary: the first block of what is shown first.
    pub(crate) fn open_with(&mut self, summary: Option<Clean>) {
        self.opening = summary;
    }

    /// Whether the messages open with the provider's own summary.
    pub(crate) fn has_opening(&self) -> bool {
        self.opening.is_some()
    }

    /// Thinking in this stretch can no longer be sent.
    pub(crate) fn void_thinking(&mut self, stretch: Stretch) {
        self.effects.void_thinking(stretch);
    }

    pub(crate) fn take_state(&mut self, entry: &Entry) {
        state::fold_into(&mut self.state, entry);
    }

    /// A report of usage is the anchor for sizes until the next one, or until an undo brings back what the report
    /// did not measure.
    pub(crate) fn take_anchor(&mut self, entry: &Entry, position: u32) {
        match &entry.body {
            Body::Response(response) if response.source.is_conversation() && response.usage.has_prompt() => {
                self.anchor = Some(position);
            }
            Body::Decision(decision) if matches!(decision.kind, DecisionKind::Undo { .. }) => {
                self.anchor = None
            }
            Body::Decision(decision) if matches!(decision.kind, DecisionKind::ProviderClear { .. }) => {
                self.provider_clears = true;
            }
            _ => {}
        }
    }

    pub(crate) fn take_sent(&mut self, entry: &Entry, positions: &FxHashMap<EntryId, u32>) {
        if let Body::Request(request) = &entry.body
            && request.source.is_conversation()
            && let Some(last) = request.last.and_then(|last| positions.get(&last))
        {
            self.sent = self.sent.max(Some(*last));
        }
    }

    pub(crate) fn add_item(&mut self, entry: &Entry, position: u32, cleaner: Cleaner<'_>) {
        let item = match &entry.body {
            Body::Request(request) if request.source.is_conversation() => Item::Sent,
            Body::Boundary(boundary)
                if boundary.summary.blocks().is_empty() || self.boundary != Some(position) =>
            {
                return;
            }
            _ => match Node::of_entry(entry, position, cleaner) {
                Some(node) => Item::Said(Box::new(self.without_opening(node))),
                None => return,
            },
        };
        let at = self.items.len() as u32;
        if let Item::Said(node) = &item {
            for clean in &node.clean {
                match &clean.part {
                    Part::Result(id) => {
                        self.result_items.entry(id.clone()).or_insert(at);
                    }
                    Part::Call(id) => {
                        self.call_items.entry(id.clone()).or_insert(at);
                    }
                    _ => {}
                }
            }
        } else {
            self.last_request = self.last_request.max(Some(position));
        }
        self.item_at[position as usize] = Some(at);
        self.items.push(item);
    }

    /// Adds a node that has no entry of its own.
    pub(crate) fn add_node(&mut self, node: Node) {
        let node = self.without_opening(node);
        self.items.push(Item::Said(Box::new(node)));
    }

    /// The block that opens the messages is not told once more by the node that it stands in, which is the first.
    fn without_opening(&self, mut node: Node) -> Node {
        if self.opening.is_some() && self.items.is_empty() && !node.clean.is_empty() {
            node.clean.remove(0);
        }
        node
    }

    /// Takes a decision in; returns the first item that it changes, if it changes any.
    pub(crate) fn take_decision(
        &mut self,
        entry: &Entry,
        position: u32,
        positions: &FxHashMap<EntryId, u32>,
        card: &Card,
    ) -> Option<usize> {
        let Body::Decision(decision) = &entry.body else { return None };
        if let DecisionKind::Keep { tool_use_ids } = &decision.kind {
            // As with any decision: only what the view showed when it was made.
            let is_meant =
                |id: &&ToolUseId| self.result_node(id).is_some_and(|node| node.position < position);
            let meant: Vec<ToolUseId> = tool_use_ids.iter().filter(is_meant).cloned().collect();
            self.effects.keep(&meant);
        }
        let is_edit = matches!(decision.kind, DecisionKind::CacheEdit { .. });
        // An edit of the cache counts only where it is sent.
        if is_edit && !self.has_item(position) {
            return None;
        }
        let hit = self.target_positions(&decision.kind, position, positions);
        let (from, to) = (hit.iter().min().copied()?, hit.iter().max().copied()?);
        let stretch = Stretch { from, to };
        let is_fold = matches!(decision.kind, DecisionKind::Fold { .. });
        // A fold needs both of its ends.
        self.effects.add(entry.id, decision, (hit.len() == 2 || !is_fold).then_some(stretch));
        if is_fold {
            self.paint_folds();
        }
        if card.can.bound_thinking && !is_edit && self.sent.is_some_and(|sent| from <= sent) {
            self.effects.void_thinking(Stretch { from, to: position });
        }
        (from..=to).filter_map(|position| self.item_at[position as usize]).min().map(|item| item as usize)
    }

    /// Whether something that is shown stands at a position or before it.
    pub(crate) fn has_item_until(&self, position: u32) -> bool {
        self.item_at.iter().take(position as usize + 1).any(Option::is_some)
    }

    /// Where in the branch the targets of a decision lie: those in the view that stood there when it was made.
    pub(crate) fn target_positions(
        &self,
        kind: &DecisionKind,
        made_at: u32,
        positions: &FxHashMap<EntryId, u32>,
    ) -> Vec<u32> {
        let result_position = |id| self.result_node(id).map(|node| node.position);
        targets(kind)
            .into_iter()
            .filter_map(|target| match target {
                Target::Entry(id) => positions.get(&id).copied(),
                Target::Result(id) => result_position(id),
            })
            .filter(|position| *position < made_at && self.has_item(*position))
            .collect()
    }

    /// Assigns items to folds; where folds overlap the newest counts.
    fn paint_folds(&mut self) {
        self.fold_of = vec![None; self.items.len()];
        self.fold_starts = vec![None; self.effects.folds().len()];
        for (fold, stretch) in self.effects.folds().iter().map(|fold| fold.stretch).enumerate() {
            for position in stretch.from..=stretch.to {
                if let Some(item) = self.item_at.get(position as usize).copied().flatten() {
                    self.fold_of[item as usize] = Some(fold as u32);
                }
            }
        }
        for (at, fold) in self.fold_of.iter().enumerate() {
            if let (Some(fold), Item::Said(_)) = (fold, &self.items[at]) {
                self.fold_starts[*fold as usize].get_or_insert(at);
            }
        }
    }

    /// What stands before all messages: the provider's own summary, which must be the first, and the reminder.
    pub(crate) fn start_rope(&mut self, cleaner: Cleaner<'_>) {
        if let Some(Clean { text, tokens, .. }) = self.opening.clone() {
            let slab = Slab { text, markable: true, category: Category::Summaries, tokens, attached: 0.0 };
            self.grown.rope.push(Role::Assistant, slab);
        }
        for block in self.head.context.blocks() {
            if let Some(clean) =
                cleaner.clean(block, Role::User).filter(|clean| !matches!(clean.part, Part::Result(_)))
            {
                let Clean { text, tokens, .. } = clean;
                let slab =
                    Slab { text, markable: true, category: Category::Attachments, tokens, attached: 0.0 };
                self.grown.rope.push(Role::User, slab);
            }
        }
        let extent = self.grown.rope.extent().clone();
        self.grown.checkpoints = vec![Checkpoint { item: 0, closed_by: 0, extent, seen: 0 }];
    }

    /// What stands before all messages: how many blocks, and their estimated tokens.
    pub(crate) fn opening(&self) -> (usize, f64) {
        let first = self.grown.checkpoints.first();
        first.map_or((0, 0.0), |first| (first.extent.blocks, first.extent.sums.total()))
    }

    /// Takes in all items that were not taken in yet.
    pub(crate) fn grow(&mut self, cleaner: Cleaner<'_>) {
        while self.grown.taken < self.items.len() {
            let at = self.grown.taken;
            match &self.items[at] {
                Item::Sent if self.fold_of.get(at).copied().flatten().is_none() => {
                    self.close(at, End::Request, cleaner);
                }
                Item::Sent => {}
                Item::Said(node) => {
                    let shows = self.shows(at, node);
                    let speaker = node.speaker.clone();
                    match (shows, speaker) {
                        (Shows::Nothing, _) => {}
                        (Shows::Itself, Speaker::Model(response)) => self.model_speaks(at, response, cleaner),
                        _ => {
                            self.grown.open.has_nodes = true;
                            self.grown.open.user_followed = true;
                        }
                    }
                }
            }
            self.grown.taken += 1;
        }
    }

    /// The model speaks: another response than the open turn's closes that turn.
    fn model_speaks(&mut self, at: usize, response: Option<ResponseId>, cleaner: Cleaner<'_>) {
        let open = &self.grown.open;
        let goes_on = match (&open.model, &response) {
            (Some(Some(open_response)), Some(response)) => open_response == response,
            (Some(_), _) => !open.user_followed,
            (None, _) => false,
        };
        if !goes_on {
            if open.has_nodes {
                self.close(at, End::Response, cleaner);
            }
            self.grown.open_from = at;
            self.grown.open = OpenTurn { has_nodes: true, model: Some(response), user_followed: false };
        } else if response.is_some() {
            self.grown.open.model = Some(response);
        }
    }

    /// Freezes the open turn, which ends before the item `at`.
    fn close(&mut self, at: usize, end: End, cleaner: Cleaner<'_>) {
        let mut rope = std::mem::take(&mut self.grown.rope);
        let made = self.add_open_turn(&mut rope, at, end, cleaner);
        let grown = &mut self.grown;
        for id in made {
            if grown.seen.insert(id.clone()) {
                grown.seen_order.push(id);
            }
        }
        grown.rope = rope;
        grown.open = OpenTurn::default();
        // The point where the request left is behind us; a node that begins the next turn is not.
        grown.open_from = if end == End::Request { at + 1 } else { at };
        let extent = grown.rope.extent().clone();
        let seen = grown.seen_order.len();
        grown.checkpoints.push(Checkpoint { item: grown.open_from, closed_by: at + 1, extent, seen });
    }

    fn add_open_turn(&self, rope: &mut Rope, to: usize, end: End, cleaner: Cleaner<'_>) -> Vec<ToolUseId> {
        let folded: Vec<Node> = (self.grown.open_from..to)
            .filter_map(|at| match (&self.items[at], self.fold_of.get(at).copied().flatten()) {
                (Item::Said(node), Some(fold)) if self.shows(at, node) == Shows::Fold => {
                    let fold = &self.effects.folds()[fold as usize];
                    // Like any summary, it quotes what it sums up.
                    let said = pal_model::defuse(&fold.text);
                    let (text, tokens) = (text_block(&said), cleaner.estimator.text(&said));
                    let clean = if said.trim().is_empty() {
                        Vec::new()
                    } else {
                        vec![Clean { part: Part::Text, text, tokens }]
                    };
                    Some(Node {
                        entry: fold.decision,
                        position: node.position,
                        speaker: Speaker::Summary,
                        clean,
                    })
                }
                _ => None,
            })
            .collect();
        let mut folded = folded.iter();
        let mut nodes: Vec<&Node> = Vec::new();
        for at in self.grown.open_from..to {
            if let Item::Said(node) = &self.items[at] {
                match self.shows(at, node) {
                    Shows::Itself => nodes.push(node),
                    Shows::Fold => nodes.extend(folded.next()),
                    Shows::Nothing => {}
                }
            }
        }
        let normaliser = Normaliser { cleaner, effects: &self.effects, seen: &self.grown.seen };
        normaliser.add_turn(rope, nodes.iter().copied(), end)
    }

    /// What the item `at` shows: itself, the fold that begins there, or nothing.
    fn shows(&self, at: usize, node: &Node) -> Shows {
        match self.fold_of.get(at).copied().flatten() {
            None if self.effects.hides(node) => Shows::Nothing,
            None => Shows::Itself,
            Some(fold) if self.fold_starts[fold as usize] == Some(at) => Shows::Fold,
            Some(_) => Shows::Nothing,
        }
    }

    /// Forgets what was grown from the item `item` on. A turn that this very item ended is open again, because
    /// the item may no longer show.
    pub(crate) fn cut_back_to(&mut self, item: usize) {
        let grown = &mut self.grown;
        let keep = grown.checkpoints.partition_point(|checkpoint| checkpoint.closed_by <= item);
        grown.checkpoints.truncate(keep.max(1));
        let Some(Checkpoint { item, extent, seen, .. }) = grown.checkpoints.last().cloned() else { return };
        grown.rope.truncate(extent);
        for id in grown.seen_order.drain(seen..) {
            grown.seen.remove(&id);
        }
        grown.open_from = item;
        grown.taken = item;
        grown.open = OpenTurn::default();
    }

    /// The messages of a request that would leave now.
    pub(crate) fn rope_now(&self, lens: &Lens) -> Rope {
        let mut rope = self.grown.rope.fork();
        self.add_open_turn(&mut rope, self.items.len(), End::Request, lens.cleaner(&self.head.referable));
        rope
    }

    /// The members before the messages, with or without a mark, and the fingerprint without.
    pub(crate) fn prefix(&self, spelled_out: bool, estimator: &Estimator) -> (Joined, u128) {
        match &self.joined {
            Some(known) if !spelled_out || self.head.unseen_tokens == 0 => known.clone(),
            _ => {
                let joined = self.head.joined(spelled_out, estimator);
                let print = xxh3_128(joined.text.as_bytes());
                (joined, print)
            }
        }
    }

    /// What the items show, in order.
    pub(crate) fn showing(&self) -> impl DoubleEndedIterator<Item = (&Node, Showing)> {
        self.items.iter().enumerate().filter_map(|(at, item)| match item {
            Item::Sent => None,
            Item::Said(node) => {
                let fold = self.fold_of.get(at).copied().flatten();
                let showing = match fold {
                    Some(fold) => Showing::Folded(self.effects.folds()[fold as usize].decision),
                    None if self.effects.hides(node) => Showing::Snipped,
                    None => Showing::Itself,
                };
                Some((node.as_ref(), showing))
            }
        })
    }

    /// The node that holds a result.
    pub(crate) fn result_node(&self, id: &ToolUseId) -> Option<&Node> {
        match self.items.get(*self.result_items.get(id)? as usize)? {
            Item::Said(node) => Some(node),
            Item::Sent => None,
        }
    }

    /// The results that show themselves, in order, each with its node.
    pub(crate) fn results(&self) -> impl DoubleEndedIterator<Item = (&ToolUseId, &Node)> {
        let shown = self.items.iter().enumerate().filter_map(|(at, item)| match item {
            Item::Said(node) if self.shows(at, node) == Shows::Itself => Some((at as u32, node.as_ref())),
            _ => None,
        });
        shown.flat_map(move |(at, node)| {
            node.clean.iter().filter_map(move |clean| match &clean.part {
                Part::Result(id) if self.result_items.get(id) == Some(&at) => Some((id, node)),
                _ => None,
            })
        })
    }

    /// The node that makes a call.
    pub(crate) fn call_node(&self, id: &ToolUseId) -> Option<&Node> {
        match self.items.get(*self.call_items.get(id)? as usize)? {
            Item::Said(node) => Some(node),
            Item::Sent => None,
        }
    }

    /// Blocks of turns that are closed: what the last request sent, or what stands before the open turn.
    pub(crate) fn closed_blocks(&self) -> usize {
        self.grown.rope.extent().blocks
    }

    /// Position of the newest entry that a request of the conversation covers.
    pub(crate) fn sent(&self) -> Option<u32> {
        self.sent
    }

    /// The nodes of the view with what each shows, in order.
    pub(crate) fn nodes(&self) -> impl DoubleEndedIterator<Item = &Node> {
        self.items.iter().filter_map(|item| match item {
            Item::Said(node) => Some(node.as_ref()),
            Item::Sent => None,
        })
    }

    /// The first position in the view that a decision made at `made_at` changed; none if it was taken back.
    pub(crate) fn first_changed(
        &self,
        entry: &Entry,
        made_at: u32,
        positions: &FxHashMap<EntryId, u32>,
    ) -> Option<u32> {
        let kind = entry.decision().filter(|_| !self.undone.contains(&entry.id))?;
        self.target_positions(kind, made_at, positions).into_iter().min()
    }

    pub(crate) fn effects(&self) -> &Effects {
        &self.effects
    }

    pub(crate) fn has_item(&self, position: u32) -> bool {
        self.item_at.get(position as usize).is_some_and(Option::is_some)
    }

    /// The nodes that follow the item at `position`, in the view's order.
    pub(crate) fn nodes_after(&self, position: u32) -> impl Iterator<Item = &Node> {
        let item = self.item_at.get(position as usize).copied().flatten();
        let from = item.map_or(self.items.len(), |item| item as usize + 1);
        self.items[from..].iter().filter_map(|item| match item {
            Item::Said(node) => Some(node.as_ref()),
            Item::Sent => None,
        })
    }

    /// The nodes of entries appended after `position`.
    pub(crate) fn newest_nodes(&self, position: u32) -> impl Iterator<Item = &Node> {
        self.nodes().rev().take_while(move |node| node.position > position)
    }
}

/// Whether an entry of the view shows itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Showing {
    /// It does, perhaps with spilled or cleared parts.
    Itself,
    /// It is snipped.
    Snipped,
    /// It is part of a stretch that this decision folded.
    Folded(EntryId),
}

/// What an item shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shows {
    Itself,
    Fold,
    Nothing,
}
