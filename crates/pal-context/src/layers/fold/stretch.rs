//! Which stretch is folded: whole rounds, calls with their results, nothing that is longer than a few words of a
//! person's.

use std::ops::Range;

use pal_model::{BlockType, Body, Entry, EntryId, ToolUseId};
use pal_view::{Showing, Shown, View};
use rustc_hash::FxHashSet;

use super::TEXT_TOKENS;
use super::text::words;
use crate::{Situation, Stretch};

/// Tokens that a stretch has at least, on a full window, and how many times that it may have.
const TOKENS_LEAST: u64 = 10_000;
const TOKENS_TIMES: f64 = 3.0;
/// The share of the view at its end that is never folded.
const FRESH_SHARE: f64 = 0.2;

/// The oldest stretch that can be folded: its first and last entry, and its tokens.
pub(super) fn oldest(situation: &Situation<'_>) -> Option<(EntryId, EntryId, u64)> {
    let view = situation.view;
    let shown: Vec<Shown<'_>> = view.shown().collect();
    let end = old_end(&shown);
    let estimator = view.estimator();
    let least = situation.budgets().of(TOKENS_LEAST) as f64 / estimator.scale();
    // Half of the fold's text, for what people said.
    let words_most = situation.budgets().of(TEXT_TOKENS) as f64 / estimator.scale() / 2.0;
    let answered = answered(&shown);
    let mut from = 0;
    while let Some(start) = (from..end).find(|at| begins_round(&shown, *at)) {
        let open = Open::new(&answered, words_most);
        let run = Run::from(view, &shown, start..end, open, least * TOKENS_TIMES);
        if let Some(last) = run.last.filter(|_| run.tokens >= least) {
            return Some((shown[start].entry.id, shown[last].entry.id, estimator.total(run.tokens)));
        }
        from = run.stopped.max(start + 1);
    }
    None
}

/// The entries of a stretch as the view shows them; none if it does not, or not all of them as themselves.
pub(super) fn shown(view: &View, stretch: Stretch) -> Option<Vec<Shown<'_>>> {
    let shown: Vec<Shown<'_>> = view.shown().collect();
    let head = shown.iter().position(|one| one.entry.id == stretch.head)?;
    let tail = shown.iter().position(|one| one.entry.id == stretch.tail)?;
    let stretch = shown.get(head..=tail)?;
    let is_whole = stretch.iter().all(|one| {
        !matches!(one.showing, Showing::Folded(_)) && !matches!(one.entry.body, Body::Boundary(_))
    });
    is_whole.then(|| stretch.to_vec())
}

/// The calls whose results are shown, outside of a summary.
fn answered<'a>(shown: &[Shown<'a>]) -> FxHashSet<&'a ToolUseId> {
    let outside =
        shown.iter().filter(|one| !matches!(one.entry.body, Body::Assistant(_) | Body::Boundary(_)));
    let blocks = outside.filter_map(Shown::content).flat_map(|content| content.blocks());
    blocks
        .filter(|block| block.kind() == BlockType::ToolResult)
        .filter_map(|block| block.tool_use_id())
        .collect()
}

/// Where the old part of the view ends.
fn old_end(shown: &[Shown<'_>]) -> usize {
    let total: f64 = shown.iter().map(|one| one.tokens).sum();
    let mut sum = 0.0;
    let is_old = |one: &&Shown<'_>| {
        sum += one.tokens;
        one.is_sent && sum <= total * (1.0 - FRESH_SHARE)
    };
    shown.iter().take_while(is_old).count()
}

/// Whether a round begins here that could be folded.
fn begins_round(shown: &[Shown<'_>], at: usize) -> bool {
    let is_first = at.checked_sub(1).is_none_or(|before| shown[before].round != shown[at].round);
    is_first
        && matches!(shown[at].entry.body, Body::Assistant(_))
        && !matches!(shown[at].showing, Showing::Folded(_))
}

/// Entries in a row that could be folded together.
struct Run {
    /// The last entry that a stretch may end with, and the tokens up to it.
    last: Option<usize>,
    tokens: f64,
    /// The entry that could not be part of it.
    stopped: usize,
}

impl Run {
    fn from(view: &View, shown: &[Shown<'_>], within: Range<usize>, mut open: Open<'_>, most: f64) -> Run {
        let boundary = view.boundary().map(|boundary| boundary.id);
        let mut run = Run { last: None, tokens: 0.0, stopped: within.end };
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
                shown.get(at + 1).is_none_or(|next| next.round != one.round || next.is_of_a_person());
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

/// Whether an entry follows another in the branch, with no boundary between them.
fn goes_on(view: &View, before: &Shown<'_>, one: &Shown<'_>, boundary: Option<EntryId>) -> bool {
    let between = view.branch().get(before.position..one.position);
    between.is_some_and(|between| between.iter().all(|entry: &Entry| Some(entry.id) != boundary))
}

/// What a stretch has taken in.
struct Open<'a> {
    /// The calls that have results.
    answered: &'a FxHashSet<&'a ToolUseId>,
    calls: FxHashSet<ToolUseId>,
    waiting: FxHashSet<ToolUseId>,
    /// Tokens that are left for what people said.
    room: f64,
}

impl<'a> Open<'a> {
    fn new(answered: &'a FxHashSet<&'a ToolUseId>, room: f64) -> Open<'a> {
        Open { answered, calls: FxHashSet::default(), waiting: FxHashSet::default(), room }
    }

    /// Takes an entry in, if it may be part of the stretch.
    fn takes(&mut self, view: &View, one: &Shown<'_>) -> bool {
        if matches!(one.showing, Showing::Folded(_)) || matches!(one.entry.body, Body::Boundary(_)) {
            return false;
        }
        if one.is_of_a_person() && !self.takes_words(view, one) {
            return false;
        }
        let blocks = one.content().map_or(&[][..], |content| content.blocks());
        let is_models = matches!(one.entry.body, Body::Assistant(_));
        for block in blocks {
            let Some(id) = block.tool_use_id() else { continue };
            match block.kind() {
                // Elsewhere they are no halves of a pair, and become text.
                BlockType::ToolUse if !is_models => {}
                BlockType::ToolResult if is_models => {}
                BlockType::ToolUse => {
                    self.calls.insert(id.clone());
                    if self.answered.contains(id) {
                        self.waiting.insert(id.clone());
                    }
                }
                // A result of a call that stays would be left without it.
                BlockType::ToolResult if !self.calls.contains(id) => return false,
                BlockType::ToolResult => {
                    self.waiting.remove(id);
                }
                _ => {}
            }
        }
        true
    }

    fn takes_words(&mut self, view: &View, one: &Shown<'_>) -> bool {
        let blocks = one.content().map_or(&[][..], |content| content.blocks());
        self.room -= view.lens().estimator.text(&words(one));
        self.room >= 0.0
            && blocks.iter().all(|block| matches!(block.kind(), BlockType::Text | BlockType::ToolResult))
    }

    /// Whether every call that was answered is in it with its answer.
    fn is_whole(&self) -> bool {
        self.waiting.is_empty()
    }
}
