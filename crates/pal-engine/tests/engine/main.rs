//! The driver's promises: a session never dies of its own length, and what is compacted can be taken back.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod announcements;
mod cache_reads;
mod context_length;
mod disk;
mod durable;
mod played_session;
mod refused_media;
mod simulated_session;
mod small_servers;
mod summaries;
mod undo;
