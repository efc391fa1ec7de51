//! Signals while a person talks: whatever is under way is stopped in order, and the terminal is left as it was.

use std::sync::mpsc::Sender;

use pal_tui::Told;

/// Tells of interrupts and of the wish of the system to end, as long as anybody listens.
pub(super) fn tell(told: Sender<Told>) {
    std::thread::spawn(move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
        runtime.block_on(async {
            use tokio::signal::unix::{SignalKind, signal};
            let (Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)) = (
                signal(SignalKind::interrupt()),
                signal(SignalKind::terminate()),
                signal(SignalKind::hangup()),
            ) else {
                return;
            };
            loop {
                let news = tokio::select! {
                    _ = interrupt.recv() => Told::Stop,
                    _ = terminate.recv() => Told::End,
                    _ = hangup.recv() => Told::End,
                };
                if told.send(news).is_err() {
                    return;
                }
            }
        });
    });
}
