//! Behavior of tools that a model relies on.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a helper that fails is a test that fails")]

mod common;
mod edit_calls;
mod edit_properties;
mod fetch_calls;
mod notebook_calls;
mod read_calls;
mod resolved_paths;
mod search_calls;
mod skill_calls;
mod write_calls;
