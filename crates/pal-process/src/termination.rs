//! Time limits for the termination of processes.

use std::thread;
use std::time::{Duration, Instant};

/// Grace period between SIGTERM and SIGKILL.
pub(crate) const GRACE_PERIOD: Duration = Duration::from_secs(2);

/// Time for the kernel to end killed processes.
pub(crate) const KILL_TIMEOUT: Duration = Duration::from_secs(2);

/// Time for processes that are about to end: the kernel ends a sandbox's own processes only after the
/// command.
pub(crate) const SETTLE_TIME: Duration = Duration::from_millis(500);

/// First poll interval for processes that are to end: most end at once.
pub(crate) const FIRST_POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Polls a condition at intervals that grow to `every`; returns false on timeout.
pub(crate) fn wait_until(time: Duration, every: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + time;
    let mut pause = FIRST_POLL_INTERVAL;
    while !is_so() {
        if Instant::now() >= until {
            return false;
        }
        thread::sleep(pause);
        pause = (pause * 2).min(every);
    }
    true
}
