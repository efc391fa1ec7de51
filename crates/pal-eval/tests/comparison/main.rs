//! Policy comparison over synthetic sessions with known figures, and over a few recorded ones.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod adversarial_sessions;
mod recorded_comparison;
mod synthetic_comparison;
