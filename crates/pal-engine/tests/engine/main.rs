//! The driver's promises: a session never dies of its own length, and what is compacted can be taken back.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod announcing;
mod cached;
mod disk;
mod durable;
mod length;
mod played;
mod refused;
mod simulated;
mod summariser;
mod undo;
