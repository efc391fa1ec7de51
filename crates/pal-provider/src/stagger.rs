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
    /// An answer began then.
    Begun(Instant),
}

/// The right to send one request.
#[derive(Debug)]
pub struct Pass {
    stagger: Stagger,
    prefix: u128,
    /// Whether others wait for this one.
    leads: bool,
}

impl Stagger {
    /// Waits until a request with this prefix may be sent: at once if an answer to one began within `lifetime`, or if none
    /// is on its way; else when the one on its way is answered, or has failed.
    pub async fn enter(&self, prefix: u128, lifetime: Duration) -> Pass {
        loop {
            let away = {
                let mut prefixes = self.lock();
                match prefixes.get(&prefix) {
                    Some(Prefix::Begun(then)) if then.elapsed() < lifetime => {
                        return Pass { stagger: self.clone(), prefix, leads: false };
                    }
                    Some(Prefix::Away(away)) => Arc::clone(away),
                    Some(Prefix::Begun(_)) | None => {
                        prefixes.insert(prefix, Prefix::Away(Arc::default()));
                        return Pass { stagger: self.clone(), prefix, leads: true };
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
    /// The answer has begun: the others may follow.
    pub fn begun(&mut self) {
        if std::mem::take(&mut self.leads) {
            self.release(Some(Prefix::Begun(Instant::now())));
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
        assert!(stagger.enter(1, LONG).await.leads, "it has expired");
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
