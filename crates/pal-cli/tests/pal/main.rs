//! The program as its users run it, and the real sessions that it is for.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod bad_input;
mod checking;
mod commands;
mod compacting;
mod comparing;
mod configuring;
mod contexts;
mod costing;
mod demonstrating;
mod exporting;
mod filled;
mod forks;
mod large;
mod pinning;
mod printing;
mod program;
mod real_sessions;
mod recalling;
mod remembering;
mod replay;
mod resume;
mod sessions;
mod simulator;
mod stored;
#[cfg(feature = "otel")]
mod telemetry;
mod viewing;
