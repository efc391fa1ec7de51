//! Test support of several crates: scenarios, random logs, raw blocks and recorded sessions.
//!
//! A development dependency only; nothing here is part of the program.

mod collector;
mod random_log;
mod raw_blocks;
mod recorded_sessions;
mod scenario;
mod script;

pub use collector::{Collector, Manner, Posted};
pub use random_log::{RandomLogOptions, random_log};
pub use raw_blocks::{assistant_block, user_block};
pub use recorded_sessions::{
    ByteThirds, cases, data_dir, has_all_recorded_sessions, map_on_all_cores, read_entries, recorded_entries,
    session_files, session_sample,
};
pub use scenario::{Scenario, scenarios};
pub use script::script;
