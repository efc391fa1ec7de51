//! Retry policy: decides whether and when to retry; the driver waits.

use std::time::Duration;

use crate::{FailureKind, ProviderFailure};

/// Maximum retries after attempts that ended by a time limit.
const SILENT_RETRIES_MAX: u32 = 2;

/// Exponential backoff as in the vendors' clients, with a limit on the provider's requested wait.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryPolicy {
    /// Maximum number of retries.
    pub max_retries: u32,
    /// Wait before the first retry; doubles with each retry.
    pub base_delay: Duration,
    /// Maximum backoff.
    pub max_delay: Duration,
    /// Maximum wait that a provider may request. If it requests more, the request fails at once, and the failure's
    /// `retry_after` holds the requested wait.
    pub max_retry_after: Duration,
}

impl RetryPolicy {
    /// Two retries after 0.5 s and 1 s; waits up to five minutes if the provider requests it.
    pub const STANDARD: RetryPolicy = RetryPolicy {
        max_retries: 2,
        base_delay: Duration::from_millis(500),
        max_delay: Duration::from_secs(8),
        max_retry_after: Duration::from_secs(300),
    };

    /// No retries.
    pub const NEVER: RetryPolicy = RetryPolicy { max_retries: 0, ..RetryPolicy::STANDARD };

    /// Returns the wait before the next attempt after `retries_done` retries; none to give up. `jitter` is a random
    /// number from 0 to 1 that shortens the backoff by up to a quarter, so that clients that failed together do not retry
    /// together.
    ///
    /// Call it only if no part of the response has been shown yet.
    pub fn retry_delay(&self, retries_done: u32, failure: &ProviderFailure, jitter: f64) -> Option<Duration> {
        if retries_done >= self.max_retries || !failure.should_retry.unwrap_or(is_passing(failure.kind)) {
            return None;
        }
        // Each attempt already took as long as a user would wait in total.
        if failure.kind == FailureKind::Silent && retries_done >= SILENT_RETRIES_MAX {
            return None;
        }
        match failure.retry_after {
            Some(asked) => (asked <= self.max_retry_after).then_some(asked),
            None => {
                let doubled =
                    self.base_delay.saturating_mul(1u32.checked_shl(retries_done).unwrap_or(u32::MAX));
                Some(doubled.min(self.max_delay).mul_f64(1.0 - 0.25 * jitter.clamp(0.0, 1.0)))
            }
        }
    }
}

/// Returns true if the same request may succeed later.
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
        FailureKind::TooLong(_)
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
