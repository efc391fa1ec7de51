//! State derived from a branch: the items of the view, the decisions in force, and the rope that grows with
//! them.
//!
//! Turns frozen when a request left are not visited again, unless a decision changes one: then the rope is
//! cut back to the last checkpoint before the change and grown again from there.

use pal_model::{
    DecisionKind, EntryBody, EntryId, LogEntry, ModelCard, ResponseId, Role, SessionSnapshot, ToolUseId,
};
use rustc_hash::{FxHashMap, FxHashSet};
use xxhash_rust::xxh3::xxh3_128;

use crate::decision_effects::{DecisionEffects, DecisionTarget, PositionRange, targets};
use crate::estimate::Estimator;
use crate::json_object::text_block;
use crate::lens::Lens;
use crate::message_rope::{MessageRope, RopeBlock, RopeExtent};
use crate::request_head::{RenderedHead, RequestHead};
use crate::snapshot_update;
use crate::token_category::Category;
use crate::turn_normalizer::{TurnEnd, TurnNormalizer};
use crate::view_node::{NodeSpeaker, ViewNode};
use crate::wire_block::{BlockCleaner, WireBlock, WireBlockKind};

/// State derived from the branch.
#[derive(Clone, Debug, Default)]
pub(crate) struct DerivedView {
    /// Position of the boundary in force.
    pub(crate) boundary: Option<u32>,
    pub(crate) state: SessionSnapshot,
    pub(crate) head: RequestHead,
    /// The provider's own summary, which stands before all other messages.
    opening: Option<WireBlock>,
    /// The rendered head members and their fingerprint.
    joined: Option<(RenderedHead, u128)>,
    items: Vec<ViewItem>,
    index: ItemIndex,
    effects: DecisionEffects,
    folds: FoldIndex,
    pub(crate) requests: RequestPositions,
    /// Ids of undone decisions and boundaries.
    pub(crate) undone: FxHashSet<EntryId>,
    grown: GrownTurns,
}

/// Indices of items by position, result and call.
#[derive(Clone, Debug, Default)]
struct ItemIndex {
    /// For each position of the branch, its item.
    item_at: Vec<Option<u32>>,
    result_items: FxHashMap<ToolUseId, u32>,
    /// The items that make calls.
    call_items: FxHashMap<ToolUseId, u32>,
}

/// Assignment of items to the folds in force.
#[derive(Clone, Debug, Default)]
struct FoldIndex {
    /// For each item inside a fold, the fold.
    fold_of: Vec<Option<u32>>,
    /// For each fold, the first item that shows it.
    fold_starts: Vec<Option<usize>>,
}

/// Positions of the conversation's requests and usage reports.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestPositions {
    /// Position of the newest request of the conversation that the view reaches back to.
    pub(crate) last_request: Option<u32>,
    /// Position of the newest entry that a request of the conversation covers.
    sent: Option<u32>,
    /// Position of the newest response of the conversation, behind the boundary, that reports its prompt.
    pub(crate) anchor: Option<u32>,
    /// Positions of the newest usage report and of the prefix that it measured.
    measured: Option<(u32, Option<u32>)>,
    /// Position of the newest prefix.
    prefix: Option<u32>,
    /// Set if the provider cleared content itself since the boundary: its reports then count less than the
    /// view shows.
    pub(crate) provider_clears: bool,
}

/// One item of the view: a node, or the point where a request left.
#[derive(Clone, Debug)]
enum ViewItem {
    Node(Box<ViewNode>),
    RequestSent,
}

/// The rope grown from the items so far.
#[derive(Clone, Debug, Default)]
struct GrownTurns {
    rope: MessageRope,
    seen: FxHashSet<ToolUseId>,
    seen_order: Vec<ToolUseId>,
    checkpoints: Vec<RopeCheckpoint>,
    /// The first item of the open turn.
    open_from: usize,
    /// Number of items processed so far.
    taken: usize,
    open: OpenTurn,
}

/// State of the open turn.
#[derive(Clone, Debug, Default)]
struct OpenTurn {
    has_nodes: bool,
    /// The response that the turn belongs to, once the model spoke.
    model: Option<Option<ResponseId>>,
    user_followed: bool,
}

/// A state of the rope to return to: all turns before `item` are in it.
#[derive(Clone, Debug)]
struct RopeCheckpoint {
    item: usize,
    /// One more than the item that ended the last of these turns.
    closed_by: usize,
    extent: RopeExtent,
    seen: usize,
}

impl DerivedView {
    /// Reserves space for a branch of this length, and a little more.
    pub(crate) fn make_room(&mut self, length: usize) {
        if self.index.item_at.capacity() < length {
            self.index.item_at.reserve(length - self.index.item_at.len() + 64);
        }
        self.index.item_at.resize(length, None);
    }

    pub(crate) fn set_head(&mut self, head: RequestHead, estimator: &Estimator) {
        let joined = head.joined(false, estimator);
        let print = xxh3_128(joined.text.as_bytes());
        self.joined = Some((joined, print));
        self.head = head;
    }

    /// Sets the provider's own summary as the first block of the messages.
    pub(crate) fn open_with(&mut self, summary: Option<WireBlock>) {
        self.opening = summary;
    }

    /// Returns true if the messages open with the provider's own summary.
    pub(crate) fn has_opening(&self) -> bool {
        self.opening.is_some()
    }

    /// Marks the thinking in this range as no longer sendable.
    pub(crate) fn void_thinking(&mut self, stretch: PositionRange) {
        self.effects.void_thinking(stretch);
    }

    pub(crate) fn apply_state(&mut self, entry: &LogEntry) {
        snapshot_update::fold_into(&mut self.state, entry);
    }

    /// Makes a usage report the anchor for sizes, until the next report, until an undo or another prefix brings
    /// content that the report did not measure, or until another model counts. An undo of what came after the report
    /// leads back to what it measured, and so does the return of its prefix.
    pub(crate) fn apply_anchor(
        &mut self,
        branch: &[LogEntry],
        position: u32,
        positions: &FxHashMap<EntryId, u32>,
    ) {
        let entry = &branch[position as usize];
        match &entry.body {
            EntryBody::Response(response)
                if response.source.is_conversation() && response.usage.has_prompt() =>
            {
                self.requests.anchor = Some(position);
                self.requests.measured = Some((position, self.requests.prefix));
            }
            EntryBody::Decision(decision) if let DecisionKind::Undo { target } = &decision.kind => {
                // An undo of a later entry is none.
                let target = positions.get(target).filter(|target| **target < position);
                self.requests.measured =
                    self.requests.measured.filter(|(report, _)| target.is_some_and(|target| report < target));
                self.requests.anchor =
                    self.requests.anchor.filter(|report| target.is_some_and(|target| report < target));
            }
            EntryBody::Decision(decision) if matches!(decision.kind, DecisionKind::Model { .. }) => {
                (self.requests.anchor, self.requests.measured) = (None, None);
            }
            // A report of another prefix does not count.
            EntryBody::Prefix(prefix) => {
                self.requests.prefix = Some(position);
                let is_measured = |known: u32| match &branch[known as usize].body {
                    EntryBody::Prefix(known) => known == prefix,
                    _ => false,
                };
                let measured = self.requests.measured;
                self.requests.anchor =
                    measured.filter(|(_, known)| known.is_some_and(is_measured)).map(|(report, _)| report);
            }
            EntryBody::Decision(decision) if matches!(decision.kind, DecisionKind::ProviderClear { .. }) => {
                self.requests.provider_clears = true;
            }
            _ => {}
        }
    }

    pub(crate) fn apply_sent(&mut self, entry: &LogEntry, positions: &FxHashMap<EntryId, u32>) {
        if let EntryBody::Request(request) = &entry.body
            && request.source.is_conversation()
            && let Some(last) = request.last.and_then(|last| positions.get(&last))
        {
            self.requests.sent = self.requests.sent.max(Some(*last));
        }
    }

    pub(crate) fn add_item(&mut self, entry: &LogEntry, position: u32, cleaner: BlockCleaner<'_>) {
        let item = match &entry.body {
            EntryBody::Request(request) if request.source.is_conversation() => ViewItem::RequestSent,
            EntryBody::Boundary(boundary)
                if boundary.summary.blocks().is_empty() || self.boundary != Some(position) =>
            {
                return;
            }
            _ => match ViewNode::of_entry(entry, position, cleaner) {
                Some(node) => ViewItem::Node(Box::new(self.without_opening(node))),
                None => return,
            },
        };
        let at = self.items.len() as u32;
        if let ViewItem::Node(node) = &item {
            for clean in &node.clean {
                match &clean.part {
                    WireBlockKind::Result(id) => {
                        self.index.result_items.entry(id.clone()).or_insert(at);
                    }
                    WireBlockKind::Call(id) => {
                        self.index.call_items.entry(id.clone()).or_insert(at);
                    }
                    _ => {}
                }
            }
        } else {
            self.requests.last_request = self.requests.last_request.max(Some(position));
        }
        self.index.item_at[position as usize] = Some(at);
        self.items.push(item);
    }

    /// Adds a node that has no entry of its own.
    pub(crate) fn add_node(&mut self, node: ViewNode) {
        let node = self.without_opening(node);
        self.items.push(ViewItem::Node(Box::new(node)));
    }

    /// Removes the opening block from the first node, which holds it, so that it is not sent twice.
    fn without_opening(&self, mut node: ViewNode) -> ViewNode {
        if self.opening.is_some() && self.items.is_empty() && !node.clean.is_empty() {
            node.clean.remove(0);
        }
        node
    }

    /// Applies a decision; returns the index of the first item that it changes, if any.
    pub(crate) fn apply_decision(
        &mut self,
        entry: &LogEntry,
        position: u32,
        positions: &FxHashMap<EntryId, u32>,
        card: &ModelCard,
    ) -> Option<usize> {
        let EntryBody::Decision(decision) = &entry.body else { return None };
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
        let stretch = PositionRange { from, to };
        let is_fold = matches!(decision.kind, DecisionKind::Fold { .. });
        // A fold needs both of its ends.
        self.effects.add(entry.id, decision, (hit.len() == 2 || !is_fold).then_some(stretch));
        if is_fold {
            self.assign_folds();
        }
        if card.can.bound_thinking && !is_edit && self.requests.sent.is_some_and(|sent| from <= sent) {
            self.effects.void_thinking(PositionRange { from, to: position });
        }
        (from..=to)
            .filter_map(|position| self.index.item_at[position as usize])
            .min()
            .map(|item| item as usize)
    }

    /// Returns true if an item stands at a position or before it.
    pub(crate) fn has_item_until(&self, position: u32) -> bool {
        self.index.item_at.iter().take(position as usize + 1).any(Option::is_some)
    }

    /// Positions of a decision's targets: those that the view showed when it was made.
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
                DecisionTarget::Entry(id) => positions.get(&id).copied(),
                DecisionTarget::Result(id) => result_position(id),
            })
            .filter(|position| *position < made_at && self.has_item(*position))
            .collect()
    }

    /// Assigns items to folds; where folds overlap the newest counts.
    fn assign_folds(&mut self) {
        self.folds.fold_of = vec![None; self.items.len()];
        self.folds.fold_starts = vec![None; self.effects.folds().len()];
        for (fold, stretch) in self.effects.folds().iter().map(|fold| fold.stretch).enumerate() {
            for position in stretch.from..=stretch.to {
                if let Some(item) = self.index.item_at.get(position as usize).copied().flatten() {
                    self.folds.fold_of[item as usize] = Some(fold as u32);
                }
            }
        }
        for (at, fold) in self.folds.fold_of.iter().enumerate() {
            if let (Some(fold), ViewItem::Node(_)) = (fold, &self.items[at]) {
                self.folds.fold_starts[*fold as usize].get_or_insert(at);
            }
        }
    }

    /// Starts the rope with the content before all messages: the provider's own summary, which must be first,
    /// and the context reminder.
    pub(crate) fn start_rope(&mut self, cleaner: BlockCleaner<'_>) {
        if let Some(WireBlock { text, tokens, .. }) = self.opening.clone() {
            let slab =
                RopeBlock { text, markable: true, category: Category::Summaries, tokens, attached: 0.0 };
            self.grown.rope.push(Role::Assistant, slab);
        }
        for block in self.head.context.blocks() {
            if let Some(clean) = cleaner
                .clean(block, Role::User)
                .filter(|clean| !matches!(clean.part, WireBlockKind::Result(_)))
            {
                let WireBlock { text, tokens, .. } = clean;
                let slab = RopeBlock {
                    text,
                    markable: true,
                    category: Category::Attachments,
                    tokens,
                    attached: 0.0,
                };
                self.grown.rope.push(Role::User, slab);
            }
        }
        let extent = self.grown.rope.extent().clone();
        self.grown.checkpoints = vec![RopeCheckpoint { item: 0, closed_by: 0, extent, seen: 0 }];
    }

    /// Number of blocks before all messages, and their estimated tokens.
    pub(crate) fn opening(&self) -> (usize, f64) {
        let first = self.grown.checkpoints.first();
        first.map_or((0, 0.0), |first| (first.extent.blocks, first.extent.sums.total()))
    }

    /// Processes all items that were not processed yet.
    pub(crate) fn grow(&mut self, cleaner: BlockCleaner<'_>) {
        while self.grown.taken < self.items.len() {
            let at = self.grown.taken;
            match &self.items[at] {
                ViewItem::RequestSent if self.folds.fold_of.get(at).copied().flatten().is_none() => {
                    self.close(at, TurnEnd::Request, cleaner);
                }
                ViewItem::RequestSent => {}
                ViewItem::Node(node) => {
                    let shows = self.shows(at, node);
                    let speaker = node.speaker.clone();
                    match (shows, speaker) {
                        (ItemContent::Nothing, _) => {}
                        (ItemContent::Itself, NodeSpeaker::Model(response)) => {
                            self.add_model_node(at, response, cleaner)
                        }
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

    /// Handles a model node: a response other than the open turn's closes that turn.
    fn add_model_node(&mut self, at: usize, response: Option<ResponseId>, cleaner: BlockCleaner<'_>) {
        let open = &self.grown.open;
        let goes_on = match (&open.model, &response) {
            (Some(Some(open_response)), Some(response)) => open_response == response,
            (Some(_), _) => !open.user_followed,
            (None, _) => false,
        };
        if !goes_on {
            if open.has_nodes {
                self.close(at, TurnEnd::Response, cleaner);
            }
            self.grown.open_from = at;
            self.grown.open = OpenTurn { has_nodes: true, model: Some(response), user_followed: false };
        } else if response.is_some() {
            self.grown.open.model = Some(response);
        }
    }

    /// Freezes the open turn, which ends before the item `at`.
    fn close(&mut self, at: usize, end: TurnEnd, cleaner: BlockCleaner<'_>) {
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
        grown.open_from = if end == TurnEnd::Request { at + 1 } else { at };
        let extent = grown.rope.extent().clone();
        let seen = grown.seen_order.len();
        grown.checkpoints.push(RopeCheckpoint { item: grown.open_from, closed_by: at + 1, extent, seen });
    }

    fn add_open_turn(
        &self,
        rope: &mut MessageRope,
        to: usize,
        end: TurnEnd,
        cleaner: BlockCleaner<'_>,
    ) -> Vec<ToolUseId> {
        let folded: Vec<ViewNode> = (self.grown.open_from..to)
            .filter_map(|at| match (&self.items[at], self.folds.fold_of.get(at).copied().flatten()) {
                (ViewItem::Node(node), Some(fold)) if self.shows(at, node) == ItemContent::Fold => {
                    let fold = &self.effects.folds()[fold as usize];
                    // Like any summary, it quotes what it sums up.
                    let said = pal_model::escape_tags(&fold.text);
                    let (text, tokens) = (text_block(&said), cleaner.estimator.text(&said));
                    let clean = if said.trim().is_empty() {
                        Vec::new()
                    } else {
                        vec![WireBlock { part: WireBlockKind::Text, text, tokens }]
                    };
                    Some(ViewNode {
                        entry: fold.decision,
                        position: node.position,
                        speaker: NodeSpeaker::Summary,
                        clean,
                    })
                }
                _ => None,
            })
            .collect();
        let mut folded = folded.iter();
        let mut nodes: Vec<&ViewNode> = Vec::new();
        for at in self.grown.open_from..to {
            if let ViewItem::Node(node) = &self.items[at] {
                match self.shows(at, node) {
                    ItemContent::Itself => nodes.push(node),
                    ItemContent::Fold => nodes.extend(folded.next()),
                    ItemContent::Nothing => {}
                }
            }
        }
        let normalizer = TurnNormalizer { cleaner, effects: &self.effects, seen: &self.grown.seen };
        normalizer.add_turn(rope, nodes.iter().copied(), end)
    }

    /// Returns the content that the item `at` shows: itself, the fold that begins there, or nothing.
    fn shows(&self, at: usize, node: &ViewNode) -> ItemContent {
        match self.folds.fold_of.get(at).copied().flatten() {
            None if self.effects.hides(node) => ItemContent::Nothing,
            None => ItemContent::Itself,
            Some(fold) if self.folds.fold_starts[fold as usize] == Some(at) => ItemContent::Fold,
            Some(_) => ItemContent::Nothing,
        }
    }

    /// Discards what was grown from the item `item` on. A turn that this very item ended is open again,
    /// because the item may no longer show.
    pub(crate) fn truncate_to(&mut self, item: usize) {
        let grown = &mut self.grown;
        let keep = grown.checkpoints.partition_point(|checkpoint| checkpoint.closed_by <= item);
        grown.checkpoints.truncate(keep.max(1));
        let Some(RopeCheckpoint { item, extent, seen, .. }) = grown.checkpoints.last().cloned() else {
            return;
        };
        grown.rope.truncate(extent);
        for id in grown.seen_order.drain(seen..) {
            grown.seen.remove(&id);
        }
        grown.open_from = item;
        grown.taken = item;
        grown.open = OpenTurn::default();
    }

    /// Messages of a request that would leave now.
    pub(crate) fn current_rope(&self, lens: &Lens) -> MessageRope {
        let mut rope = self.grown.rope.fork();
        self.add_open_turn(&mut rope, self.items.len(), TurnEnd::Request, lens.cleaner(&self.head.referable));
        rope
    }

    /// The members before the messages, and their fingerprint without breakpoints.
    pub(crate) fn prefix(&self, spelled_out: bool, estimator: &Estimator) -> (RenderedHead, u128) {
        match &self.joined {
            Some(known) if !spelled_out || self.head.unseen_tokens == 0 => known.clone(),
            _ => {
                let joined = self.head.joined(spelled_out, estimator);
                let print = xxh3_128(joined.text.as_bytes());
                (joined, print)
            }
        }
    }

    /// Nodes with their visibility, in the view's order.
    pub(crate) fn nodes_with_visibility(&self) -> impl DoubleEndedIterator<Item = (&ViewNode, Visibility)> {
        self.items.iter().enumerate().filter_map(|(at, item)| match item {
            ViewItem::RequestSent => None,
            ViewItem::Node(node) => {
                let fold = self.folds.fold_of.get(at).copied().flatten();
                let nodes_with_visibility = match fold {
                    Some(fold) => Visibility::Folded(self.effects.folds()[fold as usize].decision),
                    None if self.effects.hides(node) => Visibility::Snipped,
                    None => Visibility::Visible,
                };
                Some((node.as_ref(), nodes_with_visibility))
            }
        })
    }

    /// The node that holds a result.
    pub(crate) fn result_node(&self, id: &ToolUseId) -> Option<&ViewNode> {
        match self.items.get(*self.index.result_items.get(id)? as usize)? {
            ViewItem::Node(node) => Some(node),
            ViewItem::RequestSent => None,
        }
    }

    /// Visible results in order, each with its node.
    pub(crate) fn results(&self) -> impl DoubleEndedIterator<Item = (&ToolUseId, &ViewNode)> {
        let shown = self.items.iter().enumerate().filter_map(|(at, item)| match item {
            ViewItem::Node(node) if self.shows(at, node) == ItemContent::Itself => {
                Some((at as u32, node.as_ref()))
            }
            _ => None,
        });
        shown.flat_map(move |(at, node)| {
            node.clean.iter().filter_map(move |clean| match &clean.part {
                WireBlockKind::Result(id) if self.index.result_items.get(id) == Some(&at) => Some((id, node)),
                _ => None,
            })
        })
    }

    /// The node that makes a call.
    pub(crate) fn call_node(&self, id: &ToolUseId) -> Option<&ViewNode> {
        match self.items.get(*self.index.call_items.get(id)? as usize)? {
            ViewItem::Node(node) => Some(node),
            ViewItem::RequestSent => None,
        }
    }

    /// Number of blocks in closed turns: those of the last request, or those before the open turn.
    pub(crate) fn closed_blocks(&self) -> usize {
        self.grown.rope.extent().blocks
    }

    /// Position of the newest entry that a request of the conversation covers.
    pub(crate) fn sent(&self) -> Option<u32> {
        self.requests.sent
    }

    /// Nodes of the view, in order.
    pub(crate) fn nodes(&self) -> impl DoubleEndedIterator<Item = &ViewNode> {
        self.items.iter().filter_map(|item| match item {
            ViewItem::Node(node) => Some(node.as_ref()),
            ViewItem::RequestSent => None,
        })
    }

    /// First position in the view that a decision made at `made_at` changed; `None` if it was undone.
    pub(crate) fn first_changed(
        &self,
        entry: &LogEntry,
        made_at: u32,
        positions: &FxHashMap<EntryId, u32>,
    ) -> Option<u32> {
        let kind = entry.decision().filter(|_| !self.undone.contains(&entry.id))?;
        self.target_positions(kind, made_at, positions).into_iter().min()
    }

    pub(crate) fn effects(&self) -> &DecisionEffects {
        &self.effects
    }

    pub(crate) fn has_item(&self, position: u32) -> bool {
        self.index.item_at.get(position as usize).is_some_and(Option::is_some)
    }

    /// The nodes that follow the item at `position`, in the view's order.
    pub(crate) fn nodes_after(&self, position: u32) -> impl Iterator<Item = &ViewNode> {
        let item = self.index.item_at.get(position as usize).copied().flatten();
        let from = item.map_or(self.items.len(), |item| item as usize + 1);
        self.items[from..].iter().filter_map(|item| match item {
            ViewItem::Node(node) => Some(node.as_ref()),
            ViewItem::RequestSent => None,
        })
    }

    /// The nodes of entries appended after `position`.
    pub(crate) fn newest_nodes(&self, position: u32) -> impl Iterator<Item = &ViewNode> {
        self.nodes().rev().take_while(move |node| node.position > position)
    }
}

/// Visibility of an entry in the view.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Visibility {
    /// Shown, possibly with spilled or cleared parts.
    Visible,
    /// Hidden by a snip.
    Snipped,
    /// Part of a stretch that this decision folded.
    Folded(EntryId),
}

/// Content that an item shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ItemContent {
    Itself,
    Fold,
    Nothing,
}
