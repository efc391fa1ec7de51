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

use std::path::Path;
use std::sync::Arc;

use pal_settings::KillSwitch;
use pal_tools::Workspace;

use crate::agent_handle::AgentHandle;
use crate::background_budget::BackgroundBudget;
use crate::options::AgentOptions;

pub use dream::Dream;
pub use dream_gates::{DreamGate, DreamGates};
pub use dream_report::DreamReport;
pub use dream_task::{DreamState, DreamTask, DreamTurn};

pub(crate) use dream_scheduler::DreamScheduler;
pub(crate) use memory_extraction::Extraction;

/// Starts extraction and dreams as configured. Subagents have neither, and unattended sessions do not last long
/// enough for a dream.
pub(crate) fn begin(
    options: &AgentOptions,
    session: (&Path, &str),
    project: &Path,
    workspace: &Workspace,
    handle: &AgentHandle,
) -> (Option<Extraction>, Option<DreamScheduler>) {
    if options.subagent.identity.is_some() || options.switches.is_off(KillSwitch::Memory) {
        return (None, None);
    }
    let extraction = options.memory.extraction.map(|learning| {
        let (tokens_per_day, line) = (options.background.tokens_daily, Arc::clone(&options.model.connection));
        let allowance = BackgroundBudget::new(&options.home, tokens_per_day, session.1, line);
        let books = (handle.clone(), Arc::new(allowance));
        Extraction::open(options, learning, project, session, workspace, books)
    });
    let gates = options.memory.dreams.filter(|_| options.is_attended());
    let dreaming = gates.map(|gates| DreamScheduler::new(options, gates, session.1, handle.clone()));
    (extraction, dreaming)
}
