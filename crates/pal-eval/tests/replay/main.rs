//! Replays of recorded sessions: restarts change nothing, and the simulator agrees with the provider.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod breaks;
mod determinism;
mod keepalive_replay;
mod notes;
mod prices;
mod provider_agreement;
mod scripted_rounds;
mod sessions;
mod synthetic_sessions;
mod ttl_regret;
mod window_matrix;
