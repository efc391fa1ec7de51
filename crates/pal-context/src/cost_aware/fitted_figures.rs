//! Constants of the cost-aware policy: weights of its expectations, and figures of compactions and re-reads. What is expected of a
//! session before it has shown its own figures is in `policy_figures.rs`.

/// Weight of the expected pauses before a person's message against the session's own, in messages.
pub(super) const PRIOR_TURNS: f64 = 2.0;

/// Weight of the expected pauses before other requests, in requests.
pub(super) const PRIOR_LOOPS: f64 = 60.0;

/// Weight of the expected growth and turn length, in requests.
pub(super) const PRIOR_REQUESTS: f64 = 10.0;

/// Rent to pay before a compaction, as a multiple of its price. 1 would be right if all costs were known; the cost is flat between 1
/// and 1.5, and fewer compactions lose less.
pub(super) const RENT: f64 = 1.5;

/// Output tokens of a model's summary where none was seen yet: 20 recorded ones have 5,000 in the mean.
pub(super) const SUMMARY_TOKENS: f64 = 5_000.0;

/// Tokens that a compaction leaves behind the fixed prefix on a full window where none was seen yet: summary, user words, last files.
pub(super) const COMPACTED_TOKENS: f64 = 15_000.0;

/// Output tokens of reading something again: the call and the text around it.
pub(super) const CALL_TOKENS: f64 = 150.0;

/// Mean tokens read again per call.
pub(super) const READ_AGAIN_TOKENS: f64 = 3_000.0;

/// Share of compacted content that is read again although the summary mentions it: recorded compactions
/// reduced the context from 155,000 to 54,000 tokens, and in the next 30 calls agents read 31,000 characters
/// again instead of the usual 5,000, at 2.75 characters per token.
pub(super) const COMPACTED_NEEDED: f64 = 0.095;

/// Probability that any other result is needed again. Results of other tools almost never recur verbatim (0 to
/// 0.5%); but use without a call leaves no trace in a recording, so a small value is assumed for them, and for
/// content that is shown twice.
pub(super) const OTHER_REUSE: f64 = 0.03;
