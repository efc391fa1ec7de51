//! Choice of the stretch to fold: whole rounds, calls with their results, and no long text of a person.

use std::ops::Range;

use pal_model::{BlockType, EntryBody, EntryId, LogEntry, ToolUseId};
use pal_view::{View, Visibility, VisibleEntry};
use rustc_hash::FxHashSet;

use super::TEXT_TOKENS;
use super::fold_text::entry_text;
use crate::{FoldRange, LayerContext};

/// Minimum tokens of a stretch on a full window, and the multiple of it that is the maximum.
const TOKENS_MIN: u64 = 10_000;
const TOKENS_TIMES: f64 = 3.0;
/// Share at the end of the view that is never folded.
const FRESH_SHARE: f64 = 0.2;

/// Finds the oldest stretch that can be folded: its first and last entry, and its tokens.
pub(super) fn oldest(context: &LayerContext<'_>) -> Option<(EntryId, EntryId, u64)> {
    let view = context.view;
    let shown: Vec<VisibleEntry<'_>> = view.visible_entries().collect();
    let end = old_end(&shown);
    let estimator = view.estimator();
    let least = context.budgets().scale(TOKENS_MIN) as f64 / estimator.scale();
    // Half of the fold's text is for the user's words.
    let words_most = context.budgets().scale(TEXT_TOKENS) as f64 / estimator.scale() / 2.0;
    let answered = answered(&shown);
    let mut from = 0;
    while let Some(start) = (from..end).find(|at| begins_round(&shown, *at)) {
        let open = StretchState::new(&answered, words_most);
        let run = FoldableRun::from(view, &shown, start..end, open, least * TOKENS_TIMES);
        if let Some(last) = run.last.filter(|_| run.tokens >= least) {
            return Some((shown[start].entry.id, shown[last].entry.id, estimator.total(run.tokens)));
        }
        from = run.stopped.max(start + 1);
    }
    None
}

/// Entries of a stretch; `None` unless the view shows all of them unfolded.
pub(super) fn folded_entries(view: &View, stretch: FoldRange) -> Option<Vec<VisibleEntry<'_>>> {
    let shown: Vec<VisibleEntry<'_>> = view.visible_entries().collect();
    let head = shown.iter().position(|one| one.entry.id == stretch.head)?;
    let tail = shown.iter().position(|one| one.entry.id == stretch.tail)?;
    let stretch = shown.get(head..=tail)?;
    let is_whole = stretch.iter().all(|one| {
        !matches!(one.visibility, Visibility::Folded(_)) && !matches!(one.entry.body, EntryBody::Boundary(_))
    });
    is_whole.then(|| stretch.to_vec())
}

/// Calls whose results are visible outside of a summary.
fn answered<'a>(shown: &[VisibleEntry<'a>]) -> FxHashSet<&'a ToolUseId> {
    let outside = shown
        .iter()
        .filter(|one| !matches!(one.entry.body, EntryBody::Assistant(_) | EntryBody::Boundary(_)));
    let blocks = outside.filter_map(VisibleEntry::content).flat_map(|content| content.blocks());
    blocks
        .filter(|block| block.kind() == BlockType::ToolResult)
        .filter_map(|block| block.tool_use_id())
        .collect()
}

/// Index where the old part of the view ends.
fn old_end(shown: &[VisibleEntry<'_>]) -> usize {
    let total: f64 = shown.iter().map(|one| one.tokens).sum();
    let mut sum = 0.0;
    let is_old = |one: &&VisibleEntry<'_>| {
        sum += one.tokens;
        one.is_sent && sum <= total * (1.0 - FRESH_SHARE)
    };
    shown.iter().take_while(is_old).count()
}

/// Returns true if a foldable round begins here.
fn begins_round(shown: &[VisibleEntry<'_>], at: usize) -> bool {
    let is_first = at.checked_sub(1).is_none_or(|before| shown[before].round != shown[at].round);
    is_first
        && matches!(shown[at].entry.body, EntryBody::Assistant(_))
        && !matches!(shown[at].visibility, Visibility::Folded(_))
}

/// Consecutive entries that could be folded together.
struct FoldableRun {
    /// Last possible end of the stretch, and the tokens up to it.
    last: Option<usize>,
    tokens: f64,
    /// First entry that could not be part of it.
    stopped: usize,
}

impl FoldableRun {
    fn from(
        view: &View,
        shown: &[VisibleEntry<'_>],
        within: Range<usize>,
        mut open: StretchState<'_>,
        most: f64,
    ) -> FoldableRun {
        let boundary = view.boundary().map(|boundary| boundary.id);
        let mut run = FoldableRun { last: None, tokens: 0.0, stopped: within.end };
        let mut sum = 0.0;
        for at in within.clone() {
            let one = &shown[at];
            let follows = at == within.start || goes_on(view, &shown[at - 1], one, boundary);
            if !follows || !open.takes(view, one) {
                run.stopped = at;
                break;
            }
            sum += one.tokens;
            let may_end =
                shown.get(at + 1).is_none_or(|next| next.round != one.round || next.is_from_person());
            if may_end && open.is_whole() && (run.last.is_none() || sum <= most) {
                (run.last, run.tokens) = (Some(at), sum);
            }
            if sum > most && run.last.is_some() {
                run.stopped = at + 1;
                break;
            }
        }
        run
    }
}

/// Returns true if no boundary stands between two entries in the branch.
fn goes_on(
    view: &View,
    before: &VisibleEntry<'_>,
    one: &VisibleEntry<'_>,
    boundary: Option<EntryId>,
) -> bool {
    let between = view.branch().get(before.position..one.position);
    between.is_some_and(|between| between.iter().all(|entry: &LogEntry| Some(entry.id) != boundary))
}

/// State of a stretch under construction.
struct StretchState<'a> {
    /// Calls that have results.
    answered: &'a FxHashSet<&'a ToolUseId>,
    calls: FxHashSet<ToolUseId>,
    waiting: FxHashSet<ToolUseId>,
    /// Tokens left for the user's words.
    room: f64,
}

impl<'a> StretchState<'a> {
    fn new(answered: &'a FxHashSet<&'a ToolUseId>, room: f64) -> StretchState<'a> {
        StretchState { answered, calls: FxHashSet::default(), waiting: FxHashSet::default(), room }
    }

    /// Adds an entry; returns false if it may not be part of the stretch.
    fn takes(&mut self, view: &View, one: &VisibleEntry<'_>) -> bool {
        if matches!(one.visibility, Visibility::Folded(_)) || matches!(one.entry.body, EntryBody::Boundary(_))
        {
            return false;
        }
        if one.is_from_person() && !self.takes_words(view, one) {
            return false;
        }
        let blocks = one.content().map_or(&[][..], |content| content.blocks());
        let is_models = matches!(one.entry.body, EntryBody::Assistant(_));
        for block in blocks {
            let Some(id) = block.tool_use_id() else { continue };
            match block.kind() {
                // On the other side they are no part of a pair, and become text.
                BlockType::ToolUse if !is_models => {}
                BlockType::ToolResult if is_models => {}
                BlockType::ToolUse => {
                    self.calls.insert(id.clone());
                    if self.answered.contains(id) {
                        self.waiting.insert(id.clone());
                    }
                }
                // The call stays, so its result must stay, too.
                BlockType::ToolResult if !self.calls.contains(id) => return false,
                BlockType::ToolResult => {
                    self.waiting.remove(id);
                }
                _ => {}
            }
        }
        true
    }

    fn takes_words(&mut self, view: &View, one: &VisibleEntry<'_>) -> bool {
        let blocks = one.content().map_or(&[][..], |content| content.blocks());
        self.room -= view.lens().estimator.text(&entry_text(one));
        self.room >= 0.0
            && blocks.iter().all(|block| matches!(block.kind(), BlockType::Text | BlockType::ToolResult))
    }

    /// Returns true if every answered call is in it with its result.
    fn is_whole(&self) -> bool {
        self.waiting.is_empty()
    }
}
