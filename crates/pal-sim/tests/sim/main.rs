//! The simulator as its users see it: requests in, replies out.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod client;

mod binding;
mod cache;
mod compaction;
mod edits;
mod http;
