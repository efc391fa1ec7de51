//! Whether and when a request is tried again. Decides; the driver waits.

use std::time::Duration;

use crate::{Failure, FailureKind};

/// Most retries of attempts that ended at a time limit.
const SILENT_RETRIES_MAX: u32 = 2;

/// The policy of the vendors' own clients, with limits of ours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryPolicy {
    /// How often a request is tried again.
    pub retries: u32,
    /// The wait before the first retry; each further one is twice as long.
    pub base: Duration,
    /// The longest wait of our own choice.
    pub cap: Duration,
    /// The longest wait that a provider may ask for. If it asks for more, the request fails at once, and the failure's
    /// `retry_after` says when it would be worth another try.
    pub longest_wait: Duration,
}

impl RetryPolicy {
    /// Two retries after half a second and a second, up to five minutes if the provider asks for them.
    pub const STANDARD: RetryPolicy = RetryPolicy {
        retries: 2,
        base: Duration::from_millis(500),
        cap: Duration::from_secs(8),
        longest_wait: Duration::from_secs(300),
    };

    /// No retry at all.
    pub const NEVER: RetryPolicy = RetryPolicy { retries: 0, ..RetryPolicy::STANDARD };

    /// How long to wait before the next attempt, after `retries_done` retries; none if there shall be none. `jitter`
    /// is a random number from 0 to 1: up to a quarter of a wait of our own choice is left out, so that clients that
    /// failed together do not come back together.
    ///
    /// Nothing of the answer may have been shown yet: ask only then.
    pub fn wait(&self, retries_done: u32, failure: &Failure, jitter: f64) -> Option<Duration> {
        if retries_done >= self.retries || !failure.should_retry.unwrap_or(is_passing(failure.kind)) {
            return None;
        }
        // Each attempt took as long as a person would wait for all of them.
        if failure.kind == FailureKind::Silent && retries_done >= SILENT_RETRIES_MAX {
            return None;
        }
        match failure.retry_after {
            Some(asked) => (asked <= self.longest_wait).then_some(asked),
            None => {
                let doubled = self.base.saturating_mul(1u32.checked_shl(retries_done).unwrap_or(u32::MAX));
                Some(doubled.min(self.cap).mul_f64(1.0 - 0.25 * jitter.clamp(0.0, 1.0)))
            }
        }
    }
}

/// Whether the same request may succeed a moment later.
fn is_passing(kind: FailureKind) -> bool {
    match kind {
        FailureKind::Conflict
        | FailureKind::RateLimited
        | FailureKind::Overloaded
        | FailureKind::Server
        | FailureKind::Timeout
        | FailureKind::Connection
        | FailureKind::Cut
        | FailureKind::Silent
        | FailureKind::Malformed => true,
        FailureKind::TooLong { .. }
        | FailureKind::TooLarge
        | FailureKind::Invalid
        | FailureKind::Authentication
        | FailureKind::Billing
        | FailureKind::Permission
        | FailureKind::NotFound
        | FailureKind::AnswerTooLarge
        | FailureKind::Deadline => false,
    }
}
