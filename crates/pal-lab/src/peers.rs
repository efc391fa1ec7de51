//! Other agents' ways that none of our layers can be set to, as layers of their own. For comparison only.

use pal_context::{Act, Call, Layer, Situation};
use pal_model::{Cost, Decision, DecisionKind, EntryId, ToolUseId};
use pal_view::Showing;

/// Clears old results behind the newest ones, when a turn of the user opens.
pub(crate) static PRUNE: Prune = Prune { protected: 40_000, least: 20_000 };
/// Drops the oldest rounds.
pub(crate) static SLIDE: Slide = Slide { from: SLIDE_FROM, to: 70_000 };
/// Tokens from which on rounds are dropped.
pub(crate) const SLIDE_FROM: u64 = 100_000;

/// Results that are older than the newest so many tokens of results are cleared, if that frees enough.
pub(crate) struct Prune {
    protected: u64,
    least: u64,
}

/// From so many tokens on the oldest rounds leave, until fewer are left. What people said stays.
pub(crate) struct Slide {
    from: u64,
    to: u64,
}

impl Layer for Prune {
    fn name(&self) -> &'static str {
        "prune"
    }

    fn act(&self, situation: &Situation<'_>) -> Act {
        let view = situation.view;
        if !view.opens_user_turn() {
            return Act::nothing("only when a turn of the user opens");
        }
        let estimator = view.estimator();
        let (mut newest, mut freed) = (0.0, 0.0);
        let mut old: Vec<ToolUseId> = Vec::new();
        for id in view.result_ids().rev() {
            let Some(result) = view.result(id).filter(|result| !result.is_cleared) else { continue };
            let is_known = view.call(id).and_then(Call::read).is_some_and(|call| call.kind.is_some());
            newest += result.tokens;
            if estimator.total(newest) > self.protected && is_known && result.is_sent {
                freed += result.tokens;
                old.push(id.clone());
            }
        }
        if estimator.total(freed) < self.least {
            return Act::nothing("too little to free");
        }
        old.reverse();
        let text = String::from("[Old tool result content cleared]");
        decided(situation, DecisionKind::Clear { tool_use_ids: old, text }, "old results are cleared")
    }
}

impl Layer for Slide {
    fn name(&self) -> &'static str {
        "slide"
    }

    fn act(&self, situation: &Situation<'_>) -> Act {
        if situation.size < self.from || !situation.may_rewrite() {
            return Act::nothing("not yet");
        }
        let estimator = situation.view.estimator();
        let mut entries: Vec<EntryId> = Vec::new();
        let (mut freed, mut last) = (0.0, 0);
        for shown in
            situation.view.shown().filter(|shown| shown.showing == Showing::Itself && shown.round > 0)
        {
            let is_enough = situation.size.saturating_sub(estimator.total(freed)) <= self.to;
            if !shown.is_sent || (is_enough && shown.round > last) {
                break;
            }
            last = shown.round;
            if !shown.is_of_a_person() {
                freed += shown.tokens;
                entries.push(shown.entry.id);
            }
        }
        if entries.is_empty() {
            return Act::nothing("there is nothing old");
        }
        decided(situation, DecisionKind::Snip { entries }, "the oldest rounds are dropped")
    }
}

fn decided(situation: &Situation<'_>, kind: DecisionKind, reason: &str) -> Act {
    let mut decision = Decision { kind, reason: reason.to_owned(), cost: Cost::default() };
    decision.cost = situation.view.cost_of(&situation.view.with(&decision));
    match decision.cost.tokens_freed {
        0 => Act::nothing("nothing would be gained"),
        _ => Act::decide(vec![decision], reason),
    }
}
