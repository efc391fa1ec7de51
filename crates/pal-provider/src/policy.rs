//! How long to wait for what, and how often to try again.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pal_wire::RetryPolicy;

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
}

impl Policy {
    /// What suits providers on the net: the timeouts of [`Timeouts::patient`], the retries of the vendors' own clients.
    pub fn patient() -> Policy {
        Policy { timeouts: Timeouts::patient(), retries: RetryPolicy::STANDARD, seed: None }
    }
}

/// How long to wait for what. A whole answer may take as long as it likes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For a connection.
    pub connect: Duration,
    /// From the sending of a request, its body included, to the head of the answer.
    pub first_byte: Duration,
    /// Between two bytes of an answer. A ping is a sign of life.
    pub idle: Duration,
}

impl Timeouts {
    /// 10 s to connect, 10 min to the first byte, 90 s of silence.
    pub fn patient() -> Timeouts {
        Timeouts {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(600),
            idle: Duration::from_secs(90),
        }
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
