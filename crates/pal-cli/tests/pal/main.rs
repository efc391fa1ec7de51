//! The program as its users run it, and the real sessions of the test data.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod bad_input;
mod check;
mod commands;
mod compact;
mod config;
mod context;
mod cost;
mod cost_overview;
mod demo;
mod eval;
mod export;
mod forks;
mod imports;
mod large_logs;
mod memory;
mod pin;
mod print;
mod program;
mod readme;
mod real_sessions;
mod recall;
mod removal;
mod replay;
mod resume;
mod sessions;
mod setup;
mod simulator;
mod stored_context;
mod stored_session;
#[cfg(feature = "otel")]
mod telemetry;
mod view;
mod wrong_input;
