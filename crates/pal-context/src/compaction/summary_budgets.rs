//! Token budgets of a summary, for a window of 200,000 tokens or more (§0.4).

/// Maximum output tokens of a summary.
pub(crate) const OUTPUT: u64 = 20_000;
/// What the audit adds to a summary that misses something.
pub(crate) const REPAIRS: u64 = 4_000;
/// The user's words that a summary misses.
pub(crate) const USER_WORDS: u64 = 12_000;
