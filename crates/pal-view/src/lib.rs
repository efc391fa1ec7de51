//! Part of Palimpsest.

mod estimate;

pub use estimate::{Calibration, Counts, Estimator, Factor, Generation};
