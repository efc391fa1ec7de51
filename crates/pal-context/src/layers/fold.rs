//! Fold (§3.4): old stretches of the conversation show as short summaries. The log is untouched, and each fold can be
//! undone by itself.
//!
//! The layer only chooses the stretch. Somebody asks a model for the summary, or takes the one made without a model,
//! and [`fold_decision`] makes the decision of it.

mod stretch;
mod text;

use pal_extract::Facts;
use pal_model::{Decision, DecisionKind};
use pal_view::View;

use crate::act::Drafts;
use crate::compact::fold_text;
use crate::words::grouped;
use crate::{Act, Budgets, Foreseen, Layer, Place, Situation, Stretch, What, When};

/// Folds old stretches.
pub(crate) struct Fold;

/// Tokens of a fold's text, on a full window.
const TEXT_TOKENS: u64 = 800;

impl Layer for Fold {
    fn name(&self) -> &'static str {
        "fold"
    }

    fn act(&self, situation: &Situation<'_>) -> Act {
        let (policy, size) = (situation.policy, situation.size);
        if !policy.fold {
            return Act::nothing("switched off");
        }
        let from = percent_of(situation.limits.effective, policy.fold_from_percent);
        if size < from {
            return Act::nothing(format!("{} tokens, acts from {}", grouped(size), grouped(from)));
        }
        let over = format!("{} tokens are over {}", grouped(size), grouped(from));
        if !situation.may_rewrite() {
            return Act::nothing(format!("{over}, but thinking is bound to what stands before it"));
        }
        let is_urgent = size >= percent_of(situation.limits.effective, policy.fold_drain_percent);
        match stretch::oldest(situation) {
            Some((head, tail, tokens)) => Act {
                what: What::Fold(Stretch { head, tail, is_urgent }),
                reason: format!("{over}: the oldest stretch, {} tokens, is folded", grouped(tokens)),
            },
            None => Act::nothing(format!("{over}, but no old stretch is long enough to be folded")),
        }
    }

    fn foresee(&self, situation: &Situation<'_>) -> Vec<Foreseen> {
        if !situation.policy.fold {
            return Vec::new();
        }
        let from = percent_of(situation.limits.effective, situation.policy.fold_from_percent);
        vec![Foreseen::of(self.name(), When::Tokens(from), self.act(&situation.grown_to(from)))]
    }
}

/// So many percent of a number of tokens.
pub(super) fn percent_of(tokens: u64, percent: u64) -> u64 {
    (tokens as f64 * percent as f64 / 100.0) as u64
}

/// What a model must know to summarise a stretch at the end of the whole conversation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FoldQuestion {
    /// How the first message of the stretch begins.
    pub begins: String,
    /// How the last message of the stretch begins.
    pub ends: String,
    /// Most tokens that the summary may have.
    pub tokens_most: u64,
}

/// What a model must know to summarise a stretch; none if the view no longer shows it.
pub fn fold_question(view: &View, stretch: Stretch, budgets: Budgets) -> Option<FoldQuestion> {
    let shown = stretch::shown(view, stretch)?;
    let line = |at: Option<&pal_view::Shown<'_>>| at.map(text::first_line).unwrap_or_default();
    Some(FoldQuestion {
        begins: line(shown.first()),
        ends: line(shown.last()),
        tokens_most: budgets.of(TEXT_TOKENS),
    })
}

/// A summary of a stretch made without a model, from the facts that its entries hold. Empty if the view no longer shows
/// the stretch.
pub fn extractive_fold(view: &View, stretch: Stretch) -> String {
    // What does not fit is cut off afterwards, by tokens.
    const ROOM: usize = TEXT_TOKENS as usize * 3;
    let Some(shown) = stretch::shown(view, stretch) else { return String::new() };
    let facts = Facts::of_entries(shown.iter().map(|one| one.entry));
    pal_extract::short(&facts, ROOM)
}

/// The decision to fold a stretch into a summary, which is cut to fit; what people said in the stretch is added word
/// for word. None if the view no longer shows the stretch, or if nothing would be gained.
pub fn fold_decision(
    view: &View,
    stretch: Stretch,
    summary: &str,
    budgets: Budgets,
    place: &Place,
) -> Option<Decision> {
    let shown = stretch::shown(view, stretch)?;
    let text = text::fitted(view, &shown, summary, budgets.of(TEXT_TOKENS), |summary| {
        fold_text(stretch.head, stretch.tail, summary, &place.transcript)
    });
    let kind = DecisionKind::Fold { head: stretch.head, tail: stretch.tail, text };
    let reason = format!("{} entries of the conversation folded into a summary", shown.len());
    let mut drafts = Drafts::about(view);
    drafts.add(kind, reason);
    let decision = drafts.finish().pop()?.decision;
    (decision.cost.tokens_freed > 0).then_some(decision)
}
