//! The agent as its users run it: the real program, real tools on real files, and the simulator as its provider.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod background_memory;
mod conversations;
mod damaged_logs;
mod driving_program;
mod editors;
mod kill_recovery;
mod leftover_processes;
mod limits;
mod mcp_servers;
mod memory_prompts;
mod permission_prompts;
mod provider_faults;
mod sandbox;
mod session_directories;
mod session_notes;
mod settings;
mod slash_commands;
mod subagents;
mod teammates;
mod test_world;
mod user_commands;
