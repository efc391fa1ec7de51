//! Staggering of concurrent requests with a common prefix (§5.7): the first one's cache write is readable
//! only once its answer begins, so the others wait for that.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// Sends the first of several requests with a common prefix ahead of the others.
#[derive(Clone, Debug, Default)]
pub struct RequestStagger {
    prefixes: Arc<Mutex<HashMap<u128, PrefixState>>>,
}

#[derive(Debug)]
enum PrefixState {
    /// A request is in flight without an answer yet; others wait here.
    InFlight(Arc<Notify>),
    /// An answer began: its cache entry is readable until then.
    Readable(Instant),
}

/// Permission to send one request.
#[derive(Debug)]
pub struct SendPermit {
    stagger: RequestStagger,
    prefix: u128,
    /// TTL of the cache entry.
    lifetime: Duration,
    /// True if others wait for this request.
    leads: bool,
}

impl RequestStagger {
    /// Waits until a request with this prefix may be sent: at once if an answered one's cache entry is still
    /// valid or none is in flight; otherwise until the one in flight is answered or fails. `lifetime` is the
    /// TTL of the cache entry.
    pub async fn acquire(&self, prefix: u128, lifetime: Duration) -> SendPermit {
        let pass = |leads| SendPermit { stagger: self.clone(), prefix, lifetime, leads };
        loop {
            let away = {
                let mut prefixes = self.lock();
                let now = Instant::now();
                match prefixes.get(&prefix) {
                    Some(PrefixState::Readable(until)) if now < *until => return pass(false),
                    Some(PrefixState::InFlight(away)) => Arc::clone(away),
                    Some(PrefixState::Readable(_)) | None => {
                        // The leading request removes expired prefixes, so that the map stays bounded.
                        prefixes.retain(
                            |_, known| !matches!(known, PrefixState::Readable(until) if *until <= now),
                        );
                        prefixes.insert(prefix, PrefixState::InFlight(Arc::default()));
                        return pass(true);
                    }
                }
            };
            let told = away.notified();
            tokio::pin!(told);
            // From here on no notification is missed; an earlier one shows in the map.
            told.as_mut().enable();
            if matches!(self.lock().get(&prefix), Some(PrefixState::InFlight(same)) if Arc::ptr_eq(same, &away))
            {
                told.await;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u128, PrefixState>> {
        // Nothing panics while the lock is held.
        self.prefixes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SendPermit {
    /// Marks the answer as begun and releases waiting requests. A read extends the entry's TTL.
    pub fn mark_begun(&mut self) {
        let until = Instant::now() + self.lifetime;
        if std::mem::take(&mut self.leads) {
            self.release(Some(PrefixState::Readable(until)));
        } else if let Some(PrefixState::Readable(known)) = self.stagger.lock().get_mut(&self.prefix) {
            *known = until.max(*known);
        }
    }

    fn release(&self, known: Option<PrefixState>) {
        let mut prefixes = self.stagger.lock();
        let before = match known {
            Some(known) => prefixes.insert(self.prefix, known),
            None => prefixes.remove(&self.prefix),
        };
        if let Some(PrefixState::InFlight(away)) = before {
            away.notify_waiters();
        }
    }
}

impl Drop for SendPermit {
    /// A request that ends without an answer lets the next one lead.
    fn drop(&mut self) {
        if self.leads {
            self.release(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(300);

    #[tokio::test(start_paused = true)]
    async fn others_wait_until_the_first_answer_begins() {
        let stagger = RequestStagger::default();
        let mut first = stagger.acquire(1, LONG).await;
        let other = stagger.acquire(2, LONG).await;
        drop(other);
        let waiting: Vec<_> = (0..5)
            .map(|_| {
                let stagger = stagger.clone();
                tokio::spawn(async move { stagger.acquire(1, LONG).await })
            })
            .collect();
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert!(waiting.iter().all(|task| !task.is_finished()));
        first.mark_begun();
        for task in waiting {
            assert!(!task.await.unwrap().leads);
        }
        drop(first);
        assert!(!stagger.acquire(1, LONG).await.leads, "what was written is still there");
        tokio::time::sleep(LONG).await;
        let mut again = stagger.acquire(1, LONG).await;
        assert!(again.leads, "it has expired");
        again.mark_begun();
        tokio::time::sleep(LONG / 2).await;
        stagger.acquire(1, LONG).await.mark_begun();
        tokio::time::sleep(LONG / 2).await;
        assert!(!stagger.acquire(1, LONG).await.leads, "a read keeps it");
    }

    #[tokio::test(start_paused = true)]
    async fn next_request_leads_after_a_failure() {
        let stagger = RequestStagger::default();
        let first = stagger.acquire(1, LONG).await;
        let next = tokio::spawn({
            let stagger = stagger.clone();
            async move { stagger.acquire(1, LONG).await }
        });
        let last = tokio::spawn({
            let stagger = stagger.clone();
            async move { stagger.acquire(1, LONG).await }
        });
        tokio::time::sleep(Duration::from_secs(1)).await;
        drop(first);
        let (mut next, mut last) = (Some(next), Some(last));
        let leader = tokio::select! {
            pass = next.as_mut().unwrap() => { next = None; pass }
            pass = last.as_mut().unwrap() => { last = None; pass }
        };
        assert!(leader.as_ref().unwrap().leads);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(next.iter().chain(&last).all(|task| !task.is_finished()), "one leads at a time");
        leader.unwrap().mark_begun();
    }
}
