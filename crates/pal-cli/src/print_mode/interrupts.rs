//! Signals of `pal -p`: the first interrupts the agent and ends the program in order; a second ends it at once.

use super::control_channel::ControlChannel;
use super::run_step::{PromptProgress, RunStep};
use crate::agent::on_termination_signals;
use crate::exit_codes;
use crate::slash::LiveSessionCell;
use std::sync::{Arc, mpsc};

/// Interrupts the agent on the first signal; exits on the second.
pub(super) fn interrupt_on_signals(
    live: LiveSessionCell,
    control: Arc<ControlChannel>,
    progress: Arc<PromptProgress>,
    steps: mpsc::Sender<RunStep>,
) {
    let mut is_first = true;
    on_termination_signals(move || {
        if std::mem::take(&mut is_first) {
            control.interrupt();
            live.interrupt();
            // Prompts that wait are given up.
            progress.give_up_all();
            let _ = steps.send(RunStep::End);
        } else {
            // The log is complete; running processes are ended.
            live.end_processes();
            crate::leftover_processes::end_and_report();
            std::process::exit(i32::from(exit_codes::INTERRUPTED));
        }
    });
}
