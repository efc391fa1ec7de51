//! Plan of an evaluation: rows, models and windows.

use pal_model::ModelCatalog;

use crate::comparison::policy_rows::{NONE, PolicyRow, find_policy_row};
use crate::replay::ReplayOptions;

/// Rows, models and windows to measure.
#[derive(Clone, Debug)]
pub struct EvalPlan {
    /// The policies.
    pub rows: Vec<&'static PolicyRow>,
    /// The models; none is each session's own.
    pub models: Vec<Option<String>>,
    /// The windows.
    pub windows: Vec<u64>,
    /// The cards of all models.
    pub cards: ModelCatalog,
}

impl EvalPlan {
    /// The same with the largest window first: what fits there without an act is the same in the smaller ones.
    pub(crate) fn sorted(&self) -> EvalPlan {
        let mut plan = self.clone();
        plan.windows.sort_unstable_by(|one, other| other.cmp(one));
        plan.windows.dedup();
        if !plan.rows.iter().any(|row| row.name == NONE) {
            plan.rows.splice(0..0, find_policy_row(NONE));
        }
        plan
    }

    pub(crate) fn options(&self, model: &Option<String>, window: u64) -> ReplayOptions {
        ReplayOptions {
            cards: self.cards.clone(),
            model: model.clone(),
            window: Some(window),
            ..ReplayOptions::plain()
        }
    }
}

/// Which model, by its number in the plan, and which window.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct EvalSetup {
    pub(crate) model: usize,
    pub(crate) window: u64,
}
