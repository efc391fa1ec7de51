//! Ctrl-C and a wish of the system to end: the agent stops what it does, keeps what came, and the program ends. A second
//! one ends it at once.

use std::sync::{Arc, mpsc};

use pal_agent::Handle;
use pal_mcp::Servers;
use pal_tools::Shell;

use super::seam::{Lines, Next};

/// What the program exits with when it is ended by force.
pub(crate) const INTERRUPTED: i32 = 130;

/// Interrupts the agent when somebody wants the program to end.
pub(super) fn interrupt_on_signals(
    handle: Handle,
    (shell, servers): (Arc<Shell>, Arc<Servers>),
    lines: Arc<Lines>,
    next: mpsc::Sender<Next>,
) {
    let mut is_first = true;
    on_wishes_to_end(move || {
        if std::mem::take(&mut is_first) {
            handle.interrupt();
            // Nothing more is begun.
            lines.give_up();
            let _ = next.send(Next::End);
        } else {
            // Everything that was said is in the log already; whatever runs is given up.
            servers.stop();
            shell.end();
            crate::leftovers::end_and_tell();
            std::process::exit(INTERRUPTED);
        }
    });
}

/// Does something whenever somebody wants the program to end, on a thread of its own.
pub(crate) fn on_wishes_to_end(mut heed: impl FnMut() + Send + 'static) {
    std::thread::spawn(move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
        runtime.block_on(async {
            use tokio::signal::unix::{Signal, SignalKind, signal};
            let (Ok(mut interrupt), Ok(mut terminate)) =
                (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
            else {
                return;
            };
            // Who started the program with `nohup` wants it to go on.
            let mut hangup = match pal_process::is_hangup_ignored() {
                true => None,
                false => signal(SignalKind::hangup()).ok(),
            };
            let hung_up = async |hangup: &mut Option<Signal>| match hangup {
                Some(hangup) => drop(hangup.recv().await),
                None => std::future::pending().await,
            };
            loop {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                    () = hung_up(&mut hangup) => {}
                }
                heed();
            }
        });
    });
}
