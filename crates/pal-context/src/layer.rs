//! The layer interface: its context, its actions, and forecasts of later actions.

use std::borrow::Cow;
use std::time::Duration;

use pal_model::{CacheMode, Decision, DecisionCost, DecisionKind, EntryId, SharedText, Timestamp, ToolUseId};
use pal_view::{View, WindowLimits};

use crate::cache_ttl::latched_cache_ttl;
use crate::context_policy::{ContextPolicy, WindowBudgets};

/// Context of a layer's decision.
#[derive(Clone, Copy)]
pub struct LayerContext<'a> {
    /// The current view.
    pub view: &'a View,
    /// Time of the request.
    pub now: Timestamp,
    /// Token limits of the model.
    pub limits: &'a WindowLimits,
    /// Policy settings.
    pub policy: &'a ContextPolicy,
    /// Paths of the session's files, as told to the model.
    pub paths: &'a SessionPaths,
    /// Name of a hook that currently forbids compaction.
    pub blocked_by: Option<&'a str>,
    /// Current size of the context in tokens.
    pub size: u64,
}

impl LayerContext<'_> {
    /// Token budgets scaled to the window.
    pub fn budgets(&self) -> WindowBudgets {
        WindowBudgets::new(self.limits)
    }

    /// Time since the provider's cache was last read, by the last request or a later keep-alive; `None` if
    /// the view knows of none.
    pub fn idle(&self) -> Option<Duration> {
        let last = self.view.cache_touched_at()?.milliseconds();
        Some(Duration::from_millis(u64::try_from(self.now.milliseconds() - last).unwrap_or(0)))
    }

    /// Returns true if the cached prefix has expired.
    pub fn is_cold(&self) -> bool {
        self.idle().is_some_and(|idle| idle > self.cold_after())
    }

    /// Idle time after which the cache counts as expired: the policy's setting, or, for the cost-aware policy
    /// with breakpoints, their TTL.
    pub(crate) fn cold_after(&self) -> Duration {
        let view = self.view;
        if self.policy.cost_aware.is_none() || view.lens().card.caching != CacheMode::Explicit {
            return self.policy.cold_after;
        }
        let ttl = latched_cache_ttl(view.state());
        ttl.map_or(self.policy.cold_after, |ttl| Duration::from_millis(ttl.milliseconds()))
    }

    /// Returns true if the conversation is compacted when it reaches its threshold: no setting or hook prevents
    /// it.
    pub(crate) fn can_compact(&self) -> bool {
        self.limits.auto_compact.is_some() && !self.policy.reactive_only && self.blocked_by.is_none()
    }

    /// Returns true if sent content may be changed now: on models that bind their thinking to the content
    /// before it, only at the start of a user turn (§0.3).
    pub fn may_rewrite(&self) -> bool {
        !self.view.lens().card.can.bound_thinking || self.view.opens_user_turn()
    }
}

impl<'a> LayerContext<'a> {
    /// The context as if it had grown to `tokens`.
    pub(crate) fn grown_to(&self, tokens: u64) -> LayerContext<'a> {
        LayerContext { size: self.size.max(tokens), ..*self }
    }

    /// The context as if `pause` had passed since the last cache read.
    pub(crate) fn idle_for(&self, pause: Duration) -> LayerContext<'a> {
        let last = self.view.cache_touched_at().unwrap_or(self.now).milliseconds();
        let then =
            last.saturating_add(i64::try_from(pause.as_millis()).unwrap_or(i64::MAX)).saturating_add(1);
        LayerContext { now: Timestamp::from_milliseconds(then.max(self.now.milliseconds())), ..*self }
    }
}

/// Paths of the session's files, as told to the model.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionPaths {
    /// Session directory, without a trailing slash.
    pub directory: String,
    /// Path of the log.
    pub transcript: String,
}

/// One layer of the pipeline.
pub trait Layer: Sync {
    /// Name in settings and reports.
    fn name(&self) -> &'static str;

    /// Decides what to do before the next request.
    fn act(&self, context: &LayerContext<'_>) -> LayerAction;

    /// Forecasts later actions on the current content, one per condition.
    fn forecast(&self, _context: &LayerContext<'_>) -> Vec<LayerForecast> {
        Vec::new()
    }
}

/// Action of a layer with a one-line reason for the user.
#[derive(Clone, Debug)]
pub struct LayerAction {
    /// The action.
    pub kind: ActionKind,
    /// Reason for acting or not acting.
    pub reason: String,
}

/// Kind of a layer's action.
#[derive(Clone, Debug)]
pub enum ActionKind {
    /// No action.
    Nothing,
    /// Decisions to record, in order.
    Decide(Vec<Proposal>),
    /// Adds a member at the top level of the request: the provider does the rest.
    AskProvider {
        /// Member name.
        member: &'static str,
        /// Raw JSON value.
        value: SharedText,
    },
    /// Folds a stretch; its summary is needed first.
    Fold(FoldRange),
    /// Compacts the conversation.
    Compact,
    /// Blocks the request; see the reason.
    Stop,
}

/// A decision, and the file that must be written before it is recorded.
#[derive(Clone, PartialEq, Debug)]
pub struct Proposal {
    /// The decision.
    pub decision: Decision,
    /// The file; if it cannot be written, the decision must not be recorded.
    pub file: Option<SpillFile>,
}

/// A file in the session's directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SpillFile {
    /// Path relative to the session's directory.
    pub path: String,
    /// Content.
    pub text: String,
}

/// A stretch of the view, in whole rounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FoldRange {
    /// Its first entry.
    pub head: EntryId,
    /// Its last entry.
    pub tail: EntryId,
    /// True if the request must wait for the fold.
    pub is_urgent: bool,
}

impl LayerAction {
    /// No action.
    pub fn nothing(reason: impl Into<String>) -> LayerAction {
        LayerAction { kind: ActionKind::Nothing, reason: reason.into() }
    }

    /// Decisions without files.
    pub fn decide(decisions: Vec<Decision>, reason: impl Into<String>) -> LayerAction {
        let proposals = decisions.into_iter().map(|decision| Proposal { decision, file: None }).collect();
        LayerAction { kind: ActionKind::Decide(proposals), reason: reason.into() }
    }
}

/// Condition for a future action.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ForecastCondition {
    /// After this time without a request.
    Idle(Duration),
    /// At this many tokens of context.
    Tokens(u64),
    /// At this many results in the cache.
    Results(usize),
}

/// Future action of a layer on the current content.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LayerForecast {
    /// Layer name.
    pub layer: &'static str,
    /// Condition for the action.
    pub condition: ForecastCondition,
    /// Results that would be cleared, oldest first.
    pub results: Vec<ToolUseId>,
    /// Tokens that would be freed, if known.
    pub tokens: u64,
    /// One-line reason for the user.
    pub reason: String,
}

impl LayerForecast {
    /// Builds the forecast from an action under that condition.
    pub(crate) fn of(layer: &'static str, when: ForecastCondition, act: LayerAction) -> LayerForecast {
        let decisions = match act.kind {
            ActionKind::Decide(proposals) => {
                proposals.into_iter().map(|proposal| proposal.decision).collect()
            }
            _ => Vec::new(),
        };
        let tokens = decisions.iter().map(|decision| decision.cost.tokens_freed).sum();
        let results = decisions.into_iter().flat_map(|decision| match decision.kind {
            DecisionKind::Clear { tool_use_ids, .. } | DecisionKind::CacheEdit { tool_use_ids } => {
                tool_use_ids
            }
            _ => Vec::new(),
        });
        LayerForecast { layer, condition: when, results: results.collect(), tokens, reason: act.reason }
    }
}

/// Decisions about one view, each made on the view after the previous ones, so that each knows its own cost.
pub(crate) struct DecisionDrafts<'a> {
    /// The view after the decisions; copied only when one changes it.
    view: Cow<'a, View>,
    proposals: Vec<Proposal>,
}

impl<'a> DecisionDrafts<'a> {
    /// Starts without decisions.
    pub(crate) fn about(view: &'a View) -> DecisionDrafts<'a> {
        DecisionDrafts { view: Cow::Borrowed(view), proposals: Vec::new() }
    }

    /// Adds a decision that does not change the view.
    pub(crate) fn note(&mut self, kind: DecisionKind, reason: String) {
        let decision = Decision { kind, reason, cost: DecisionCost::default() };
        self.proposals.push(Proposal { decision, file: None });
    }

    /// Adds a decision.
    pub(crate) fn add(&mut self, kind: DecisionKind, reason: String) {
        let (decision, after) = self.weigh(kind, reason);
        self.make(Proposal { decision, file: None }, after);
    }

    /// Adds a decision that frees nothing, unless the view would grow by it.
    pub(crate) fn add_unless_larger(&mut self, kind: DecisionKind, reason: String) {
        let (decision, after) = self.weigh(kind, reason);
        if after.estimate() <= self.view.estimate() {
            self.make(Proposal { decision, file: None }, after);
        }
    }

    /// Adds a decision with its file if it frees tokens; returns whether it does. Content that a log holds
    /// twice may grow by it.
    pub(crate) fn add_if_smaller(
        &mut self,
        kind: DecisionKind,
        reason: String,
        file: Option<SpillFile>,
    ) -> bool {
        let (decision, after) = self.weigh(kind, reason);
        let frees = decision.cost.tokens_freed > 0;
        if frees {
            self.make(Proposal { decision, file }, after);
        }
        frees
    }

    fn weigh(&self, kind: DecisionKind, reason: String) -> (Decision, View) {
        let mut decision = Decision { kind, reason, cost: DecisionCost::default() };
        let after = self.view.with_decision(&decision);
        decision.cost = self.view.cost_of_change(&after);
        (decision, after)
    }

    fn make(&mut self, proposal: Proposal, after: View) {
        self.proposals.push(proposal);
        self.view = Cow::Owned(after);
    }

    /// Converts to an action; no action if there are no decisions.
    pub(crate) fn into_action(self, reason: String) -> LayerAction {
        match self.proposals.is_empty() {
            true => LayerAction::nothing(format!("{reason}; but nothing would be gained")),
            false => LayerAction { kind: ActionKind::Decide(self.proposals), reason },
        }
    }

    /// The decisions, in order.
    pub(crate) fn finish(self) -> Vec<Proposal> {
        self.proposals
    }
}
