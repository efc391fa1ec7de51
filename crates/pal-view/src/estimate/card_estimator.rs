//! Token estimates by model, for content of any model.

use pal_model::{ModelCatalog, TokenEstimator};

use super::Estimator;

/// Estimates with the shipped weights of each model's tokenizer generation, as its card names it.
#[derive(Clone, Copy, Debug)]
pub struct CardEstimator<'a> {
    /// Cards that models are looked up in.
    pub cards: &'a ModelCatalog,
}

impl CardEstimator<'_> {
    fn estimator(&self, model: &str) -> Estimator {
        Estimator::shipped(self.cards.find(model).card.generation)
    }
}

impl TokenEstimator for CardEstimator<'_> {
    fn text(&self, model: &str, text: &str) -> f64 {
        self.estimator(model).text(text)
    }

    fn json(&self, model: &str, json: &str) -> f64 {
        self.estimator(model).json(json)
    }
}
