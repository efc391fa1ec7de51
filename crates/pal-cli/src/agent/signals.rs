//! Ctrl-C and a wish of the system to end: the agent stops what it does, keeps what came, and the program ends. A second
//! one ends it at once.

use std::sync::Arc;

use pal_agent::Handle;
use pal_tools::Shell;

/// What the program exits with when it is ended by force.
const INTERRUPTED: i32 = 130;

/// Interrupts the agent when somebody wants the program to end.
pub(crate) fn interrupt_on_signals(handle: Handle, shell: Arc<Shell>) {
    std::thread::spawn(move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
        runtime.block_on(async {
            use tokio::signal::unix::{SignalKind, signal};
            let (Ok(mut interrupt), Ok(mut terminate)) =
                (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
            else {
                return;
            };
            for is_first in [true, false] {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                if is_first {
                    handle.interrupt();
                } else {
                    // Everything that was said is in the log already; whatever runs is given up.
                    shell.end();
                    std::process::exit(INTERRUPTED);
                }
            }
        });
    });
}
