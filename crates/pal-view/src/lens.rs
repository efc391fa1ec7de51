//! What a view is for: the model that will be asked, how tokens are counted, how far back it reaches.

use pal_model::Card;

use crate::clean::{Cleaner, Referable};
use crate::estimate::Estimator;

/// What a view is for: a model and a way to count.
#[derive(Clone, Debug)]
pub struct Lens {
    /// The model that will be asked.
    pub card: Card,
    /// How tokens are estimated.
    pub estimator: Estimator,
    /// Whether boundaries count.
    pub scope: Scope,
}

/// How far back a view reaches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// To the newest boundary.
    Current,
    /// To the beginning: boundaries are ignored.
    Whole,
}

impl Lens {
    /// What makes blocks fit for the wire, for this model and a session that has these tools.
    pub(crate) fn cleaner<'a>(&'a self, tools: &'a [Referable]) -> Cleaner<'a> {
        Cleaner { card: &self.card, estimator: &self.estimator, tools }
    }
}
