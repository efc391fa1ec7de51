//! Requests that begin alike and start together (§5.7): what the first one writes to the cache can be read only once
//! its answer begins, so the others wait for that.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// Lets the first of several requests that share a prefix go ahead, and the others after it.
#[derive(Clone, Debug, Default)]
pub struct Stagger {
    prefixes: Arc<Mutex<HashMap<u128, Prefix>>>,
}

/// What is known of a prefix.
#[derive(Debug)]
enum Prefix {
    /// A request is on its way and nothing of its answer has come; the others wait here.
    Away(Arc<Notify>),
    /// An answer began: what was written can be read until then.
    Begun(Instant),
}

/// The right to send one request.
#[derive(Debug)]
pub struct Pass {
    stagger: Stagger,
    prefix: u128,
    /// For how long what is written, or read, stays in the cache.
    lifetime: Duration,
    /// Whether others wait for this one.
    leads: bool,
}

impl Stagger {
    /// Waits until a request with this prefix may be sent: at once if what an answered one wrote is still kept, or if
    /// none is on its way; else when the one on its way is answered, or has failed. What is written is kept for `lifetime`.
    pub async fn enter(&self, prefix: u128, lifetime: Duration) -> Pass {
        let pass = |leads| Pass { stagger: self.clone(), prefix, lifetime, leads };
        loop {
            let away = {
                let mut prefixes = self.lock();
                let now = Instant::now();
                match prefixes.get(&prefix) {
                    Some(Prefix::Begun(until)) if now < *until => return pass(false),
                    Some(Prefix::Away(away)) => Arc::clone(away),
                    Some(Prefix::Begun(_)) | None => {
                        // Whoever leads clears away what has expired, so that the table does not grow for ever.
                        prefixes.retain(|_, known| !matches!(known, Prefix::Begun(until) if *until <= now));
                        prefixes.insert(prefix, Prefix::Away(Arc::default()));
                        return pass(true);
                    }
                }
            };
            let told = away.notified();
            tokio::pin!(told);
            // From here on no notice is missed; one that came before shows in the table.
            told.as_mut().enable();
            if matches!(self.lock().get(&prefix), Some(Prefix::Away(same)) if Arc::ptr_eq(same, &away)) {
                told.await;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u128, Prefix>> {
        // Nothing panics while it is held.
        self.prefixes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pass {
    /// The answer has begun: the others may follow. A read keeps what was written for as long again.
    pub fn begun(&mut self) {
        let until = Instant::now() + self.lifetime;
        if std::mem::take(&mut self.leads) {
            self.release(Some(Prefix::Begun(until)));
        } else if let Some(Prefix::Begun(known)) = self.stagger.lock().get_mut(&self.prefix) {
            *known = until.max(*known);
        }
    }

    fn release(&self, known: Option<Prefix>) {
        let mut prefixes = self.stagger.lock();
        let before = match known {
            Some(known) => prefixes.insert(self.prefix, known),
            None => prefixes.remove(&self.prefix),
        };
        if let Some(Prefix::Away(away)) = before {
            away.notify_waiters();
        }
    }
}

impl Drop for Pass {
    /// A request that ends without an answer makes room for the next one, which then leads.
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
    async fn the_first_goes_alone_and_the_others_when_its_answer_begins() {
        let stagger = Stagger::default();
        let mut first = stagger.enter(1, LONG).await;
        let other = stagger.enter(2, LONG).await;
        drop(other);
        let waiting: Vec<_> = (0..5)
            .map(|_| {
                let stagger = stagger.clone();
                tokio::spawn(async move { stagger.enter(1, LONG).await })
            })
            .collect();
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert!(waiting.iter().all(|task| !task.is_finished()));
        first.begun();
        for task in waiting {
            assert!(!task.await.unwrap().leads);
        }
        drop(first);
        assert!(!stagger.enter(1, LONG).await.leads, "what was written is still there");
        tokio::time::sleep(LONG).await;
        let mut again = stagger.enter(1, LONG).await;
        assert!(again.leads, "it has expired");
        again.begun();
        tokio::time::sleep(LONG / 2).await;
        stagger.enter(1, LONG).await.begun();
        tokio::time::sleep(LONG / 2).await;
        assert!(!stagger.enter(1, LONG).await.leads, "a read keeps it");
    }

    #[tokio::test(start_paused = true)]
    async fn when_the_first_fails_the_next_one_leads() {
        let stagger = Stagger::default();
        let first = stagger.enter(1, LONG).await;
        let next = tokio::spawn({
            let stagger = stagger.clone();
            async move { stagger.enter(1, LONG).await }
        });
        let last = tokio::spawn({
            let stagger = stagger.clone();
            async move { stagger.enter(1, LONG).await }
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
        leader.unwrap().begun();
    }
}
