//! Constants fitted to recorded Claude sessions. `cargo run --release -p xtask -- fit` recomputes them from
//! all recorded sessions and prints both; docs/policy.md describes the limits.

/// Mean number of remaining requests of a session. It does not depend on the number so far: the mean is the
/// same after 1, 10, 50, 100 and 150 requests.
pub(super) const REQUESTS_TO_COME: f64 = 106.0;

/// Shares of pauses between two requests: up to 5 minutes, up to 15, up to an hour, longer.
pub(super) const PAUSES: [f64; 4] = [0.963, 0.019, 0.009, 0.009];

/// Mean growth of the context between two responses, in tokens.
pub(super) const GROWTH: f64 = 1_320.0;

/// Weight of the constants above against the session's own data, in requests. In replays 5 to 20 cost 1 to 2%
/// less than 50: sessions differ more in their pauses than one session does from hour to hour.
pub(super) const PRIOR_REQUESTS: f64 = 10.0;

/// Rent to pay before a compaction, as a multiple of its price. 1 would be right if all costs were known; in
/// replays 1 costs as much as 1.5, with a fifth more compactions and more missing content.
pub(super) const RENT: f64 = 1.5;

/// Tokens of a model's summary, its draft included.
pub(super) const SUMMARY_TOKENS: f64 = 3_000.0;

/// Tokens that a compaction leaves behind the fixed prefix on a full window: summary, user words, last files.
/// Replays of the recorded sessions leave 6,000 to 20,000, with summaries shorter than a model's.
pub(super) const COMPACTED_TOKENS: f64 = 15_000.0;

/// Output tokens of reading something again: the call and the text around it.
pub(super) const CALL_TOKENS: f64 = 150.0;

/// Mean tokens read again per call.
pub(super) const READ_AGAIN_TOKENS: f64 = 3_000.0;

/// Share of compacted content that is read again although the summary mentions it: recorded compactions
/// reduced the context from 155,000 to 54,000 tokens, and in the next 30 calls agents read 31,000 characters
/// again instead of the usual 5,000, at 2.75 characters per token.
pub(super) const COMPACTED_NEEDED: f64 = 0.095;

/// Probability that a file read is needed again, by age of the result.
pub(super) const READ_REUSE: [f64; 4] = [0.57, 0.45, 0.35, 0.14];

/// The same for a file that is being worked on: it stays needed at any age.
pub(super) const CHANGED_READ_REUSE: [f64; 4] = [0.58, 0.58, 0.47, 0.49];

/// Probability that any other result is needed again. Results of other tools almost never recur verbatim (0 to
/// 0.5%); but use without a call leaves no trace in a recording, so a small value is assumed for them, and for
/// content that is shown twice.
pub(super) const OTHER_REUSE: f64 = 0.03;
