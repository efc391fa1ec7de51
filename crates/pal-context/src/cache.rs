//! The provider's cache: when reads of it fell.

/// A fall of the reads counts from this share of the earlier ones on …
const SHARE_LEAST: f64 = 0.05;
/// … and from so many tokens on.
const TOKENS_LEAST: u64 = 2_000;

/// By how many tokens reads fell from one request to the next; none if by too few to speak of (§5.11).
pub fn reads_fell(before: u64, now: u64) -> Option<u64> {
    let fell = before.saturating_sub(now);
    (fell > TOKENS_LEAST && fell as f64 > SHARE_LEAST * before as f64).then_some(fell)
}
