//! Token estimates without tokenizer tables.
//!
//! One pass reduces a text to a few structural counts ([`TextCounts`]); weights per tokenizer generation,
//! fitted to growth that providers reported, turn them into tokens. The classic rule of thumb has the same
//! interface. Estimates of parts are fractional and raw: sum them first, then call [`Estimator::total`].
//!
//! Nothing here loads a file, and no estimate depends on anything but the text and the estimator.

mod byte_classes;
mod calibration;
mod card_estimator;
mod estimator;
#[cfg(test)]
mod tests;
mod text_counts;
mod token_weights;
mod weight_table;

pub use calibration::{Calibration, CorrectionFactor};
pub use card_estimator::CardEstimator;
pub use estimator::Estimator;
pub use text_counts::TextCounts;
