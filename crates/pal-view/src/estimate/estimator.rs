//! Estimators: the fitted ones, one per tokenizer generation, and the classic rule.

use pal_model::TokenGeneration;

use super::calibration::CorrectionFactor;
use super::text_counts::TextCounts;
use super::token_weights::TokenWeights;
use super::weight_table;

/// Flat cost of an image or a document, for all rules; no data supports a better one.
const MEDIA_TOKENS: f64 = 2_000.0;
const CLASSIC_BYTES_PER_TEXT_TOKEN: f64 = 4.0;
const CLASSIC_BYTES_PER_JSON_TOKEN: f64 = 2.0;

#[derive(Clone, Copy, Debug, PartialEq)]
enum EstimationRule {
    Classic,
    Fitted(&'static TokenWeights),
}

/// Estimates tokens of text, JSON and media.
///
/// ```
/// use pal_model::TokenGeneration;
/// use pal_view::Estimator;
///
/// let estimator = Estimator::shipped(TokenGeneration::Claude46);
/// let parts = estimator.text("fn main() {}\n") + estimator.call("Read", r#"{"path":"a.rs"}"#);
/// assert!(estimator.total(parts) > 10);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimator {
    rule: EstimationRule,
    factor: CorrectionFactor,
}

impl Estimator {
    /// Creates the estimator with the shipped weights of a generation.
    pub fn shipped(generation: TokenGeneration) -> Estimator {
        let weights = match generation {
            TokenGeneration::Claude46 => &weight_table::CLAUDE_46,
            TokenGeneration::Claude47 => &weight_table::CLAUDE_47,
            TokenGeneration::O200k => &weight_table::O200K,
            TokenGeneration::Neutral => &weight_table::NEUTRAL,
        };
        Estimator { rule: EstimationRule::Fitted(weights), factor: CorrectionFactor::ONE }
    }

    /// Creates the rule-of-thumb estimator: 4 bytes per token for text, 2 for JSON, 2,000 tokens per image or
    /// document, the total × 4/3, rounded up.
    pub fn classic() -> Estimator {
        Estimator { rule: EstimationRule::Classic, factor: CorrectionFactor::ONE }
    }

    /// Corrects totals by a learnt factor. The classic rule ignores it.
    pub fn corrected(self, factor: CorrectionFactor) -> Estimator {
        match self.rule {
            EstimationRule::Classic => self,
            EstimationRule::Fitted(_) => Estimator { factor, ..self },
        }
    }

    /// Returns whether the weights are fitted, so that a factor can correct them.
    pub fn is_fitted(&self) -> bool {
        matches!(self.rule, EstimationRule::Fitted(_))
    }

    /// Raw tokens of plain text.
    pub fn text(&self, text: &str) -> f64 {
        match self.rule {
            EstimationRule::Classic => text.len() as f64 / CLASSIC_BYTES_PER_TEXT_TOKEN,
            EstimationRule::Fitted(weights) => TextCounts::from_text(text).weighted(&weights.counts),
        }
    }

    /// Raw tokens of serialized JSON, such as the input of a tool.
    pub fn json(&self, json: &str) -> f64 {
        match self.rule {
            EstimationRule::Classic => json.len() as f64 / CLASSIC_BYTES_PER_JSON_TOKEN,
            EstimationRule::Fitted(_) => self.text(json),
        }
    }

    /// Raw tokens of an image or a document.
    pub fn media(&self) -> f64 {
        MEDIA_TOKENS
    }

    /// Raw tokens of a tool call: its name, its serialized input and the framing.
    ///
    /// The classic rule counts the name as text and adds no framing.
    pub fn call(&self, name: &str, input: &str) -> f64 {
        let frame = match self.rule {
            EstimationRule::Classic => 0.0,
            EstimationRule::Fitted(weights) => f64::from(weights.call),
        };
        self.text(name) + self.json(input) + frame
    }

    /// Raw tokens of a tool result beyond its content.
    pub fn result_frame(&self) -> f64 {
        match self.rule {
            EstimationRule::Classic => 0.0,
            EstimationRule::Fitted(weights) => f64::from(weights.result),
        }
    }

    /// Total of raw parts: corrected and rounded up.
    pub fn total(&self, raw: f64) -> u64 {
        // Classic parts are multiples of a quarter, so the product is whole and the division decides alone.
        let tokens = match self.rule {
            EstimationRule::Classic => raw * 4.0 / 3.0,
            EstimationRule::Fitted(_) => raw * self.scale(),
        };
        tokens.ceil() as u64
    }

    /// Factor from raw parts to a total.
    pub fn scale(&self) -> f64 {
        match self.rule {
            EstimationRule::Classic => 4.0 / 3.0,
            EstimationRule::Fitted(_) => self.factor.as_f64(),
        }
    }
}
