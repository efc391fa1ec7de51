//! Parameters of a view: model, token estimator, scope.

use pal_model::ModelCard;

use crate::estimate::Estimator;
use crate::wire_block::{BlockCleaner, ReferableTool};

/// Parameters that a view is derived with.
#[derive(Clone, Debug)]
pub struct Lens {
    /// Card of the model that receives the request.
    pub card: ModelCard,
    /// Token estimator.
    pub estimator: Estimator,
    /// Handling of boundaries.
    pub scope: ViewScope,
}

/// Range of the log that a view covers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ViewScope {
    /// From the newest boundary on.
    Current,
    /// The whole log: boundaries are ignored.
    Whole,
}

impl Lens {
    /// Returns the block cleaner for this model and these tools.
    pub(crate) fn cleaner<'a>(&'a self, tools: &'a [ReferableTool]) -> BlockCleaner<'a> {
        BlockCleaner { card: &self.card, estimator: &self.estimator, tools }
    }
}
