//! SIGINT, SIGTERM and SIGHUP.

/// Calls `on_signal` for each SIGINT, SIGTERM and SIGHUP, on a thread of its own.
pub(crate) fn on_termination_signals(mut on_signal: impl FnMut() + Send + 'static) {
    std::thread::spawn(move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
        runtime.block_on(async {
            use tokio::signal::unix::{Signal, SignalKind, signal};
            let (Ok(mut interrupt), Ok(mut terminate)) =
                (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
            else {
                return;
            };
            // Under `nohup`, a hangup is ignored.
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
                on_signal();
            }
        });
    });
}
