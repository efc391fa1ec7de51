//! State shared by all calls of a client: transport, policy and retry jitter.

use std::time::Duration;

use pal_wire::ProviderFailure;

use crate::client_policy::{ClientPolicy, RetryJitter};
use crate::http_transport::HttpTransport;

/// State shared by all calls of a client.
#[derive(Debug)]
pub(crate) struct ClientState {
    pub(crate) transport: HttpTransport,
    policy: ClientPolicy,
    jitter: RetryJitter,
}

impl ClientState {
    /// Creates the state of a client; the jitter starts at the policy's seed.
    pub(crate) fn new(transport: HttpTransport, policy: ClientPolicy) -> ClientState {
        let jitter = RetryJitter::new(policy.seed);
        ClientState { transport, policy, jitter }
    }

    /// Wait after a failed attempt, counted from 1; `None` if there is no further attempt.
    pub(crate) fn wait(&self, attempt: u32, failure: &ProviderFailure) -> Option<Duration> {
        self.policy.retries.retry_delay(attempt - 1, failure, self.jitter.next())
    }

    /// Maximum bytes of one answer.
    pub(crate) fn answer_bytes_max(&self) -> usize {
        self.policy.answer_bytes_max
    }

    /// Maximum number of attempts.
    pub(crate) fn attempts(&self) -> u32 {
        self.policy.retries.max_retries.saturating_add(1)
    }
}
