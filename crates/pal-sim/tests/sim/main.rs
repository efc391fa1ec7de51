//! End-to-end tests of the simulator: requests in, replies out, and its models on real sessions.

#![allow(clippy::unwrap_used, clippy::expect_used)]
// Bodies are written in place with `json!`, which creates values.
#![allow(clippy::needless_pass_by_value)]

mod client;
mod documents;
mod session;

mod binding;
mod cache;
mod compaction;
mod edits;
mod http;
mod real_sessions;
