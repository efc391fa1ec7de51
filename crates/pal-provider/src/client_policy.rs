//! Timeouts, retries and size limits of a client.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pal_wire::RetryPolicy;

use crate::endpoint::ProviderEndpoint;

/// Timeouts, retries and size limits of a client.
#[derive(Clone, Debug)]
pub struct ClientPolicy {
    /// Time limits by phase.
    pub timeouts: AttemptTimeouts,
    /// Retry policy.
    pub retries: RetryPolicy,
    /// Seed of the retry jitter; `None` differs per client, so that clients that failed together do not retry
    /// together.
    pub seed: Option<u64>,
    /// Maximum bytes of text, thinking and tool input in one answer. The wire may carry three times as much.
    pub answer_bytes_max: usize,
}

impl ClientPolicy {
    /// Policy for remote providers: [`AttemptTimeouts::patient`] and the retries of the vendors' own clients.
    pub fn patient() -> ClientPolicy {
        ClientPolicy {
            timeouts: AttemptTimeouts::patient(),
            retries: RetryPolicy::STANDARD,
            seed: None,
            answer_bytes_max: ANSWER_BYTES_MAX,
        }
    }

    /// Policy for an endpoint: [`ClientPolicy::patient`], with [`AttemptTimeouts::local`] for a model on this
    /// machine or in its network.
    pub fn for_endpoint(endpoint: &ProviderEndpoint) -> ClientPolicy {
        let timeouts =
            if endpoint.is_local() { AttemptTimeouts::local() } else { AttemptTimeouts::patient() };
        ClientPolicy { timeouts, ..ClientPolicy::patient() }
    }
}

/// Default for [`ClientPolicy::answer_bytes_max`], some hundred times the longest answers.
const ANSWER_BYTES_MAX: usize = 32 << 20;

/// Time limits, one per phase of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptTimeouts {
    /// Connection: name lookup, TCP and TLS.
    pub connect: Duration,
    /// Between two pieces of the request accepted by the server, each of at most 64 KB.
    pub send: Duration,
    /// From the last byte of the request to the head of a streamed answer.
    pub first_byte: Duration,
    /// From the head to the first event with content, and to the head of an answer that is not streamed.
    pub first_event: Duration,
    /// Between two bytes of an answer, pings included.
    pub idle: Duration,
    /// Between two events with content, pings excluded.
    pub content_gap: Duration,
    /// The whole answer.
    pub answer: Duration,
}

impl AttemptTimeouts {
    /// Limits for remote providers.
    ///
    /// Their servers send the head of a stream and pings at once, so 3 min without a head and 90 s without a
    /// byte are faults. Content may take long: newer models think without showing it, and a long tool input
    /// may come in one piece; 20 min exceed the longest of both. The longest answers, 128,000 tokens at 40 a
    /// second, take 53 min.
    pub fn patient() -> AttemptTimeouts {
        AttemptTimeouts {
            connect: Duration::from_secs(10),
            send: Duration::from_secs(30),
            first_byte: Duration::from_secs(180),
            first_event: Duration::from_secs(1_200),
            idle: Duration::from_secs(90),
            content_gap: Duration::from_secs(1_200),
            answer: Duration::from_secs(3_600),
        }
    }

    /// Limits for a model on this machine or in its network: as [`AttemptTimeouts::patient`], but its server
    /// sends nothing, not even the head, before it has processed the prompt, which takes minutes on a slow
    /// machine.
    pub fn local() -> AttemptTimeouts {
        AttemptTimeouts { first_byte: Duration::from_secs(1_200), ..AttemptTimeouts::patient() }
    }
}

/// Random numbers for retry delays.
#[derive(Debug)]
pub(crate) struct RetryJitter(AtomicU64);

impl RetryJitter {
    /// Starts at a seed, or at random.
    pub(crate) fn new(seed: Option<u64>) -> RetryJitter {
        RetryJitter(AtomicU64::new(seed.unwrap_or_else(|| RandomState::new().hash_one(0))))
    }

    /// Random number in 0..1.
    pub(crate) fn next(&self) -> f64 {
        // SplitMix64: a counter with an odd stride and mixed bits.
        const STRIDE: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut bits = self.0.fetch_add(STRIDE, Ordering::Relaxed).wrapping_add(STRIDE);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_is_spread_over_its_range_and_repeats_by_seed() {
        let draw = |seed| {
            let jitter = RetryJitter::new(Some(seed));
            (0..1000).map(|_| jitter.next()).collect::<Vec<f64>>()
        };
        let numbers = draw(7);
        assert!(numbers.iter().all(|number| (0.0..1.0).contains(number)));
        let mean = numbers.iter().sum::<f64>() / 1000.0;
        assert!((0.45..0.55).contains(&mean), "{mean}");
        assert_eq!(numbers, draw(7));
        assert_ne!(numbers, draw(8));
    }

    #[test]
    fn clients_differ_in_their_jitter() {
        let firsts: Vec<f64> = (0..8).map(|_| RetryJitter::new(None).next()).collect();
        assert!(firsts.iter().any(|first| *first != firsts[0]));
    }
}
