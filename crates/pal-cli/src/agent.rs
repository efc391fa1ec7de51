//! The agent of the command line: its options, and teammates.

mod agent_options;
mod given_agents;
mod mcp_servers;
mod model_profiles;
mod teammate;
mod termination;
mod tool_choice;

pub(crate) use agent_options::{dream_gates, options, options_at};
pub(crate) use given_agents::agents_of_program;
pub(crate) use mcp_servers::{ConfiguredServer, configured_servers};
pub(crate) use teammate::work_as_teammate;
pub(crate) use termination::on_termination_signals;
