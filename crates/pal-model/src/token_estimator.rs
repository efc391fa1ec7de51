//! Token estimates by model, as imports need them.

/// Estimates tokens of foreign content.
pub trait TokenEstimator {
    /// Tokens that `model` would see in `text`.
    fn text(&self, model: &str, text: &str) -> f64;
    /// Tokens that `model` would see in raw JSON.
    fn json(&self, model: &str, json: &str) -> f64;
}
