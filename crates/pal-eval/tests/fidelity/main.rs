//! Fidelity of compactions: a small log with known figures, and recorded sessions.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod known_figures;
mod recorded_compactions;
