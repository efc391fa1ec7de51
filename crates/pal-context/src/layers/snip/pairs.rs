//! Calls with their results, and which of them can leave without leaving half of something behind.

use pal_model::{Block, BlockType, Body, Entry, EntryId, ResponseId, ToolUseId};
use pal_view::{Showing, Shown, ShownResult, View};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::call::Call;

/// The pairs of a view.
pub(super) struct Pairs<'a> {
    /// In the order of the calls.
    pub(super) list: Vec<Pair<'a>>,
    /// Which of them a call's id means.
    at: FxHashMap<&'a ToolUseId, usize>,
    /// Old entries, in order.
    entries: Vec<Carrier<'a>>,
}

/// A call that was answered.
pub(super) struct Pair<'a> {
    pub(super) call: Call<'a>,
    pub(super) result: ShownResult<'a>,
    /// Whether it is old enough to go.
    pub(super) is_old: bool,
}

/// An old entry.
struct Carrier<'a> {
    entry: EntryId,
    /// The response that it is a record of.
    response: Option<&'a ResponseId>,
    holds: Holds<'a>,
}

/// What an entry holds.
enum Holds<'a> {
    /// Calls, perhaps with the thinking before them, or results, and nothing else.
    Halves(Vec<&'a ToolUseId>),
    /// Thinking alone: it goes when all that its response said goes.
    Thinking,
    /// Something that stays.
    Other,
}

/// What can be hidden.
pub(super) struct Hidden {
    pub(super) entries: Vec<EntryId>,
    /// The pairs that go, in order.
    pub(super) pairs: Vec<usize>,
}

impl<'a> Pairs<'a> {
    /// The pairs that a view shows. The last `keep` messages are never old.
    pub(super) fn of(view: &'a View, keep: usize) -> Pairs<'a> {
        let shown: Vec<Shown<'a>> = view.shown().filter(|shown| shown.showing == Showing::Itself).collect();
        let answered: FxHashSet<&ToolUseId> = view.result_ids().collect();
        let first_kept = first_of_last_messages(&shown, keep);
        let mut pairs = Pairs { list: Vec::new(), at: FxHashMap::default(), entries: Vec::new() };
        for (at, one) in shown.iter().enumerate() {
            let is_old = one.is_sent && at < first_kept;
            if is_old {
                pairs.entries.push(Carrier::of(one.entry));
            }
            let Body::Assistant(assistant) = &one.entry.body else { continue };
            for block in assistant.content.blocks().iter().filter(|block| block.kind() == BlockType::ToolUse)
            {
                if let Some(id) = block.tool_use_id().filter(|id| answered.contains(id))
                    && let (Some(call), Some(result)) = (Call::read(block), view.result(id))
                    && !pairs.at.contains_key(id)
                {
                    pairs.at.insert(id, pairs.list.len());
                    pairs.list.push(Pair { call, result, is_old });
                }
            }
        }
        pairs
    }

    /// The entries that can go when these pairs may go: both halves of a pair, or none.
    pub(super) fn hidden(&self, may_go: impl Fn(usize) -> bool) -> Hidden {
        let mut going: FxHashSet<usize> = (0..self.list.len()).filter(|pair| may_go(*pair)).collect();
        loop {
            let mut halves: FxHashMap<usize, usize> = FxHashMap::default();
            for pair in self.entries.iter().filter_map(|carrier| self.leaving(carrier, &going)).flatten() {
                *halves.entry(pair).or_default() += 1;
            }
            let before = going.len();
            going.retain(|pair| halves.get(pair) == Some(&2));
            if going.len() == before {
                return self.leave(&going);
            }
        }
    }

    /// The pairs that an entry is half of, if it goes when these pairs go.
    fn leaving(&self, carrier: &Carrier<'_>, going: &FxHashSet<usize>) -> Option<Vec<usize>> {
        let Holds::Halves(ids) = &carrier.holds else { return None };
        ids.iter().map(|id| self.at.get(id).copied().filter(|pair| going.contains(pair))).collect()
    }

    fn leave(&self, going: &FxHashSet<usize>) -> Hidden {
        let (mut gone, mut staying) = (FxHashSet::default(), FxHashSet::default());
        for carrier in self.entries.iter().filter(|carrier| !matches!(carrier.holds, Holds::Thinking)) {
            let responses = if self.leaving(carrier, going).is_some() { &mut gone } else { &mut staying };
            responses.extend(carrier.response);
        }
        let goes = |carrier: &&Carrier<'_>| match carrier.holds {
            Holds::Thinking => carrier
                .response
                .is_some_and(|response| gone.contains(response) && !staying.contains(response)),
            _ => self.leaving(carrier, going).is_some(),
        };
        let mut pairs: Vec<usize> = going.iter().copied().collect();
        pairs.sort_unstable();
        Hidden { entries: self.entries.iter().filter(goes).map(|carrier| carrier.entry).collect(), pairs }
    }
}

impl<'a> Carrier<'a> {
    fn of(entry: &'a Entry) -> Carrier<'a> {
        let (blocks, response, half) = match &entry.body {
            Body::User(user) => (user.content.blocks(), None, BlockType::ToolResult),
            Body::Assistant(assistant) => {
                (assistant.content.blocks(), assistant.response.as_ref(), BlockType::ToolUse)
            }
            _ => (&[][..], None, BlockType::Unknown),
        };
        let thinks = |block: &Block| half == BlockType::ToolUse && is_thinking(block);
        let ids: Vec<&ToolUseId> =
            blocks.iter().filter(|block| block.kind() == half).filter_map(Block::tool_use_id).collect();
        let n_thinking = blocks.iter().filter(|block| thinks(block)).count();
        let holds = if blocks.is_empty() || ids.len() + n_thinking < blocks.len() {
            Holds::Other
        } else if ids.is_empty() {
            Holds::Thinking
        } else {
            Holds::Halves(ids)
        };
        Carrier { entry: entry.id, response, holds }
    }
}

fn is_thinking(block: &Block) -> bool {
    matches!(block.kind(), BlockType::Thinking | BlockType::RedactedThinking | BlockType::Reasoning)
}

/// Where the last `keep` messages begin. Entries of one side in a row are one message.
fn first_of_last_messages(shown: &[Shown<'_>], keep: usize) -> usize {
    let is_models = |shown: &Shown<'_>| matches!(shown.entry.body, Body::Assistant(_));
    let mut messages = 0;
    for at in (0..shown.len()).rev() {
        let ends_message = shown.get(at + 1).is_none_or(|next| is_models(next) != is_models(&shown[at]));
        messages += usize::from(ends_message);
        if messages > keep {
            return at + 1;
        }
    }
    0
}
