//! A wish to stop that many can see, whatever they are waiting for.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A wish to stop. Clones are the same wish.
#[derive(Clone, Default)]
pub struct Cancel {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
struct Shared {
    is_cancelled: bool,
    next: u64,
    watchers: Vec<(u64, Box<dyn Fn() + Send>)>,
}

impl Cancel {
    /// Nobody wishes anything yet.
    pub fn new() -> Cancel {
        Cancel::default()
    }

    /// Tells everybody who watches, once.
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

    /// Whether it was wished.
    pub fn is_cancelled(&self) -> bool {
        self.lock().is_cancelled
    }

    /// Calls `tell` when it is wished, at once if it was already, until the watch is dropped.
    pub fn watch(&self, tell: impl Fn() + Send + 'static) -> Watch {
        let mut shared = self.lock();
        if shared.is_cancelled {
            drop(shared);
            tell();
            return Watch { cancel: self.clone(), number: 0 };
        }
        shared.next += 1;
        let number = shared.next;
        shared.watchers.push((number, Box::new(tell)));
        Watch { cancel: self.clone(), number }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        // A watcher that panicked has changed nothing of what is kept here.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Cancel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Cancel").field("is_cancelled", &self.is_cancelled()).finish()
    }
}

/// A watch over a wish to stop; it ends when this is dropped.
#[derive(Debug)]
#[must_use = "the watch ends when it is dropped"]
pub struct Watch {
    cancel: Cancel,
    number: u64,
}

impl Drop for Watch {
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
    fn everybody_who_watches_is_told_once() {
        let (cancel, told) = (Cancel::new(), Arc::new(AtomicU32::new(0)));
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
