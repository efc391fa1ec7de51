//! Background runs that write memory (§7.3–7.7): extraction from a conversation at rest, and dreams that
//! consolidate all memories.
//!
//! Both may read the project and write memories, nothing else. That is enforced for every call on real paths,
//! and changes go through `pal-memory`: versioned, with secrets masked, and reversible.

mod access_bounds;
mod dream;
mod dream_gates;
mod dream_lock;
mod dream_report;
mod dream_scheduler;
mod dream_task;
mod memory_editor;
mod memory_extraction;
mod session_search;
mod standing_rule;

pub use dream::{Dream, revert_killed_dreams};
pub use dream_gates::{DreamGate, DreamGates};
pub use dream_report::DreamReport;
pub use dream_scheduler::DreamScheduler;
pub use dream_task::{DreamState, DreamTask, DreamTurn};
pub use memory_extraction::Extraction;
