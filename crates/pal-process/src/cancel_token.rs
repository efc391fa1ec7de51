//! Cancellation token that any number of threads can check or watch.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Cancellation token. Clones share one state.
#[derive(Clone, Default)]
pub struct CancelToken {
    shared: Arc<Mutex<CancelState>>,
}

#[derive(Default)]
struct CancelState {
    is_cancelled: bool,
    next: u64,
    watchers: Vec<(u64, Box<dyn Fn() + Send>)>,
}

impl CancelToken {
    /// Creates a token that is not cancelled.
    pub fn new() -> CancelToken {
        CancelToken::default()
    }

    /// Cancels and calls every watcher once.
    pub fn cancel(&self) {
        let watchers = {
            let mut shared = self.lock();
            shared.is_cancelled = true;
            std::mem::take(&mut shared.watchers)
        };
        for (_, tell) in watchers {
            tell();
        }
    }

    /// Returns whether it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.lock().is_cancelled
    }

    /// Calls `tell` on cancellation, at once if already cancelled, unless the watch is dropped before.
    pub fn watch(&self, tell: impl Fn() + Send + 'static) -> CancelWatch {
        let mut shared = self.lock();
        if shared.is_cancelled {
            drop(shared);
            tell();
            return CancelWatch { cancel: self.clone(), number: 0 };
        }
        shared.next += 1;
        let number = shared.next;
        shared.watchers.push((number, Box::new(tell)));
        CancelWatch { cancel: self.clone(), number }
    }

    fn lock(&self) -> MutexGuard<'_, CancelState> {
        // A panicking watcher leaves this state intact.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for CancelToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("CancelToken").field("is_cancelled", &self.is_cancelled()).finish()
    }
}

/// Registration of a watcher, removed on drop.
#[derive(Debug)]
#[must_use = "the watch ends when it is dropped"]
pub struct CancelWatch {
    cancel: CancelToken,
    number: u64,
}

impl Drop for CancelWatch {
    fn drop(&mut self) {
        let number = self.number;
        self.cancel.lock().watchers.retain(|(known, _)| *known != number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn every_watcher_is_called_once() {
        let (cancel, told) = (CancelToken::new(), Arc::new(AtomicU32::new(0)));
        let count = || {
            let told = Arc::clone(&told);
            move || {
                told.fetch_add(1, Ordering::Relaxed);
            }
        };
        let kept = cancel.watch(count());
        drop(cancel.watch(count()));
        cancel.cancel();
        cancel.cancel();
        drop(kept);
        assert_eq!(told.load(Ordering::Relaxed), 1, "one who no longer watches is not told");
        let _late = cancel.watch(count());
        assert_eq!((told.load(Ordering::Relaxed), cancel.is_cancelled()), (2, true));
    }
}
