//! Token estimates without tokenizer tables.
//!
//! A text is reduced to a few structural counts in one pass ([`Counts`]); weights per tokenizer generation, fitted
//! to growth that providers reported and kept in `table.rs`, turn them into tokens. The classic rule of thumb has the
//! same interface. Estimates of parts are fractional and raw: sum them first, then ask [`Estimator::total`].
//!
//! Nothing here loads a file, and no estimate depends on anything but the text and the estimator.

mod calibration;
mod counts;
mod estimator;
mod machine;
mod table;
#[cfg(test)]
mod tests;

pub use calibration::{Calibration, Factor};
pub use counts::Counts;
pub use estimator::Estimator;
