//! The simulator as its users see it: requests in, replies out; and what its models say to real sessions.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod client;
mod documents;
mod session;

mod binding;
mod cache;
mod compaction;
mod edits;
mod http;
mod real_sessions;
