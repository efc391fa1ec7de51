//! Layers that imitate other agents where no configuration of this project's layers does. For comparison only.

use pal_context::{Layer, LayerAction, LayerContext, VisibleCall};
use pal_model::{Decision, DecisionCost, DecisionKind, EntryId, ToolUseId};
use pal_view::Visibility;

/// Clears all but the newest results when a user turn starts.
pub(crate) static PRUNE: PruneLayer = PruneLayer { protected: 40_000, least: 20_000 };
/// Drops the oldest rounds.
pub(crate) static SLIDE: SlidingWindowLayer = SlidingWindowLayer { from: SLIDE_FROM, to: 70_000 };
/// Tokens from which on rounds are dropped.
pub(crate) const SLIDE_FROM: u64 = 100_000;

/// Clears results older than the newest N tokens of results, if that frees enough.
pub(crate) struct PruneLayer {
    protected: u64,
    least: u64,
}

/// Drops the oldest rounds above a size until fewer tokens are left. User messages stay.
pub(crate) struct SlidingWindowLayer {
    from: u64,
    to: u64,
}

impl Layer for PruneLayer {
    fn name(&self) -> &'static str {
        "prune"
    }

    fn act(&self, situation: &LayerContext<'_>) -> LayerAction {
        let view = situation.view;
        if !view.opens_user_turn() {
            return LayerAction::nothing("only when a turn of the user opens");
        }
        let estimator = view.estimator();
        let (mut newest, mut freed) = (0.0, 0.0);
        let mut old: Vec<ToolUseId> = Vec::new();
        for id in view.result_ids().rev() {
            let Some(result) = view.result(id).filter(|result| !result.is_cleared) else { continue };
            let is_known =
                view.call_block(id).and_then(VisibleCall::read).is_some_and(|call| call.kind.is_some());
            newest += result.tokens;
            if estimator.total(newest) > self.protected && is_known && result.is_sent {
                freed += result.tokens;
                old.push(id.clone());
            }
        }
        if estimator.total(freed) < self.least {
            return LayerAction::nothing("too little to free");
        }
        old.reverse();
        let text = String::from("[Old tool result content cleared]");
        decided(situation, DecisionKind::Clear { tool_use_ids: old, text }, "old results are cleared")
    }
}

impl Layer for SlidingWindowLayer {
    fn name(&self) -> &'static str {
        "slide"
    }

    fn act(&self, situation: &LayerContext<'_>) -> LayerAction {
        if situation.size < self.from || !situation.may_rewrite() {
            return LayerAction::nothing("not yet");
        }
        let estimator = situation.view.estimator();
        let mut entries: Vec<EntryId> = Vec::new();
        let (mut freed, mut last) = (0.0, 0);
        for shown in situation
            .view
            .visible_entries()
            .filter(|shown| shown.visibility == Visibility::Visible && shown.round > 0)
        {
            let is_enough = situation.size.saturating_sub(estimator.total(freed)) <= self.to;
            if !shown.is_sent || (is_enough && shown.round > last) {
                break;
            }
            last = shown.round;
            if !shown.is_from_person() {
                freed += shown.tokens;
                entries.push(shown.entry.id);
            }
        }
        if entries.is_empty() {
            return LayerAction::nothing("there is nothing old");
        }
        decided(situation, DecisionKind::Snip { entries }, "the oldest rounds are dropped")
    }
}

fn decided(situation: &LayerContext<'_>, kind: DecisionKind, reason: &str) -> LayerAction {
    let mut decision = Decision { kind, reason: reason.to_owned(), cost: DecisionCost::default() };
    decision.cost = situation.view.cost_of_change(&situation.view.with_decision(&decision));
    match decision.cost.tokens_freed {
        0 => LayerAction::nothing("nothing would be gained"),
        _ => LayerAction::decide(vec![decision], reason),
    }
}
