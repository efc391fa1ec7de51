//! What layers would do later: each asks itself as it will be asked, with the size or the pause that is to come.

use std::time::Duration;

use pal_model::{DecisionKind, Timestamp, ToolUseId};

use crate::{Act, Situation, What};

/// When a layer would act.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// When so much time has passed without a request.
    Idle(Duration),
    /// When the context has so many tokens.
    Tokens(u64),
    /// When so many results are in the cache.
    Results(usize),
}

/// What a layer would do with what is there now, once its time has come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Foreseen {
    /// The layer.
    pub layer: &'static str,
    /// When.
    pub when: When,
    /// Results that would leave, oldest first.
    pub results: Vec<ToolUseId>,
    /// Tokens that would be freed, as far as known.
    pub tokens: u64,
    /// Why, or why nothing would happen, in one line that a user can read.
    pub reason: String,
}

impl Foreseen {
    /// What an act of that time would do.
    pub(crate) fn of(layer: &'static str, when: When, act: Act) -> Foreseen {
        let decisions = match act.what {
            What::Decide(proposals) => proposals.into_iter().map(|proposal| proposal.decision).collect(),
            _ => Vec::new(),
        };
        let tokens = decisions.iter().map(|decision| decision.cost.tokens_freed).sum();
        let results = decisions.into_iter().flat_map(|decision| match decision.kind {
            DecisionKind::Clear { tool_use_ids, .. } | DecisionKind::CacheEdit { tool_use_ids } => {
                tool_use_ids
            }
            _ => Vec::new(),
        });
        Foreseen { layer, when, results: results.collect(), tokens, reason: act.reason }
    }
}

impl<'a> Situation<'a> {
    /// The same when the context has grown to so many tokens.
    pub(crate) fn grown_to(&self, tokens: u64) -> Situation<'a> {
        Situation { size: self.size.max(tokens), ..*self }
    }

    /// The same when so much time has passed since the cache was last read.
    pub(crate) fn idle_for(&self, pause: Duration) -> Situation<'a> {
        let last = self.view.cache_touched_at().unwrap_or(self.now).milliseconds();
        let then =
            last.saturating_add(i64::try_from(pause.as_millis()).unwrap_or(i64::MAX)).saturating_add(1);
        Situation { now: Timestamp::from_milliseconds(then.max(self.now.milliseconds())), ..*self }
    }
}
