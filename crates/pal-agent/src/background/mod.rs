//! Runs in the background that write durable memory (§7.3–7.7): what was learnt is drawn from a conversation that has come to
//! rest, and now and then all memories are put in order.
//!
//! Both may look around in the project and write memories, and nothing else. That is decided here, call by call, on real
//! paths, and every change goes through `pal-memory`: versioned, with secrets masked, so that it can be taken back.

mod dream;
mod dreaming;
mod extraction;
mod gates;
mod lock;
mod reach;
mod report;
mod sessions;
mod task;
mod tools;

use std::path::Path;
use std::sync::Arc;

use pal_settings::Switch;
use pal_tools::Workspace;

use crate::allowance::Allowance;
use crate::handle::Handle;
use crate::options::Options;

pub use dream::Dream;
pub use gates::{Gate, GateSettings, Gates};
pub use report::DreamReport;
pub use task::{DreamState, DreamTask, DreamTurn};

pub(crate) use dreaming::Dreaming;
pub(crate) use extraction::Extraction;

/// Who draws memories from a session and who puts them in order, as far as anybody shall. Agents that were sent report to
/// whoever sent them, and whoever runs a single prompt does not stay long enough for a dream.
pub(crate) fn begin(
    options: &Options,
    session: (&Path, &str),
    project: &Path,
    workspace: &Workspace,
    handle: &Handle,
) -> (Option<Extraction>, Option<Dreaming>) {
    if options.agent.is_some() || options.switches.is_off(Switch::Memory) {
        return (None, None);
    }
    let extraction = options.learning.map(|learning| {
        let (tokens_per_day, line) = (options.background_tokens_daily, Arc::clone(&options.line));
        let allowance = Allowance::new(&options.home, tokens_per_day, session.1, line);
        let books = (handle.clone(), Arc::new(allowance));
        Extraction::open(options, learning, project, session, workspace, books)
    });
    let gates = options.dreaming.filter(|_| options.is_attended());
    let dreaming = gates.map(|gates| Dreaming::new(options, gates, session.1, handle.clone()));
    (extraction, dreaming)
}
