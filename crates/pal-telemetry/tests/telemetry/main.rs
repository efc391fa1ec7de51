//! Exports as a collector receives them, decoded with the official generated protocol types.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod collector_trouble;
mod export;
mod sample_events;
