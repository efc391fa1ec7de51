//! Signals of `pal -p`: the first interrupts the agent and ends the program in order; a second ends it at once.

use super::stdin_prompts::{PromptProgress, RunStep};
use crate::agent::on_termination_signals;
use crate::exit_codes;
use pal_agent::AgentHandle;
use pal_mcp::ServerPool;
use pal_tools::Shell;
use std::sync::{Arc, mpsc};

/// Interrupts the agent on the first signal; exits on the second.
pub(super) fn interrupt_on_signals(
    handle: AgentHandle,
    (shell, servers): (Arc<Shell>, Arc<ServerPool>),
    progress: Arc<PromptProgress>,
    steps: mpsc::Sender<RunStep>,
) {
    let mut is_first = true;
    on_termination_signals(move || {
        if std::mem::take(&mut is_first) {
            handle.interrupt();
            // Prompts that wait are given up.
            progress.give_up_all();
            let _ = steps.send(RunStep::End);
        } else {
            // The log is complete; running processes are ended.
            servers.stop();
            shell.shut_down();
            crate::leftover_processes::end_and_report();
            std::process::exit(i32::from(exit_codes::INTERRUPTED));
        }
    });
}
