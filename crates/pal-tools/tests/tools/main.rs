//! What a model can rely on when it calls the tools.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a helper that fails is a test that fails")]

mod common;
mod edit;
mod fetch;
mod laws;
mod places;
mod read;
mod search;
mod skills;
mod write;
