//! Fold (§3.4): replaces old stretches of the conversation by short summaries in the view. The log is
//! untouched, and each fold can be undone separately.
//!
//! The layer only chooses the stretch. The caller asks a model for the summary, or takes the extractive one,
//! and [`fold_decision`] builds the decision.

mod fold_range;
mod fold_text;

use pal_extract::ConversationFacts;
use pal_model::{Decision, DecisionKind};
use pal_view::View;

use crate::compaction::fold_text;
use crate::layer::DecisionDrafts;
use crate::{
    ActionKind, FoldRange, ForecastCondition, Layer, LayerAction, LayerContext, LayerForecast, SessionPaths,
    WindowBudgets,
};
use pal_model::text::group_digits;

/// Folds old stretches.
pub(crate) struct FoldLayer;

/// Tokens of a fold's text, on a full window.
const TEXT_TOKENS: u64 = 800;

impl Layer for FoldLayer {
    fn name(&self) -> &'static str {
        "fold"
    }

    fn act(&self, context: &LayerContext<'_>) -> LayerAction {
        let (policy, size) = (context.policy, context.size);
        if !policy.fold {
            return LayerAction::nothing("switched off");
        }
        let from = percent_of(context.limits.effective, policy.fold_from_percent);
        if size < from {
            return LayerAction::nothing(format!(
                "{} tokens, acts from {}",
                group_digits(size),
                group_digits(from)
            ));
        }
        let over = format!("{} tokens are over {}", group_digits(size), group_digits(from));
        if !context.may_rewrite() {
            return LayerAction::nothing(format!("{over}, but thinking is bound to what stands before it"));
        }
        let is_urgent = size >= percent_of(context.limits.effective, policy.fold_drain_percent);
        match fold_range::oldest(context) {
            Some((head, tail, tokens)) => LayerAction {
                kind: ActionKind::Fold(FoldRange { head, tail, is_urgent }),
                reason: format!("{over}: the oldest stretch, {} tokens, is folded", group_digits(tokens)),
            },
            None => LayerAction::nothing(format!("{over}, but no old stretch is long enough to be folded")),
        }
    }

    fn forecast(&self, context: &LayerContext<'_>) -> Vec<LayerForecast> {
        if !context.policy.fold {
            return Vec::new();
        }
        let from = percent_of(context.limits.effective, context.policy.fold_from_percent);
        vec![LayerForecast::of(
            self.name(),
            ForecastCondition::Tokens(from),
            self.act(&context.grown_to(from)),
        )]
    }
}

/// Percentage of a number of tokens.
pub(super) fn percent_of(tokens: u64, percent: u64) -> u64 {
    (tokens as f64 * percent as f64 / 100.0) as u64
}

/// Information for a model to summarize a stretch at the end of the whole conversation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FoldQuestion {
    /// Beginning of the first message of the stretch.
    pub begins: String,
    /// Beginning of the last message of the stretch.
    pub ends: String,
    /// Maximum tokens of the summary.
    pub max_tokens: u64,
}

/// Describes a stretch for a model; `None` if the view no longer shows it.
pub fn fold_question(view: &View, stretch: FoldRange, budgets: WindowBudgets) -> Option<FoldQuestion> {
    let shown = fold_range::folded_entries(view, stretch)?;
    let line = |at: Option<&pal_view::VisibleEntry<'_>>| at.map(fold_text::first_line).unwrap_or_default();
    Some(FoldQuestion {
        begins: line(shown.first()),
        ends: line(shown.last()),
        max_tokens: budgets.scale(TEXT_TOKENS),
    })
}

/// Summarizes a stretch without a model, from its facts. Empty if the view no longer shows the stretch.
pub fn extractive_fold(view: &View, stretch: FoldRange) -> String {
    // Excess is cut off afterwards, by tokens.
    const ROOM: usize = TEXT_TOKENS as usize * 3;
    let Some(shown) = fold_range::folded_entries(view, stretch) else { return String::new() };
    let facts = ConversationFacts::from_entries(shown.iter().map(|one| one.entry));
    pal_extract::short_summary(&facts, ROOM)
}

/// Builds the decision to fold a stretch into a summary, which is truncated to fit; the user's words are
/// added verbatim. `None` if the view no longer shows the stretch, or if nothing would be freed.
pub fn fold_decision(
    view: &View,
    stretch: FoldRange,
    summary: &str,
    budgets: WindowBudgets,
    place: &SessionPaths,
) -> Option<Decision> {
    let shown = fold_range::folded_entries(view, stretch)?;
    let text = fold_text::fitted(view, &shown, summary, budgets.scale(TEXT_TOKENS), |summary| {
        fold_text(stretch.head, stretch.tail, summary, &place.transcript)
    });
    let kind = DecisionKind::Fold { head: stretch.head, tail: stretch.tail, text };
    let reason = format!("{} entries of the conversation folded into a summary", shown.len());
    let mut drafts = DecisionDrafts::about(view);
    drafts.add(kind, reason);
    let decision = drafts.finish().pop()?.decision;
    (decision.cost.tokens_freed > 0).then_some(decision)
}
