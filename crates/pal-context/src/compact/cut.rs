//! Where a conversation may be cut: never between a call and its result, never inside a response, never before the
//! boundary in force.

use pal_model::{Attachment, BlockType, Body, EntryId, ToolUseId, User};
use pal_view::{Showing, Shown, View};
use rustc_hash::FxHashMap;

use super::order::{Notes, Reach};

/// A conversation cut in two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cut {
    /// Index of the first shown entry of the later part.
    pub(crate) at: usize,
    /// Which part becomes a summary.
    pub(crate) summarises: Part,
}

/// A part of a conversation that was cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    Earlier,
    Later,
}

/// A conversation, ready to be cut.
pub(crate) struct Conversation<'a> {
    pub(crate) shown: Vec<Shown<'a>>,
    /// For each index, the first that must stay together with it or with anything behind it.
    together: Vec<usize>,
    /// The first index behind what the boundary in force shows of itself and keeps.
    pub(crate) first: usize,
}

impl<'a> Conversation<'a> {
    pub(crate) fn of(view: &'a View) -> Conversation<'a> {
        let shown: Vec<Shown<'a>> = view.shown().collect();
        let together = together(&shown);
        // What the boundary keeps lies before it in the log, though the model may see it behind the summary.
        let boundary = view.boundary().map(|entry| entry.id);
        let at = shown.iter().find(|shown| Some(shown.entry.id) == boundary).map(|shown| shown.position);
        let last = at.and_then(|at| shown.iter().rposition(|shown| shown.position <= at));
        let first = last.map_or(0, |last| last + 1);
        Conversation { shown, together, first }
    }

    /// Whether the conversation may be cut before this index.
    fn may_cut(&self, at: usize) -> bool {
        at >= self.first && self.together.get(at).is_none_or(|first| *first >= at)
    }

    /// The nearest place at or before an index where the conversation may be cut; none if there is none behind the
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

    /// The cut of a compaction of everything: what waits for an answer is kept, with the calls that it answers, as long as
    /// it takes no more than `most` tokens. An answer that nothing followed is not kept.
    pub(crate) fn whole(&self, most: f64) -> Cut {
        let end = self.shown.len();
        // Not what no request covered: a request that was refused covers what it asked, and nobody answered that.
        let is_models = |shown: &Shown<'_>| matches!(&shown.entry.body, Body::Assistant(_));
        let waiting = self.shown.iter().rposition(is_models).map_or(0, |said| said + 1).max(self.first);
        let is_users = |shown: &Shown<'_>| matches!(&shown.entry.body, Body::User(_));
        let first = (waiting..end).find(|at| is_users(&self.shown[*at]));
        let at = first.and_then(|first| self.cut_before(first)).filter(|at| self.tokens_from(*at) <= most);
        // Of what is too long as a whole, a person's own words are kept.
        let spoken = || (waiting..end).rev().find(|at| self.shown[*at].is_of_a_person());
        let at = at.or_else(|| {
            spoken().filter(|at| self.may_cut(*at) && *at > self.first && self.tokens_from(*at) <= most)
        });
        // Where everything is kept nothing is compacted.
        let at = at.filter(|at| {
            self.shown[..*at].iter().any(|shown| !matches!(shown.entry.body, Body::Boundary(_)))
        });
        Cut { at: at.unwrap_or(end), summarises: Part::Earlier }
    }

    /// The cut that a reach asks for, moved to where it splits nothing; none if nothing would be left to summarise.
    pub(crate) fn by_reach(&self, reach: Reach, most: f64) -> Option<Cut> {
        match reach {
            Reach::Whole => Some(self.whole(most)),
            Reach::From(entry) => {
                let at = self.cut_before(self.index_of(entry)?)?;
                (at > self.first).then_some(Cut { at, summarises: Part::Later })
            }
            Reach::UpTo(entry) => {
                let at = self.cut_before(self.index_of(entry)?)?;
                (at > self.first).then_some(Cut { at, summarises: Part::Earlier })
            }
        }
    }

    /// The cut of a compaction by notes (§4.3): what the notes do not cover, grown backwards to enough messages and
    /// tokens, and no more than fits.
    pub(crate) fn by_notes(&self, notes: &Notes, least: f64, most: f64) -> Option<Cut> {
        const MESSAGES_LEAST: usize = 5;
        let noted = self.shown.iter().rposition(|shown| shown.entry.id == notes.last_noted)?;
        let mut at = self.cut_before(noted + 1)?;
        let has_text = |shown: &&Shown<'_>| {
            let blocks = shown.content().map_or(&[][..], |content| content.blocks());
            blocks.iter().any(|block| block.kind() == BlockType::Text)
        };
        let enough = |at: usize| {
            self.tokens_from(at) >= least
                && self.shown[at..].iter().filter(has_text).count() >= MESSAGES_LEAST
        };
        while !enough(at) {
            let earlier = match at.checked_sub(1).and_then(|before| self.cut_before(before)) {
                Some(earlier) if self.tokens_from(earlier) <= most => earlier,
                _ => break,
            };
            at = earlier;
        }
        (self.tokens_from(at) <= most).then_some(Cut { at, summarises: Part::Earlier })
    }

    /// The part that a cut turns into a summary, and the part that it keeps.
    pub(crate) fn parts(&self, cut: Cut) -> (&[Shown<'a>], &[Shown<'a>]) {
        let (earlier, later) = self.shown.split_at(cut.at);
        match cut.summarises {
            Part::Earlier => (earlier, later),
            Part::Later => (later, earlier),
        }
    }
}

/// For each index, the first index that a result or a record at it or behind it belongs to.
fn together(shown: &[Shown<'_>]) -> Vec<usize> {
    let mut calls: FxHashMap<&ToolUseId, usize> = FxHashMap::default();
    let mut responses = FxHashMap::default();
    let mut own: Vec<usize> = (0..shown.len()).collect();
    let shown_entries = shown;
    // A result may stand before its call, in a log that somebody else wrote.
    let mut results: FxHashMap<&ToolUseId, usize> = FxHashMap::default();
    let mut folds = FxHashMap::default();
    for (at, shown) in shown.iter().enumerate() {
        // A fold shows only where all of it is.
        if let Showing::Folded(fold) = shown.showing {
            own[at] = *folds.entry(fold).or_insert(at);
        }
        match &shown.entry.body {
            Body::Assistant(assistant) => {
                if let Some(response) = &assistant.response {
                    own[at] = own[at].min(*responses.entry(response).or_insert(at));
                }
                // Records without an id are one message with what the model said right before them.
                let before = shown_entries[..at].iter().rposition(|shown| shown.showing != Showing::Snipped);
                if let Some(before) = before
                    && let Body::Assistant(said) = &shown_entries[before].entry.body
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
            Body::User(User { content, .. }) | Body::Attachment(Attachment { content, .. }) => {
                for block in content.blocks().iter().filter(|block| block.kind() == BlockType::ToolResult) {
                    let Some(id) = block.tool_use_id() else { continue };
                    results.entry(id).or_insert(at);
                    if let Some(call) = calls.get(id) {
                        own[at] = own[at].min(*call);
                    }
                }
                // What tools and the agent add belongs to what stands before it.
                if !shown.is_of_a_person() && at > 0 {
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
