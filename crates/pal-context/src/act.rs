//! Layers: what each is given, and what it may answer.

use std::borrow::Cow;
use std::time::Duration;

use pal_model::{Caching, Cost, Decision, DecisionKind, EntryId, Text, Timestamp};
use pal_view::{CacheLifetime, Limits, View};

use crate::cache::LIFETIME_LATCH;
use crate::{Budgets, Foreseen, Policy};

/// What a layer decides about.
#[derive(Clone, Copy)]
pub struct Situation<'a> {
    /// What the model would see.
    pub view: &'a View,
    /// When the request would leave.
    pub now: Timestamp,
    /// The limits of the model.
    pub limits: &'a Limits,
    /// What the user set.
    pub policy: &'a Policy,
    /// How the session's files are named to the model.
    pub place: &'a Place,
    /// A hook that forbids compaction for now, by name.
    pub blocked_by: Option<&'a str>,
    /// The size of the context as it stands.
    pub size: u64,
}

impl Situation<'_> {
    /// The budgets of the window.
    pub fn budgets(&self) -> Budgets {
        Budgets::new(self.limits)
    }

    /// How long ago the provider's cache was last read: by the last request, or by one that only kept it warm since, as far as
    /// the view knows of one.
    pub fn idle(&self) -> Option<Duration> {
        let last = self.view.cache_touched_at()?.milliseconds();
        Some(Duration::from_millis(u64::try_from(self.now.milliseconds() - last).unwrap_or(0)))
    }

    /// Whether the provider has forgotten what it cached: the last request is too long ago.
    pub fn is_cold(&self) -> bool {
        self.idle().is_some_and(|idle| idle > self.cold_after())
    }

    /// After how long a pause the cache counts as lost: what the policy says, or, where it goes by price and marks decide
    /// it, as long as they last.
    pub(crate) fn cold_after(&self) -> Duration {
        let view = self.view;
        if self.policy.thrift.is_none() || view.lens().card.caching != Caching::Marks {
            return self.policy.cold_after;
        }
        let latched = view.state().latches.get(LIFETIME_LATCH);
        let lifetime = latched.and_then(|name| CacheLifetime::named(name));
        lifetime.map_or(self.policy.cold_after, |lifetime| Duration::from_millis(lifetime.milliseconds()))
    }

    /// Whether an act that changes what was sent is allowed now: on models that bind their thinking to what stands
    /// before it, only when a turn of the user opens (§0.3).
    pub fn may_rewrite(&self) -> bool {
        !self.view.lens().card.can.bound_thinking || self.view.opens_user_turn()
    }
}

/// How the session's files are named to the model.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// The session's folder, without a slash at its end.
    pub directory: String,
    /// The log.
    pub transcript: String,
}

/// One step of the pipeline.
pub trait Layer: Sync {
    /// Its name, as settings and reports have it.
    fn name(&self) -> &'static str;

    /// What it would do.
    fn act(&self, situation: &Situation<'_>) -> Act;

    /// What it would do later with what is there now: one answer for each moment that it waits for.
    fn foresee(&self, _situation: &Situation<'_>) -> Vec<Foreseen> {
        Vec::new()
    }
}

/// What a layer does, and why, in one line that a user can read.
#[derive(Clone, Debug)]
pub struct Act {
    /// What it does.
    pub what: What,
    /// Why, or why not.
    pub reason: String,
}

/// What a layer may do.
#[derive(Clone, Debug)]
pub enum What {
    /// Nothing.
    Nothing,
    /// Decisions, to be carried out in order.
    Decide(Vec<Proposal>),
    /// A member more at the top level of the request: the provider does the rest.
    AskProvider {
        /// The member's name.
        member: &'static str,
        /// Its value, raw JSON.
        value: Text,
    },
    /// A stretch is to be folded: a summary of it is needed first.
    Fold(Stretch),
    /// The conversation is to be compacted.
    Compact,
    /// The request must not leave; why is in the reason.
    Stop,
}

/// A decision, and the file that must be written before it is made.
#[derive(Clone, PartialEq, Debug)]
pub struct Proposal {
    /// The decision.
    pub decision: Decision,
    /// The file; without it the decision must not be made.
    pub file: Option<SpillFile>,
}

/// A file of the session's folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SpillFile {
    /// Where, relative to the session's folder.
    pub path: String,
    /// What it holds.
    pub text: String,
}

/// A stretch of the view, in whole rounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stretch {
    /// Its first entry.
    pub head: EntryId,
    /// Its last entry.
    pub tail: EntryId,
    /// Whether the request waits for it.
    pub is_urgent: bool,
}

impl Act {
    /// Nothing is done.
    pub fn nothing(reason: impl Into<String>) -> Act {
        Act { what: What::Nothing, reason: reason.into() }
    }

    /// Decisions without files.
    pub fn decide(decisions: Vec<Decision>, reason: impl Into<String>) -> Act {
        let proposals = decisions.into_iter().map(|decision| Proposal { decision, file: None }).collect();
        Act { what: What::Decide(proposals), reason: reason.into() }
    }
}

/// Decisions about one view, each made when the ones before it count, so that each knows what it alone costs.
pub(crate) struct Drafts<'a> {
    /// The view as it is after them; copied only when one changes it.
    view: Cow<'a, View>,
    proposals: Vec<Proposal>,
}

impl<'a> Drafts<'a> {
    /// No decision yet.
    pub(crate) fn about(view: &'a View) -> Drafts<'a> {
        Drafts { view: Cow::Borrowed(view), proposals: Vec::new() }
    }

    /// Makes a decision that changes nothing in the view.
    pub(crate) fn note(&mut self, kind: DecisionKind, reason: String) {
        let decision = Decision { kind, reason, cost: Cost::default() };
        self.proposals.push(Proposal { decision, file: None });
    }

    /// Makes a decision.
    pub(crate) fn add(&mut self, kind: DecisionKind, reason: String) {
        let (decision, after) = self.weigh(kind, reason);
        self.make(Proposal { decision, file: None }, after);
    }

    /// Makes a decision that frees nothing, unless the view would grow by it.
    pub(crate) fn add_unless_more(&mut self, kind: DecisionKind, reason: String) {
        let (decision, after) = self.weigh(kind, reason);
        if after.estimate() <= self.view.estimate() {
            self.make(Proposal { decision, file: None }, after);
        }
    }

    /// Makes a decision, with the file that must be written before it, if it frees anything; whether it does. What a
    /// log holds twice may grow by it.
    pub(crate) fn add_if_less(
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
        let mut decision = Decision { kind, reason, cost: Cost::default() };
        let after = self.view.with(&decision);
        decision.cost = self.view.cost_of(&after);
        (decision, after)
    }

    fn make(&mut self, proposal: Proposal, after: View) {
        self.proposals.push(proposal);
        self.view = Cow::Owned(after);
    }

    /// What was decided, as an act; nothing if that is so.
    pub(crate) fn into_act(self, reason: String) -> Act {
        match self.proposals.is_empty() {
            true => Act::nothing(format!("{reason}; but nothing would be gained")),
            false => Act { what: What::Decide(self.proposals), reason },
        }
    }

    /// What was decided, in order.
    pub(crate) fn finish(self) -> Vec<Proposal> {
        self.proposals
    }
}
