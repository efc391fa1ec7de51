//! The simulator's models on real sessions, and its documents.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod documents;
mod real_sessions;
mod session;
