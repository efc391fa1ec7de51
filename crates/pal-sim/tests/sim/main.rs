//! What the simulator's models say to real sessions.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod real_sessions;
mod session;
