//! Estimators: the fitted ones, one per tokenizer generation, and the classic rule.

use pal_model::TokenGeneration;

use super::calibration::Factor;
use super::counts::Counts;
use super::table;

/// Flat cost of an image or a document. No data says better, so all rules share it.
const MEDIA_TOKENS: f64 = 2_000.0;
const CLASSIC_BYTES_PER_TEXT_TOKEN: f64 = 4.0;
const CLASSIC_BYTES_PER_JSON_TOKEN: f64 = 2.0;

/// What one generation's estimates are made of; written by `xtask calibrate`.
#[derive(Debug, PartialEq)]
pub(super) struct Weights {
    /// Tokens for each structural count.
    pub(super) counts: [f32; Counts::LEN],
    /// Tokens that a tool call costs beyond its name and input.
    pub(super) call: f32,
    /// Tokens that a tool result costs beyond its text.
    pub(super) result: f32,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Rule {
    Classic,
    Fitted(&'static Weights),
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
    rule: Rule,
    factor: Factor,
}

impl Estimator {
    /// The estimator with the shipped weights of a generation.
    pub fn shipped(generation: TokenGeneration) -> Estimator {
        let weights = match generation {
            TokenGeneration::Claude46 => &table::CLAUDE_46,
            TokenGeneration::Claude47 => &table::CLAUDE_47,
            TokenGeneration::O200k => &table::O200K,
        };
        Estimator { rule: Rule::Fitted(weights), factor: Factor::ONE }
    }

    /// The rule of thumb: text 4 bytes a token, JSON 2, media 2 000 flat, the total × 4/3, rounded up.
    pub fn classic() -> Estimator {
        Estimator { rule: Rule::Classic, factor: Factor::ONE }
    }

    /// The same estimator with totals corrected by a learnt factor. The classic rule stays as it is.
    pub fn corrected(self, factor: Factor) -> Estimator {
        match self.rule {
            Rule::Classic => self,
            Rule::Fitted(_) => Estimator { factor, ..self },
        }
    }

    /// Raw tokens of plain text.
    pub fn text(&self, text: &str) -> f64 {
        match self.rule {
            Rule::Classic => text.len() as f64 / CLASSIC_BYTES_PER_TEXT_TOKEN,
            Rule::Fitted(weights) => Counts::of(text).weighted(&weights.counts),
        }
    }

    /// Raw tokens of serialised JSON, such as the input of a tool.
    pub fn json(&self, json: &str) -> f64 {
        match self.rule {
            Rule::Classic => json.len() as f64 / CLASSIC_BYTES_PER_JSON_TOKEN,
            Rule::Fitted(_) => self.text(json),
        }
    }

    /// Raw tokens of an image or a document.
    pub fn media(&self) -> f64 {
        MEDIA_TOKENS
    }

    /// Raw tokens of a tool call: its name, its serialised input and what frames them.
    ///
    /// The classic rule counts the name as text and has no frame.
    pub fn call(&self, name: &str, input: &str) -> f64 {
        let frame = match self.rule {
            Rule::Classic => 0.0,
            Rule::Fitted(weights) => f64::from(weights.call),
        };
        self.text(name) + self.json(input) + frame
    }

    /// Raw tokens that frame a tool result, beyond its content.
    pub fn result_frame(&self) -> f64 {
        match self.rule {
            Rule::Classic => 0.0,
            Rule::Fitted(weights) => f64::from(weights.result),
        }
    }

    /// Whole tokens of a sum of raw parts: corrected and rounded up.
    pub fn total(&self, raw: f64) -> u64 {
        // Classic parts are multiples of a quarter, so the product is whole and the division decides alone.
        let tokens = match self.rule {
            Rule::Classic => raw * 4.0 / 3.0,
            Rule::Fitted(_) => raw * self.scale(),
        };
        tokens.ceil() as u64
    }

    /// What raw parts are multiplied with in a total.
    pub fn scale(&self) -> f64 {
        match self.rule {
            Rule::Classic => 4.0 / 3.0,
            Rule::Fitted(_) => self.factor.as_f64(),
        }
    }
}
