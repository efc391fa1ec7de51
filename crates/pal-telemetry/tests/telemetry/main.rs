//! Exports as a collector gets them, read by what the makers of the protocol generate from it.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod collector_trouble;
mod export;
mod sample_events;
