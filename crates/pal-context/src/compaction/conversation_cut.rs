//! Positions where a conversation may be cut: never between a call and its result, never inside a response,
//! never before the boundary in force.

use pal_model::{Attachment, BlockType, EntryBody, EntryId, ToolUseId, UserMessage};
use pal_view::{View, Visibility, VisibleEntry};
use rustc_hash::FxHashMap;

use super::compaction_request::{CompactionRange, SessionNotes};

/// A conversation cut in two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ConversationCut {
    /// Index of the first entry of the later part.
    pub(crate) at: usize,
    /// The part that becomes a summary.
    pub(crate) summarizes: CutPart,
}

/// Part of a cut conversation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CutPart {
    Earlier,
    Later,
}

/// A conversation with its possible cuts.
pub(crate) struct CuttableConversation<'a> {
    pub(crate) shown: Vec<VisibleEntry<'a>>,
    /// For each index, the first index that a result or a record at it or behind it belongs to.
    together: Vec<usize>,
    /// First index behind the content of the boundary in force, kept messages included.
    pub(crate) first: usize,
}

impl<'a> CuttableConversation<'a> {
    pub(crate) fn of(view: &'a View) -> CuttableConversation<'a> {
        let shown: Vec<VisibleEntry<'a>> = view.visible_entries().collect();
        let together = together(&shown);
        // Kept messages precede the boundary in the log, though the model may see them behind the summary.
        let boundary = view.boundary().map(|entry| entry.id);
        let at = shown.iter().find(|shown| Some(shown.entry.id) == boundary).map(|shown| shown.position);
        let last = at.and_then(|at| shown.iter().rposition(|shown| shown.position <= at));
        let first = last.map_or(0, |last| last + 1);
        CuttableConversation { shown, together, first }
    }

    /// Returns true if the conversation may be cut before this index.
    fn may_cut(&self, at: usize) -> bool {
        at >= self.first && self.together.get(at).is_none_or(|first| *first >= at)
    }

    /// Nearest index at or before `at` where the conversation may be cut; `None` if there is none behind the
    /// boundary.
    pub(crate) fn cut_before(&self, at: usize) -> Option<usize> {
        (self.first..=at.min(self.shown.len())).rev().find(|at| self.may_cut(*at))
    }

    /// Index of the first part of an entry.
    pub(crate) fn index_of(&self, entry: EntryId) -> Option<usize> {
        self.shown.iter().position(|shown| shown.entry.id == entry)
    }

    /// Estimated tokens from an index on.
    pub(crate) fn tokens_from(&self, at: usize) -> f64 {
        self.shown[at.min(self.shown.len())..].iter().fold(0.0, |sum, shown| sum + shown.tokens)
    }

    /// Index of the first entry behind the last response. Not that of the first unsent entry: a refused request
    /// covers its messages, but they are unanswered.
    pub(crate) fn first_waiting(&self) -> usize {
        let is_models = |shown: &VisibleEntry<'_>| matches!(&shown.entry.body, EntryBody::Assistant(_));
        self.shown.iter().rposition(is_models).map_or(0, |said| said + 1).max(self.first)
    }

    /// Cut of a whole-conversation compaction: unanswered messages are kept with the calls that they answer,
    /// up to `most` tokens. A final answer is not kept.
    pub(crate) fn whole(&self, most: f64) -> ConversationCut {
        let end = self.shown.len();
        let waiting = self.first_waiting();
        let is_users = |shown: &VisibleEntry<'_>| matches!(&shown.entry.body, EntryBody::User(_));
        let first = (waiting..end).find(|at| is_users(&self.shown[*at]));
        let at = first.and_then(|first| self.cut_before(first)).filter(|at| self.tokens_from(*at) <= most);
        // If the whole is too long, the person's own words are kept.
        let spoken = || (waiting..end).rev().find(|at| self.shown[*at].is_from_person());
        let at = at.or_else(|| {
            spoken().filter(|at| self.may_cut(*at) && *at > self.first && self.tokens_from(*at) <= most)
        });
        // If everything is kept, nothing is compacted.
        let at = at.filter(|at| {
            self.shown[..*at].iter().any(|shown| !matches!(shown.entry.body, EntryBody::Boundary(_)))
        });
        ConversationCut { at: at.unwrap_or(end), summarizes: CutPart::Earlier }
    }

    /// Cut for a requested range, moved to where it splits nothing; `None` if nothing would be left to
    /// summarize.
    pub(crate) fn cut_for_range(&self, reach: CompactionRange, most: f64) -> Option<ConversationCut> {
        match reach {
            CompactionRange::Whole => Some(self.whole(most)),
            CompactionRange::From(entry) => {
                let at = self.cut_before(self.index_of(entry)?)?;
                (at > self.first).then_some(ConversationCut { at, summarizes: CutPart::Later })
            }
            CompactionRange::UpTo(entry) => {
                let at = self.cut_before(self.index_of(entry)?)?;
                (at > self.first).then_some(ConversationCut { at, summarizes: CutPart::Earlier })
            }
        }
    }

    /// Cut of a compaction by notes (§4.3): keeps the messages that the notes do not cover, extended
    /// backwards to the minimum of messages and tokens, but not beyond `most` tokens; `None` if the notes cover
    /// nothing that is visible.
    pub(crate) fn by_notes(&self, notes: &SessionNotes, least: f64, most: f64) -> Option<ConversationCut> {
        const MESSAGES_MIN: usize = 5;
        let noted = self.shown.iter().rposition(|shown| shown.entry.id == notes.last_covered)?;
        let mut at = self.cut_before(noted + 1)?;
        let has_text = |shown: &&VisibleEntry<'_>| {
            let blocks = shown.content().map_or(&[][..], |content| content.blocks());
            blocks.iter().any(|block| block.kind() == BlockType::Text)
        };
        let enough = |at: usize| {
            self.tokens_from(at) >= least && self.shown[at..].iter().filter(has_text).count() >= MESSAGES_MIN
        };
        while !enough(at) {
            let earlier = match at.checked_sub(1).and_then(|before| self.cut_before(before)) {
                Some(earlier) if self.tokens_from(earlier) <= most => earlier,
                _ => break,
            };
            at = earlier;
        }
        Some(ConversationCut { at, summarizes: CutPart::Earlier })
    }

    /// Splits into the summarized and the kept part.
    pub(crate) fn parts(&self, cut: ConversationCut) -> (&[VisibleEntry<'a>], &[VisibleEntry<'a>]) {
        let (earlier, later) = self.shown.split_at(cut.at);
        match cut.summarizes {
            CutPart::Earlier => (earlier, later),
            CutPart::Later => (later, earlier),
        }
    }
}

/// For each index, the first index that a result or a record at it or behind it belongs to.
fn together(shown: &[VisibleEntry<'_>]) -> Vec<usize> {
    let mut calls: FxHashMap<&ToolUseId, usize> = FxHashMap::default();
    let mut responses = FxHashMap::default();
    let mut own: Vec<usize> = (0..shown.len()).collect();
    let shown_entries = shown;
    // In a foreign log a result may precede its call.
    let mut results: FxHashMap<&ToolUseId, usize> = FxHashMap::default();
    let mut folds = FxHashMap::default();
    for (at, shown) in shown.iter().enumerate() {
        // A fold shows only as a whole.
        if let Visibility::Folded(fold) = shown.visibility {
            own[at] = *folds.entry(fold).or_insert(at);
        }
        match &shown.entry.body {
            EntryBody::Assistant(assistant) => {
                if let Some(response) = &assistant.response {
                    own[at] = own[at].min(*responses.entry(response).or_insert(at));
                }
                // Records without an id form one message with the model's records right before them.
                let before =
                    shown_entries[..at].iter().rposition(|shown| shown.visibility != Visibility::Snipped);
                if let Some(before) = before
                    && let EntryBody::Assistant(said) = &shown_entries[before].entry.body
                    && (assistant.response.is_none() || said.response.is_none())
                {
                    own[at] = own[at].min(own[before]);
                }
                for block in
                    assistant.content.blocks().iter().filter(|block| block.kind() == BlockType::ToolUse)
                {
                    if let Some(id) = block.tool_use_id() {
                        if let Some(result) = results.get(id) {
                            own[at] = own[at].min(*result);
                        }
                        calls.entry(id).or_insert(own[at]);
                    }
                }
            }
            EntryBody::User(UserMessage { content, .. })
            | EntryBody::Attachment(Attachment { content, .. }) => {
                for block in content.blocks().iter().filter(|block| block.kind() == BlockType::ToolResult) {
                    let Some(id) = block.tool_use_id() else { continue };
                    results.entry(id).or_insert(at);
                    if let Some(call) = calls.get(id) {
                        own[at] = own[at].min(*call);
                    }
                }
                // Content of tools and the agent belongs to the entry before it.
                if !shown.is_from_person() && at > 0 {
                    own[at] = own[at].min(at - 1);
                }
            }
            _ => {}
        }
    }
    let mut least = shown.len();
    for first in own.iter_mut().rev() {
        least = least.min(*first);
        *first = least;
    }
    own
}
