//! An idle session: the life of its cache, the price of a prompt after it, and compaction before it ends.

use std::time::Duration;

use pal_context::cache::{ColdTurn, ForkPrice, fork_price};
use pal_context::cost_aware::idle_compaction_due;
use pal_engine::CompactionResult;
use pal_events::AgentEvent;
use pal_model::{EntryBody, EntryId, RequestSource, Timestamp};
use pal_settings::KillSwitch;
use pal_view::CacheTtl;

use crate::{Agent, AgentError};

/// Time without any activity of the user before a compaction in the pause starts.
const QUIET: Duration = Duration::from_secs(10);
/// Delay after the due time if a keepalive request may be sent at that time.
const KEEPALIVE_TIME: Duration = Duration::from_secs(8);

/// Remaining life of the cached messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CacheLifetime {
    /// Time until they expire; zero if they have.
    pub left: Duration,
    /// Whole life after a request.
    pub ttl: Duration,
}

/// Result of a look at an idle session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IdleOutcome {
    /// The conversation was compacted.
    Compacted,
    /// The user came back before the compaction was finished.
    Cancelled,
    /// Nothing was done.
    Nothing,
}

impl Agent<'_> {
    /// Remaining life of the cached messages; none if it is unknown.
    pub fn cache_lifetime(&self) -> Option<CacheLifetime> {
        let expiry = self.session.cache_expiry(&self.config)?.milliseconds();
        let touched = self.session.view().cache_touched_at()?.milliseconds();
        let left = expiry - self.runtime.clock.now().milliseconds();
        let time = |milliseconds: i64| Duration::from_millis(u64::try_from(milliseconds).unwrap_or(0));
        Some(CacheLifetime { left: time(left), ttl: time(expiry - touched) })
    }

    /// Price of a prompt sent now into an expired cache, if it is as high as users want to hear of.
    pub fn cold_turn(&mut self) -> Result<Option<ColdTurn>, AgentError> {
        let Some(least) = self.runtime.model.alerts.cold_turn else { return Ok(None) };
        // Keepalive requests of this pause count.
        let now = self.runtime.clock.now();
        self.runtime.background.end_pause(&mut self.session, &mut self.runtime.events)?;
        let turn = self.session.cold_turn(&self.config, now);
        self.runtime.background.pause(&self.session, &self.config, now);
        Ok(turn.filter(|turn| turn.price.is_some_and(|price| price >= least)))
    }

    /// Price of a fork of the conversation that starts now.
    pub fn fork_price(&self) -> ForkPrice {
        fork_price(self.session.view(), self.runtime.clock.now())
    }

    /// Reports the price of a prompt that goes into an expired cache.
    pub(crate) fn report_cold_turn(&mut self) -> Result<(), AgentError> {
        if self.runtime.permissions.agent.is_some() {
            return Ok(());
        }
        if let Some(turn) = self.cold_turn()? {
            self.runtime.events.send(AgentEvent::ColdTurn {
                expired_for: turn.expired_for,
                tokens: turn.tokens,
                cost: turn.price,
                text: turn.line(),
            });
        }
        Ok(())
    }

    /// Time until [`Agent::compact_if_idle`] has something to judge; none if it has not in this pause.
    pub fn until_idle_compaction(&self) -> Option<Duration> {
        let is_off = self.runtime.switches.is_off(KillSwitch::Compact) || self.config.cache.breakpoints_off;
        if is_off || !self.config.is_attended || !self.config.policy.idle_compaction {
            return None;
        }
        let due = self.idle_due().filter(|due| self.idle_judged != Some(*due))?;
        let left = due.milliseconds() - self.runtime.clock.now().milliseconds();
        let left = Duration::from_millis(u64::try_from(left).unwrap_or(0));
        Some(left.max(self.runtime.inbox.handle.until_quiet(QUIET)))
    }

    /// Time at which a compaction in this pause is judged. A keepalive request that is due goes before it.
    fn idle_due(&self) -> Option<Timestamp> {
        let due = idle_compaction_due(self.session.view())?;
        let ttl = CacheTtl::Minutes5.milliseconds();
        let is_short = self.cache_lifetime()?.ttl <= Duration::from_millis(ttl);
        let may_ping = is_short && self.runtime.background.keepalive.is_some();
        Some(if may_ping { due.after(KEEPALIVE_TIME) } else { due })
    }

    /// Compacts the conversation if the pause is about to outlive the cache and that pays; cancelled by
    /// [`crate::AgentHandle::end_idle_work`], which leaves the session as it was.
    pub fn compact_if_idle(&mut self) -> Result<IdleOutcome, AgentError> {
        let Some(Duration::ZERO) = self.until_idle_compaction() else { return Ok(IdleOutcome::Nothing) };
        let now = self.runtime.clock.now();
        // The keepalive requests of this pause go into the log, and may have postponed the expiry.
        self.runtime.background.end_pause(&mut self.session, &mut self.runtime.events)?;
        let outcome = if self.until_idle_compaction() == Some(Duration::ZERO) {
            self.idle_judged = self.idle_due();
            self.judge_and_compact(now)?
        } else {
            IdleOutcome::Nothing
        };
        if outcome != IdleOutcome::Compacted {
            self.runtime.background.pause(&self.session, &self.config, now);
        }
        Ok(outcome)
    }

    /// Books the summary requests behind an entry to the budget of background work; returns what they cost.
    fn book_summary(&self, source: &RequestSource, behind: Option<EntryId>) -> f64 {
        let entries = self.session.view().branch().iter().rev();
        let new =
            entries.take_while(|entry| Some(entry.id) != behind).filter_map(|entry| match &entry.body {
                EntryBody::Response(response) if response.source == *source => Some(response),
                _ => None,
            });
        let now = self.runtime.clock.now();
        let mut cost = 0.0;
        for response in new {
            cost += response.cost.unwrap_or(0.0);
            if let Some(budget) = &self.runtime.background.budget {
                budget.record_usage(source, &response.usage, response.cost, now);
                budget.ended(source, &[], now);
            }
        }
        cost
    }

    fn judge_and_compact(&mut self, now: Timestamp) -> Result<IdleOutcome, AgentError> {
        let verdict = self.config.idle_compaction(self.session.view(), now);
        tracing::info!(reason = verdict.reason, is_worth_it = verdict.is_worth_it, "idle compaction");
        if !verdict.is_worth_it {
            return Ok(IdleOutcome::Nothing);
        }
        let source = RequestSource::from_name("compact");
        if let Some(Err(why)) =
            self.runtime.background.budget.as_ref().map(|budget| budget.may_begin(&source, now))
        {
            tracing::info!(why, "no idle compaction");
            return Ok(IdleOutcome::Nothing);
        }
        if !self.runtime.inbox.handle.begin_idle_work(QUIET) {
            // The user is typing: the next look comes when they have stopped.
            self.idle_judged = None;
            return Ok(IdleOutcome::Nothing);
        }
        let newest = self.session.view().newest_id();
        self.runtime.model.is_quiet = true;
        let compacted = self.session.compact_idle(verdict.reason, &self.config, now, &mut self.runtime);
        self.runtime.model.is_quiet = false;
        let is_cancelled = self.runtime.inbox.handle.cancel().is_cancelled();
        self.runtime.inbox.handle.finish_idle_work();
        let cost = self.book_summary(&source, newest);
        match compacted? {
            CompactionResult::Done { .. } => {
                let line =
                    format!("compacted in the pause, before the cache expires: the summary cost ${cost:.2}");
                self.runtime.events.notice(line);
                Ok(IdleOutcome::Compacted)
            }
            _ if is_cancelled => Ok(IdleOutcome::Cancelled),
            CompactionResult::Refused(_) | CompactionResult::Blocked(_) => Ok(IdleOutcome::Nothing),
        }
    }
}
