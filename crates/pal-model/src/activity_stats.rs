//! Activity statistics of a session: request rate, context growth, pauses, and prompt tokens since the last compaction.
//! Forecasting policies are based on them.
//!
//! They are accumulated entry by entry and stored in boundaries, so a resumed session has the same statistics as before.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Timestamp, Usage};

/// Upper limits of the pause buckets; longer pauses fall into a fourth one.
pub const PAUSE_LIMITS: [Duration; 3] =
    [Duration::from_secs(5 * 60), Duration::from_secs(15 * 60), Duration::from_secs(60 * 60)];

/// Activity statistics of a session's conversation.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ActivityStats {
    /// Number of requests.
    pub requests: u64,
    /// Time of the last request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_request: Option<Timestamp>,
    /// Times between one request and the next, counted by length: up to the first of [`PAUSE_LIMITS`], up to the second, up to
    /// the third, longer.
    pub pauses: [u64; 4],
    /// The part of `pauses` that ended with a message of a person: these are people's pauses, the others are long
    /// responses, tool calls and permission prompts.
    pub turn_pauses: [u64; 4],
    /// True if a person has sent a message since the last request.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_turn_open: bool,
    /// Total context growth between consecutive responses, in tokens.
    pub grown_tokens: u64,
    /// Number of measured growth steps.
    pub grown_times: u64,
    /// Context size after the newest response since the boundary; 0 before the first.
    pub context_tokens: u64,
    /// Number of prompts since the boundary.
    pub prompts: u64,
    /// Total prompt tokens since the boundary.
    pub prompt_tokens: u64,
}

impl ActivityStats {
    /// Returns true if nothing has been recorded.
    pub fn is_empty(&self) -> bool {
        *self == ActivityStats::default()
    }

    /// Records a request of the conversation.
    pub fn record_request(&mut self, at: Timestamp) {
        self.requests += 1;
        if let Some(last) = self.last_request {
            let pause = u64::try_from(at.milliseconds() - last.milliseconds()).unwrap_or(0);
            let bucket = pause_bucket(Duration::from_millis(pause));
            self.pauses[bucket] += 1;
            self.turn_pauses[bucket] += u64::from(self.is_turn_open);
        }
        self.last_request = Some(at);
        self.is_turn_open = false;
    }

    /// Records a message of a person.
    pub fn record_user_message(&mut self) {
        self.is_turn_open = true;
    }

    /// Records the response to a request. Usage without prompt tokens is ignored.
    pub fn record_response(&mut self, usage: &Usage) {
        if !usage.has_prompt() {
            return;
        }
        let context = usage.context_tokens();
        if self.context_tokens > 0 {
            // A smaller context means that content was cleared in between, so its growth is unknown.
            if let Some(grown) = context.checked_sub(self.context_tokens) {
                self.grown_tokens = self.grown_tokens.saturating_add(grown);
                self.grown_times += 1;
            }
        }
        self.context_tokens = context;
        self.prompts += 1;
        self.prompt_tokens = self.prompt_tokens.saturating_add(usage.prompt_tokens());
    }

    /// The part of `pauses` that did not end with a message of a person.
    pub fn loop_pauses(&self) -> [u64; 4] {
        std::array::from_fn(|bucket| self.pauses[bucket].saturating_sub(self.turn_pauses[bucket]))
    }

    /// Resets the counts since the boundary, after a compaction.
    pub fn reset_context(&mut self) {
        (self.context_tokens, self.prompts, self.prompt_tokens) = (0, 0, 0);
    }
}

/// Index of the bucket in `pauses`.
fn pause_bucket(pause: Duration) -> usize {
    PAUSE_LIMITS.iter().position(|end| pause <= *end).unwrap_or(PAUSE_LIMITS.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_growth_and_prompt_tokens_are_counted() {
        let mut stats = ActivityStats::default();
        let at = |minutes: i64| Timestamp::from_milliseconds(minutes * 60_000);
        for minutes in [0, 5, 11, 40, 101, 100] {
            if minutes > 30 {
                stats.record_user_message();
            }
            stats.record_request(at(minutes));
        }
        assert_eq!((stats.requests, stats.pauses), (6, [2, 1, 1, 1]));
        assert_eq!((stats.turn_pauses, stats.is_turn_open), ([1, 0, 1, 1], false));
        for prompt in [1_000, 4_000, 3_000, 3_500] {
            stats.record_response(&Usage { input_tokens: prompt, output_tokens: 10, ..Usage::default() });
        }
        assert_eq!((stats.grown_tokens, stats.grown_times), (3_500, 2));
        assert_eq!((stats.prompts, stats.prompt_tokens), (4, 11_500));
        stats.reset_context();
        stats.record_response(&Usage { input_tokens: 500, ..Usage::default() });
        assert_eq!((stats.grown_times, stats.prompts, stats.prompt_tokens), (2, 1, 500));
        assert_eq!((stats.requests, stats.context_tokens), (6, 500));
    }
}
