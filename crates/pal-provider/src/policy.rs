//! How long to wait for what, and how often to try again.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pal_wire::RetryPolicy;

use crate::endpoint::Endpoint;

/// How patient a client is.
#[derive(Clone, Debug)]
pub struct Policy {
    /// How long to wait for what.
    pub timeouts: Timeouts,
    /// When to try again.
    pub retries: RetryPolicy,
    /// Where the jitter of waits begins; by default somewhere else in each client, so that clients that failed
    /// together do not return together.
    pub seed: Option<u64>,
    /// Most bytes of text, thinking and tool input in one answer. Besides them, the wire may carry twice as much.
    pub answer_bytes_max: usize,
}

impl Policy {
    /// What suits providers on the net: the timeouts of [`Timeouts::patient`], the retries of the vendors' own clients.
    pub fn patient() -> Policy {
        Policy {
            timeouts: Timeouts::patient(),
            retries: RetryPolicy::STANDARD,
            seed: None,
            answer_bytes_max: ANSWER_BYTES_MAX,
        }
    }

    /// What suits an endpoint: [`Policy::patient`], with [`Timeouts::local`] for a model on this machine or in its network.
    pub fn suited_to(endpoint: &Endpoint) -> Policy {
        let timeouts = if endpoint.is_local() { Timeouts::local() } else { Timeouts::patient() };
        Policy { timeouts, ..Policy::patient() }
    }
}

/// Default for [`Policy::answer_bytes_max`]: some hundred times what the longest answers have.
const ANSWER_BYTES_MAX: usize = 32 << 20;

/// Time limits, one for each phase of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For a connection: name lookup, TCP and TLS.
    pub connect: Duration,
    /// Between two pieces of the request that the server takes, each of at most 64 KB.
    pub send: Duration,
    /// From the last byte of the request to the head of a streamed answer.
    pub first_byte: Duration,
    /// From the head to the first event that carries content, and to the head of an answer that is not streamed.
    pub first_event: Duration,
    /// Between two bytes of an answer. A ping is a sign of life.
    pub idle: Duration,
    /// Between two events that carry content. A ping carries none.
    pub content_gap: Duration,
    /// For all of an answer.
    pub answer: Duration,
}

impl Timeouts {
    /// Limits for providers on the net.
    ///
    /// Their servers send the head of a stream and pings at once, so that 3 min without a head and 90 s without a byte
    /// are a fault. Content may be far: newer models think without showing it, and a long tool input may come in one piece;
    /// 20 min are more than the longest of both took. The longest answers, 128,000 tokens at 40 a second, take 53 min.
    pub fn patient() -> Timeouts {
        Timeouts {
            connect: Duration::from_secs(10),
            send: Duration::from_secs(30),
            first_byte: Duration::from_secs(180),
            first_event: Duration::from_secs(1_200),
            idle: Duration::from_secs(90),
            content_gap: Duration::from_secs(1_200),
            answer: Duration::from_secs(3_600),
        }
    }

    /// Limits for a model on this machine or in its network: as [`Timeouts::patient`], but its server says nothing, not even
    /// the head, before it has read the whole prompt, which takes a slow machine minutes.
    pub fn local() -> Timeouts {
        Timeouts { first_byte: Duration::from_secs(1_200), ..Timeouts::patient() }
    }
}

/// A small source of chance, for nothing but the spreading of waits.
#[derive(Debug)]
pub(crate) struct Jitter(AtomicU64);

impl Jitter {
    /// Begins at a seed, or anywhere.
    pub(crate) fn new(seed: Option<u64>) -> Jitter {
        Jitter(AtomicU64::new(seed.unwrap_or_else(|| RandomState::new().hash_one(0))))
    }

    /// A number from 0 up to, not including, 1.
    pub(crate) fn next(&self) -> f64 {
        // SplitMix64: a counter with an odd stride, and its bits well mixed.
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
            let jitter = Jitter::new(Some(seed));
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
        let firsts: Vec<f64> = (0..8).map(|_| Jitter::new(None).next()).collect();
        assert!(firsts.iter().any(|first| *first != firsts[0]));
    }
}
