//! Signals while a person talks: whatever is under way is stopped in order, and the terminal is left as it was.

use std::sync::mpsc::Sender;
use std::time::Duration;

use pal_tui::Told;
use rustix::process::{Signal, kill_current_process_group};

/// Tells of interrupts and of the wish of the system to end, as long as anybody listens.
pub(super) fn tell(told: Sender<Told>) {
    std::thread::spawn(move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
        runtime.block_on(async {
            use tokio::signal::unix::{SignalKind, signal};
            let continued = SignalKind::from_raw(Signal::CONT.as_raw());
            let (Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup), Ok(mut continued)) = (
                signal(SignalKind::interrupt()),
                signal(SignalKind::terminate()),
                signal(SignalKind::hangup()),
                signal(continued),
            ) else {
                return;
            };
            loop {
                let news = tokio::select! {
                    _ = interrupt.recv() => Told::Stop,
                    _ = terminate.recv() => Told::End,
                    _ = hangup.recv() => Told::End,
                    _ = continued.recv() => Told::Continued,
                };
                if told.send(news).is_err() {
                    return;
                }
            }
        });
    });
}

/// How long a stop may take to be felt: another thread may be the one that takes it.
const FELT: Duration = Duration::from_millis(30);

/// Stops the program, and whoever was started together with it, until the shell lets it go on. Where there is no shell that
/// could, nothing happens.
pub(super) fn suspend() {
    // It fails for nobody's own group.
    let _ = kill_current_process_group(Signal::TSTP);
    std::thread::sleep(FELT);
}
