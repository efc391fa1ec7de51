//! Signals of the terminal program: they are forwarded to the terminal, which stops the agent and restores the screen.

use std::sync::mpsc::Sender;
use std::time::Duration;

use pal_tui::UiEvent;
use rustix::process::{Signal, getpid, kill_current_process_group, kill_process};

/// Forwards SIGINT, SIGTERM, SIGHUP and SIGCONT to the terminal until it ends.
pub(super) fn forward(told: Sender<UiEvent>) {
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
                    _ = interrupt.recv() => UiEvent::Stop,
                    _ = terminate.recv() => UiEvent::End,
                    _ = hangup.recv() => UiEvent::End,
                    _ = continued.recv() => UiEvent::Resumed,
                };
                if told.send(news).is_err() {
                    return;
                }
            }
        });
    });
}

/// Time for SIGTSTP to take effect: another thread may receive it.
const STOP_DELAY: Duration = Duration::from_millis(30);

/// Stops the process group until the shell continues it. Has no effect without a job-control shell.
pub(super) fn suspend() {
    // Signalling the own group does not fail.
    let _ = kill_current_process_group(Signal::TSTP);
    std::thread::sleep(STOP_DELAY);
}

/// Makes the thread that waits for keys return once: the terminal library reports a resize.
pub(super) fn wake_reader() {
    // Signalling the own process does not fail.
    let _ = kill_process(getpid(), Signal::WINCH);
}
