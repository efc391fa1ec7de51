//! Test support for the agent and its front ends: a simulated provider, and agents inside of the test process.
//!
//! [`TestProvider`] serves the simulator on loopback and keeps all requests. [`AgentWorld`] adds a home and a project
//! folder and builds agent options from settings, as the program does. [`TestAgent`] runs prompts and keeps all events.
//! A development dependency only; nothing here is part of the program.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod agent_world;
mod log_lines;
mod test_agent;
mod test_provider;

pub use agent_world::{AgentWorld, PATIENCE, TEST_HOUR};
pub use log_lines::log_lines;
pub use test_agent::TestAgent;
pub use test_provider::{
    FunctionModel, ProviderSetup, ReceivedRequest, ReceivedTraffic, TestProvider, calls, cut_off, is_summary,
    now, says,
};
