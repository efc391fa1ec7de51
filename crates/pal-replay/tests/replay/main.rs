//! Recorded sessions, replayed: that nothing depends on restarts, and that the simulator does what the provider did.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod breaks;
mod determinism;
mod made;
mod matrix;
mod notes;
mod pings;
mod prices;
mod reality;
mod sessions;
