//! Calls with their results, and the entries that can be hidden without splitting a pair.

use pal_model::{BlockType, ContentBlock, EntryBody, EntryId, LogEntry, ResponseId, ToolUseId};
use pal_view::{View, Visibility, VisibleEntry, VisibleResult};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::visible_call::VisibleCall;

/// All pairs of a view.
pub(super) struct CallPairs<'a> {
    /// In call order.
    pub(super) list: Vec<CallPair<'a>>,
    /// Index of a pair by call id.
    at: FxHashMap<&'a ToolUseId, usize>,
    /// Old entries, in order.
    entries: Vec<PairEntry<'a>>,
}

/// A call with its result.
pub(super) struct CallPair<'a> {
    pub(super) call: VisibleCall<'a>,
    pub(super) result: VisibleResult<'a>,
    /// True if it is old enough to be hidden.
    pub(super) is_old: bool,
}

/// An old entry.
struct PairEntry<'a> {
    entry: EntryId,
    /// Response that the entry is a record of.
    response: Option<&'a ResponseId>,
    holds: PairEntryContent<'a>,
}

/// Content of an entry.
enum PairEntryContent<'a> {
    /// Only calls (with the thinking before them) or only results.
    Halves(Vec<&'a ToolUseId>),
    /// Only thinking: it goes when its whole response goes.
    Thinking,
    /// Content that stays.
    Other,
}

/// Entries that can be hidden.
pub(super) struct HiddenPairs {
    pub(super) entries: Vec<EntryId>,
    /// Indices of the hidden pairs, in order.
    pub(super) pairs: Vec<usize>,
}

impl<'a> CallPairs<'a> {
    /// Collects the pairs of a view. The last `keep` messages are never old.
    pub(super) fn of(view: &'a View, keep: usize) -> CallPairs<'a> {
        let shown: Vec<VisibleEntry<'a>> =
            view.visible_entries().filter(|shown| shown.visibility == Visibility::Visible).collect();
        let answered: FxHashSet<&ToolUseId> = view.result_ids().collect();
        let first_kept = first_of_last_messages(&shown, keep);
        let mut pairs = CallPairs { list: Vec::new(), at: FxHashMap::default(), entries: Vec::new() };
        for (at, one) in shown.iter().enumerate() {
            let is_old = one.is_sent && at < first_kept;
            if is_old {
                pairs.entries.push(PairEntry::of(one.entry));
            }
            let EntryBody::Assistant(assistant) = &one.entry.body else { continue };
            for block in assistant.content.blocks().iter().filter(|block| block.kind() == BlockType::ToolUse)
            {
                if let Some(id) = block.tool_use_id().filter(|id| answered.contains(id))
                    && let (Some(call), Some(result)) = (VisibleCall::read(block), view.result(id))
                    && !pairs.at.contains_key(id)
                {
                    pairs.at.insert(id, pairs.list.len());
                    pairs.list.push(CallPair { call, result, is_old });
                }
            }
        }
        pairs
    }

    /// Returns the entries that can go when these pairs may go: both halves of a pair, or none.
    pub(super) fn hidden(&self, may_go: impl Fn(usize) -> bool) -> HiddenPairs {
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

    /// Pairs that an entry is half of, if it goes when these pairs go.
    fn leaving(&self, carrier: &PairEntry<'_>, going: &FxHashSet<usize>) -> Option<Vec<usize>> {
        let PairEntryContent::Halves(ids) = &carrier.holds else { return None };
        ids.iter().map(|id| self.at.get(id).copied().filter(|pair| going.contains(pair))).collect()
    }

    fn leave(&self, going: &FxHashSet<usize>) -> HiddenPairs {
        let (mut gone, mut staying) = (FxHashSet::default(), FxHashSet::default());
        for carrier in
            self.entries.iter().filter(|carrier| !matches!(carrier.holds, PairEntryContent::Thinking))
        {
            let responses = if self.leaving(carrier, going).is_some() { &mut gone } else { &mut staying };
            responses.extend(carrier.response);
        }
        let goes = |carrier: &&PairEntry<'_>| match carrier.holds {
            PairEntryContent::Thinking => carrier
                .response
                .is_some_and(|response| gone.contains(response) && !staying.contains(response)),
            _ => self.leaving(carrier, going).is_some(),
        };
        let mut pairs: Vec<usize> = going.iter().copied().collect();
        pairs.sort_unstable();
        HiddenPairs {
            entries: self.entries.iter().filter(goes).map(|carrier| carrier.entry).collect(),
            pairs,
        }
    }
}

impl<'a> PairEntry<'a> {
    fn of(entry: &'a LogEntry) -> PairEntry<'a> {
        let (blocks, response, half) = match &entry.body {
            EntryBody::User(user) => (user.content.blocks(), None, BlockType::ToolResult),
            EntryBody::Assistant(assistant) => {
                (assistant.content.blocks(), assistant.response.as_ref(), BlockType::ToolUse)
            }
            _ => (&[][..], None, BlockType::Unknown),
        };
        let thinks = |block: &ContentBlock| half == BlockType::ToolUse && is_thinking(block);
        let ids: Vec<&ToolUseId> = blocks
            .iter()
            .filter(|block| block.kind() == half)
            .filter_map(ContentBlock::tool_use_id)
            .collect();
        let n_thinking = blocks.iter().filter(|block| thinks(block)).count();
        let holds = if blocks.is_empty() || ids.len() + n_thinking < blocks.len() {
            PairEntryContent::Other
        } else if ids.is_empty() {
            PairEntryContent::Thinking
        } else {
            PairEntryContent::Halves(ids)
        };
        PairEntry { entry: entry.id, response, holds }
    }
}

fn is_thinking(block: &ContentBlock) -> bool {
    matches!(block.kind(), BlockType::Thinking | BlockType::RedactedThinking | BlockType::Reasoning)
}

/// Index where the last `keep` messages begin. Consecutive entries of one side are one message.
fn first_of_last_messages(shown: &[VisibleEntry<'_>], keep: usize) -> usize {
    let is_models = |shown: &VisibleEntry<'_>| matches!(shown.entry.body, EntryBody::Assistant(_));
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
