//! The lab over made sessions whose figures are known, and over a few recorded ones.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod recorded_comparison;
mod synthetic_comparison;
