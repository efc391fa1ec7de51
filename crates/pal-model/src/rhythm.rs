//! The rhythm of a session: how often it asks, how fast its context grows, how long it pauses, and what it has carried
//! since it was last compacted. Policies that look ahead learn from it.
//!
//! It is folded from the entries, one by one, and a boundary carries it: so a resumed session knows the same as the one
//! that was killed.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Timestamp, Usage};

/// Where one sort of pause ends and the next begins.
pub const PAUSES: [Duration; 3] =
    [Duration::from_secs(5 * 60), Duration::from_secs(15 * 60), Duration::from_secs(60 * 60)];

/// The rhythm of a session.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Rhythm {
    /// Requests of the conversation.
    pub requests: u64,
    /// When the last of them left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_request: Option<Timestamp>,
    /// Times between one request and the next, counted by length: up to the first of [`PAUSES`], up to the second, up to
    /// the third, longer.
    pub pauses: [u64; 4],
    /// Tokens by which the context grew from one answer to the next, all together.
    pub grown_tokens: u64,
    /// How often that was seen.
    pub grown_times: u64,
    /// Size of the context with the newest answer since the boundary; nothing before there is one.
    pub context_tokens: u64,
    /// Prompts since the boundary.
    pub prompts: u64,
    /// Tokens of these, all together.
    pub prompt_tokens: u64,
}

impl Rhythm {
    /// Whether nothing has happened yet.
    pub fn is_empty(&self) -> bool {
        *self == Rhythm::default()
    }

    /// A request of the conversation left.
    pub fn requested(&mut self, at: Timestamp) {
        self.requests += 1;
        if let Some(last) = self.last_request {
            let pause = u64::try_from(at.milliseconds() - last.milliseconds()).unwrap_or(0);
            self.pauses[sort_of(Duration::from_millis(pause))] += 1;
        }
        self.last_request = Some(at);
    }

    /// It was answered.
    pub fn answered(&mut self, usage: &Usage) {
        if !usage.has_prompt() {
            return;
        }
        let context = usage.context_tokens();
        if self.context_tokens > 0 {
            // What was cleared in between hides what was said: such an answer tells nothing of growth.
            if let Some(grown) = context.checked_sub(self.context_tokens) {
                self.grown_tokens = self.grown_tokens.saturating_add(grown);
                self.grown_times += 1;
            }
        }
        self.context_tokens = context;
        self.prompts += 1;
        self.prompt_tokens = self.prompt_tokens.saturating_add(usage.prompt_tokens());
    }

    /// The conversation was compacted: what it carried before is paid and gone.
    pub fn begin_anew(&mut self) {
        (self.context_tokens, self.prompts, self.prompt_tokens) = (0, 0, 0);
    }
}

/// Which sort of pause this is.
fn sort_of(pause: Duration) -> usize {
    PAUSES.iter().position(|end| pause <= *end).unwrap_or(PAUSES.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_growth_and_what_was_carried_are_counted() {
        let mut rhythm = Rhythm::default();
        let at = |minutes: i64| Timestamp::from_milliseconds(minutes * 60_000);
        for minutes in [0, 5, 11, 40, 101, 100] {
            rhythm.requested(at(minutes));
        }
        assert_eq!((rhythm.requests, rhythm.pauses), (6, [2, 1, 1, 1]));
        for prompt in [1_000, 4_000, 3_000, 3_500] {
            rhythm.answered(&Usage { input_tokens: prompt, output_tokens: 10, ..Usage::default() });
        }
        assert_eq!((rhythm.grown_tokens, rhythm.grown_times), (3_500, 2));
        assert_eq!((rhythm.prompts, rhythm.prompt_tokens), (4, 11_500));
        rhythm.begin_anew();
        rhythm.answered(&Usage { input_tokens: 500, ..Usage::default() });
        assert_eq!((rhythm.grown_times, rhythm.prompts, rhythm.prompt_tokens), (2, 1, 500));
        assert_eq!((rhythm.requests, rhythm.context_tokens), (6, 500));
    }
}
