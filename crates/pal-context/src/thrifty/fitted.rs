//! Figures fitted to recorded sessions of Claude. `cargo run --release -p xtask -- fit` computes the same from all recorded
//! sessions and prints it beside these; the method of each is said here, its limits in docs/policy.md.

use pal_model::ToolKind;

use super::needs::{NeedAge, Since};

/// Requests that a session still has before it, on average. How many it has had says nothing about it: over the recorded
/// sessions the mean of what was to come is the same after 1, 10, 50, 100 and 150 requests.
pub(super) const REQUESTS_TO_COME: f64 = 106.0;

/// Shares of the times between two requests: up to 5 minutes, up to 15, up to an hour, longer.
pub(super) const PAUSES: [f64; 4] = [0.963, 0.019, 0.009, 0.009];

/// Tokens by which a context grows from one answer to the next, on average.
pub(super) const GROWTH: f64 = 1_320.0;

/// How many requests of its own a session needs until they count as much as the figures above. In the lab 5 to 20 cost 1 to 2 %
/// less than 50: sessions differ more in their pauses than one session does from hour to hour.
pub(super) const PRIOR_REQUESTS: f64 = 10.0;

/// How many times the price of a compaction must have been paid as rent before it is made. Once would be right if all that it
/// costs were known; in the lab, 1 costs as much as 1.5, with a fifth more compactions and more of what is missed behind them.
pub(super) const RENT: f64 = 1.5;

/// Tokens of a summary that a model writes, its draft included.
pub(super) const SUMMARY_TOKENS: f64 = 3_000.0;

/// Tokens that a compaction leaves behind what every request begins with, on a full window: summary, words of people, files
/// that were read last. Replays of the recorded sessions leave 6 000 to 20 000, with summaries shorter than a model's.
pub(super) const COMPACTED_TOKENS: f64 = 15_000.0;

/// Tokens that a call takes of the model when something is read again: the call itself and what is said around it.
pub(super) const CALL_TOKENS: f64 = 150.0;

/// Tokens that are read again, on average, in one call.
pub(super) const READ_AGAIN_TOKENS: f64 = 3_000.0;

/// The share of what a compaction takes away that is read again although the summary speaks of it: recorded compactions
/// took the context from 155 000 to 54 000 tokens, and in the 30 calls behind them agents read 31 000 characters again where
/// they would have read 5 000, at 2.75 characters a token.
pub(super) const COMPACTED_NEEDED: f64 = 0.095;

/// How likely a result is needed again, by its tool, by how many results are newer, and by what came behind it. A file that is
/// being worked on stays wanted, however old the result is. Of what others than reads return nearly nothing came back word
/// for word (0 to 0.5 %); but what is used without a call of its own leaves no trace in a recording, so a little is put down
/// for it, and for what stands there twice.
pub(super) fn needed(kind: ToolKind, age: NeedAge, since: Since) -> f64 {
    const UNSEEN: f64 = 0.03;
    match (kind, since) {
        (ToolKind::Read, Since::Nothing) => [0.57, 0.45, 0.35, 0.14][age as usize],
        (ToolKind::Read, Since::Changed) => [0.58, 0.58, 0.47, 0.49][age as usize],
        _ => UNSEEN,
    }
}
