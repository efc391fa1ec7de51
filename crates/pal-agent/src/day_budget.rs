//! The budget of a day over all sessions: what is left of it, and the user's leave to exceed it.

use pal_background::read_day_spending;
use pal_run::DayBudget;

use crate::Agent;

impl Agent<'_> {
    /// Budget of the day and what is left of it; none without one. A ledger that cannot be read limits nothing.
    pub(crate) fn day_budget(&self) -> Option<DayBudget> {
        let limit = self.runtime.model.daily_max?;
        let is_simulated = self.runtime.model.connection.endpoint().is_simulated();
        let day = read_day_spending(&self.home, self.runtime.clock.now(), is_simulated);
        let day = day.inspect_err(|error| tracing::warn!(%error, "the spending of today is unknown")).ok()?;
        Some(DayBudget { limit, left: limit - day.spent })
    }

    /// Question whether to exceed the budget of the day; none while something is left of it.
    pub fn budget_question(&self) -> Option<String> {
        let DayBudget { limit, left } = self.day_budget().filter(|day| day.left <= 0.0)?;
        Some(format!("the daily budget of ${limit:.2} is used up: ${:.2} spent today", limit - left))
    }

    /// Lifts the budget of the day for this session: the user wants to go on.
    pub fn lift_day_budget(&mut self) {
        self.runtime.model.daily_max = None;
    }
}
